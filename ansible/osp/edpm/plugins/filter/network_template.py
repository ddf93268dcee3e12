"""The filter that reads the YAML of a network template, in which no key may stand twice and no number be octal."""

import yaml
from ansible.errors import AnsibleFilterError
from ansible_collections.osp.edpm.plugins.plugin_utils import strict_yaml

DOCUMENTATION = """
name: network_template
short_description: the content of a network template
options:
  _input:
    description: the template's YAML, rendered
    type: str
    required: true
"""


def network_template(text):
    """What the YAML says; the play fails for its host where it cannot be read."""
    try:
        return yaml.load(str(text), Loader=strict_yaml.Values)
    except yaml.YAMLError as error:
        said = " ".join(str(error).split())
        raise AnsibleFilterError(f"The network template cannot be read, nothing was changed: {said}") from error


class FilterModule:
    """Gives the filter its name."""

    def filters(self):
        return {"network_template": network_template}
