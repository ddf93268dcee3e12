"""The filter that reads the YAML of a network template, in which no key may stand twice."""

import yaml
from ansible.errors import AnsibleFilterError

DOCUMENTATION = """
name: network_template
short_description: the content of a network template
options:
  _input:
    description: the template's YAML, rendered
    type: str
    required: true
"""


class _Loader(yaml.SafeLoader):
    """Refuses what YAML's usual reader passes over: of a key that stands twice it takes the last value alone."""

    def construct_mapping(self, node, deep=False):
        names = set()
        for key, _ in node.value:
            # A key that is a list or a mapping is refused as such.
            name = str(key.value)
            if name in names:
                raise yaml.constructor.ConstructorError(problem=f"key {name} stands twice", problem_mark=key.start_mark)
            names.add(name)
        return super().construct_mapping(node, deep)


def network_template(text):
    """What the YAML says; the play fails for its host where it cannot be read."""
    try:
        return yaml.load(str(text), Loader=_Loader)
    except yaml.YAMLError as error:
        said = " ".join(str(error).split())
        raise AnsibleFilterError(f"The network template cannot be read, nothing was changed: {said}") from error


class FilterModule:
    """Gives the filter its name."""

    def filters(self):
        return {"network_template": network_template}
