"""The lookup that finds variables that no role of this collection reads, and values that a role cannot take."""

import difflib
import functools
import pathlib
import re
from collections.abc import Mapping

import yaml
from ansible.errors import AnsibleUndefinedVariable
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.plugins.lookup import LookupBase
from ansible_collections.osp.edpm.plugins.plugin_utils import firewall

DOCUMENTATION = """
name: variable_faults
short_description: sentences about variables of this collection that are unknown or have impossible values
description:
  - A role's variables are the options of the entry point main in its meta/argument_specs.yml.
  - Refused are edpm_ variables that begin as a role of this collection does and that none of its files mentions,
    and all those whose name is nearly the name of a declared one.
options: {}
"""

# Once for each host: the reader in Python takes ten times as long.
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
COLLECTION = pathlib.Path(__file__).resolve().parents[2]
OURS = re.compile(r"\b(?:deploy_)?edpm_[a-z0-9_]+")
# Fields beside ansibleVars, which indented too far become variables.
FIELDS = ("ansibleHost", "ansiblePort", "ansibleUser", "ansibleVars", "ansibleVarsFrom")
# A role of upstream's that is not here, whose name begins as one of ours does.
OTHERS = "edpm_ovn_bgp_agent_"
# So near to a declared name that it is that name, misspelled: upstream's variables of other roles are farther away.
MISSPELLED = 0.96
# The begin of the description of a variable that no role reads: why upstream's default alone is accepted follows.
UPSTREAMS = "Upstream's; "
# Ansible makes lists and dictionaries of text only where a module has them as arguments: a role would get the text.
CONTAINERS = {"list": (list, "a list"), "dict": (Mapping, "a dictionary")}


def _rules(name, value):
    return {name: value}


def _ranges(name, value):
    return {name: [{"rule_name": "ssh", "rule": {"source": value}}]}


# What becomes rules of the firewall.
FIREWALL = {
    "edpm_libvirt_firewall_rules": _rules, "edpm_nftables_user_rules": _rules, "edpm_ovn_firewall_rules": _rules,
    "edpm_sshd_allowed_ranges": _ranges,
}


class LookupModule(LookupBase):
    """Looks at all variables of the task's host."""

    def run(self, terms, variables=None, **kwargs):
        names = sorted(name for name in variables if name in FIELDS or OURS.fullmatch(_spelled(name)))
        faults = [fault for name in names for fault in _name_faults(name)]
        for name in names:
            if name in _options():
                faults += self._value_faults(name, variables[name])
        return faults

    def _value_faults(self, name, given):
        try:
            value = self._templar.template(given)
        except AnsibleUndefinedVariable:
            # Of what a later task finds out: the role itself will see.
            return []
        option = _options()[name]
        if option.get("type") in CONTAINERS:
            kind, word = CONTAINERS[option["type"]]
            if not isinstance(value, kind):
                return [f"{name} must be {word}, not {'text' if isinstance(value, str) else 'a single value'}."]
        spec = {key: option[key] for key in ("type", "choices", "elements", "options", "no_log") if key in option}
        messages = ArgumentSpecValidator({name: spec}).validate({name: value}).error_messages
        return [_sentence(name, message, option) for message in messages] or _firewall_faults(name, value)


def _sentence(name, message, option):
    """A message of the validator, which leaves out what is wrong where a module says so itself, and why."""
    word = "unknown key " if "Supported parameters include" in message else ""
    reason = option["description"].rstrip(".")
    is_upstreams = "choices" in option and reason.startswith(UPSTREAMS)
    why = f": {reason.removeprefix(UPSTREAMS)}" if is_upstreams else ""
    return f"{name}: {word}{message.rstrip('.')}{why}."


def _firewall_faults(name, value):
    try:
        if name in FIREWALL:
            firewall.read(FIREWALL[name](name, value))
    except firewall.RuleError as fault:
        return [str(fault)]
    return []


def _spelled(name):
    """A name as Ansible takes it for a variable, and as all of ours are."""
    return str(name).lower().replace("-", "_")


def _name_faults(name):
    if name in _mentioned() or name in _options():
        return []
    if name in FIELDS:
        return [f"{name} is a field and no variable: write it beside ansibleVars, not into it."]
    if _spelled(name) in _mentioned():
        return [f"{name} is read by no role of osp.edpm: did you mean {_spelled(name)}?"]
    is_ours = any(name == role or name.startswith(f"{role}_") for role in _roles()) and not name.startswith(OTHERS)
    near = difflib.get_close_matches(name, _options(), n=1, cutoff=0.75 if is_ours else MISSPELLED)
    if near:
        return [f"{name} is read by no role of osp.edpm: did you mean {near[0]}?"]
    return [f"{name} is read by no role of osp.edpm: remove it, its effect is not available here."] if is_ours else []


@functools.cache
def _roles():
    return sorted(path.name for path in (COLLECTION / "roles").iterdir())


@functools.cache
def _options():
    """The declared variables of all roles, by name."""
    options = {}
    for path in sorted((COLLECTION / "roles").glob("*/meta/argument_specs.yml")):
        options.update(yaml.load(path.read_text(), Loader=LOADER)["argument_specs"]["main"]["options"])
    return options


@functools.cache
def _mentioned():
    """Every name in the files of the collection: variables, and what plays register on the way."""
    found = set()
    for folder in ("roles", "playbooks"):
        for path in (COLLECTION / folder).rglob("*"):
            if path.suffix in (".yml", ".j2"):
                found.update(OURS.findall(path.read_text()))
    return found
