"""The filter that makes rules for the kernel's rulesets of what users and services wrote."""

from ansible.errors import AnsibleFilterError
from ansible_collections.osp.edpm.plugins.plugin_utils import firewall

DOCUMENTATION = """
name: firewall_rules
short_description: rules of a firewall, checked and in the form that the templates of edpm_nftables render
options:
  _input:
    description: the sources by their names, each a list of rules or YAML text with one
    type: dict
    required: true
"""


def firewall_rules(sources):
    """The rules of all sources; the play fails for its host where one cannot be carried out."""
    try:
        return firewall.read(sources)
    except firewall.RuleError as error:
        raise AnsibleFilterError(f"The firewall's rules cannot be carried out: {error}") from error


class FilterModule:
    """Gives the filter its name."""

    def filters(self):
        return {"firewall_rules": firewall_rules}
