"""Reads firewall rules as users and services write them: what a ruleset cannot express is refused by rule, key and value."""

import difflib
import ipaddress
import re
from collections.abc import Mapping

import yaml
from ansible_collections.osp.edpm.plugins.plugin_utils import strict_yaml

# Protocols whose packets have ports.
WITH_PORTS = ("tcp", "udp", "udplite", "sctp", "dccp")
# Protocols, each with the family to which it belongs; all others have numbers here.
PROTOCOLS = {**dict.fromkeys(WITH_PORTS, ""), "icmp": "ip", "ipv6-icmp": "ip6", "esp": "", "ah": ""}
# Names of others, which the kernel's front ends read from a file that a host may lack, with their numbers.
NUMBERS = {"vrrp": "112", "gre": "47", "igmp": "2", "ospf": "89"}
ACTIONS = ("accept", "drop", "reject")
STATES = ("new", "established", "related", "invalid", "untracked")
FAMILIES = {"ipv4": "ip", "ipv6": "ip6"}
KEYS = (
    "action", "chain", "destination", "dport", "extras", "interface", "ipversion", "jump", "port", "proto", "source",
    "sport", "state", "table",
)
# Those that say nothing about packets.
NO_MATCH = {"action", "jump", "extras", "chain", "table"}
# The kernel's limit for a comment is 128 bytes.
COMMENT_BYTES = 120
# As many faults, and characters of a value, as a message has room for.
FAULTS = 5
SHOWN = 80


class RuleError(ValueError):
    """Names source, rule and key, and what may stand there."""


def read(sources):
    """The rules of all sources, each in the form that the templates render, in the order of their names.

    Sources are named by the keys: a variable or a file. Each one is a list, or YAML text with a list.
    """
    found, faults = [], []
    for source, given in sources.items():
        try:
            entries = _entries(given)
        except RuleError as fault:
            faults.append(f"{source} {fault}")
            continue
        for index, entry in enumerate(entries):
            try:
                found += _rules(entry)
            except RuleError as fault:
                faults.append(f"{source}, {_title(entry, index)}: {fault}")
    if faults:
        more = f" {len(faults) - FAULTS} more rules are refused." if len(faults) > FAULTS else ""
        raise RuleError(" ".join(faults[:FAULTS]) + more)
    return sorted(found, key=lambda rule: rule["name"])


def _entries(given):
    if isinstance(given, str):
        try:
            given = yaml.load(given, Loader=strict_yaml.Texts)
        except yaml.YAMLError as error:
            raise RuleError(f"is no YAML: {' '.join(str(error).split())}.") from error
    if given in (None, ""):
        return []
    if not isinstance(given, list):
        raise RuleError("must be a list of rules, each with rule_name and rule.")
    return given


def _title(entry, index):
    name = entry.get("rule_name") if isinstance(entry, Mapping) else None
    return f"rule {str(name)[:SHOWN]!r}" if name and _is_plain(name) else f"rule {index + 1}"


def _is_plain(value):
    """Whether a value is neither a list nor a dictionary: a few lines of a host may stand for a million of these."""
    return value is None or isinstance(value, (str, int, float))


def _check_shape(key, value):
    parts = value.values() if key == "extras" and isinstance(value, Mapping) else value if isinstance(value, list) else [value]
    if not all(_is_plain(part) and len(str(part)) <= 2 * COMMENT_BYTES for part in parts):
        raise RuleError(f"{key} must be short values.")


def _rules(entry):
    """What one entry becomes: a rule for each family that its addresses are of, or none where it is to be absent."""
    _check_keys(entry, ("rule_name", "rule"), "an entry")
    rule = entry.get("rule")
    _check_keys(rule, KEYS, "a rule")
    for key, value in [("rule_name", entry.get("rule_name")), *rule.items()]:
        _check_shape(key, value)
    if not set(rule) - NO_MATCH:
        raise RuleError("the rule matches everything: write proto: all if that is meant.")
    _one_of(rule, "chain", ("input",), "input")
    _one_of(rule, "table", ("filter",), "filter")
    protocol, family = _protocol(rule)
    read_rule = {
        "name": _name(entry.get("rule_name")),
        "interfaces": _list(rule, "interface", _interface),
        "protocol": protocol,
        "dports": _ports(rule, _either(rule, "dport", "port")),
        "sports": _ports(rule, "sport"),
        "states": _list(rule, "state", _state, may_be_empty=True),
        "action": _action(rule),
    }
    families = _families(rule, family)
    is_absent = not _is_present(rule)
    return [] if is_absent else [{**read_rule, **addresses} for addresses in families]


def _check_keys(given, known, what):
    if not isinstance(given, Mapping):
        raise RuleError(f"{what} must have keys: {', '.join(known)}.")
    for key in given:
        if key not in known:
            shown = str(key)[:SHOWN]
            near = difflib.get_close_matches(shown, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"{what} may have {', '.join(known)}."
            raise RuleError(f"key {shown!r} is not carried out: {hint}")


def _name(given):
    name = str("" if given is None else given)
    if not name:
        raise RuleError("rule_name is missing.")
    if not name.isprintable() or "\\" in name:
        raise RuleError("rule_name must be one line without backslashes.")
    # Both languages of rules have double quotes around it.
    return name.replace('"', "'").encode()[:COMMENT_BYTES].decode(errors="ignore")


def _is_present(rule):
    extras = rule.get("extras", {})
    _check_keys(extras, ("ensure",), "extras")
    return _one_of(extras, "ensure", ("present", "enabled", "absent"), "present") != "absent"


def _one_of(given, key, allowed, otherwise):
    """The value of a key in lower case, which is one of those that are allowed."""
    value = given.get(key, otherwise)
    if str(value).lower() not in allowed:
        raise RuleError(f"{key} must be {' or '.join(allowed)}, not {value!r}.")
    return str(value).lower()


def _either(rule, key, alias):
    """The one of two names of a key that the rule has."""
    if key in rule and alias in rule:
        raise RuleError(f"{key} and {alias} are the same: keep {key} alone.")
    return alias if alias in rule else key


def _action(rule):
    return _one_of(rule, _either(rule, "action", "jump"), ACTIONS, "accept")


def _protocol(rule):
    """The protocol, nothing for all of them, and the family that it belongs to."""
    has_ports = any(key in rule for key in ("dport", "port", "sport"))
    value = str(rule.get("proto", "tcp" if has_ports else "all")).lower().replace("icmpv6", "ipv6-icmp")
    value = NUMBERS.get(value, value)
    is_number = re.fullmatch("[0-9]{1,3}", value) and 0 < int(value) < 256
    if value != "all" and value not in PROTOCOLS and not is_number:
        names = ", ".join([*PROTOCOLS, *NUMBERS])
        raise RuleError(f"proto must be all, {names} or the protocol's number, not {rule['proto']!r}.")
    if has_ports and value not in WITH_PORTS:
        raise RuleError(f"ports need proto {', '.join(WITH_PORTS)}, not {value!r}.")
    value = str(int(value)) if is_number else value
    return "" if value == "all" else value, PROTOCOLS.get(value, "")


def _list(rule, key, reader, may_be_empty=False):
    """The values of a key, which are a list, or text with commas; none where the rule does not have the key."""
    if key not in rule:
        return []
    given = rule[key]
    values = list(given) if isinstance(given, list) else [it.strip() for it in str(given).split(",")]
    if given in (None, "", []):
        values = []
    if not values and not may_be_empty:
        raise RuleError(f"{key} has no value: write one, or leave the key out.")
    return list(dict.fromkeys(reader(key, value) for value in values))


def _interface(key, value):
    if not re.fullmatch(r"[A-Za-z0-9_.-]{1,15}", str(value)):
        raise RuleError(f"{key} must be names of network interfaces, not {value!r}.")
    return str(value)


def _state(key, value):
    if str(value).lower() not in STATES:
        raise RuleError(f"{key} must be {', '.join(STATES)}, not {value!r}.")
    return str(value).lower()


def _ports(rule, key):
    """The ports of a key as numbers and ranges, of which none contains another: nft refuses sets with such."""
    merged = []
    for first, last in sorted(_list(rule, key, _port)):
        if merged and first <= merged[-1][1]:
            merged[-1][1] = max(last, merged[-1][1])
        else:
            merged.append([first, last])
    return [str(first) if first == last else f"{first}-{last}" for first, last in merged]


def _port(key, value):
    found = re.fullmatch("([0-9]{1,5})(?:[-:]([0-9]{1,5}))?", str(value))
    first, last = (int(found[1]), int(found[2] or found[1])) if found else (0, 0)
    if not 0 < first <= last < 65536:
        raise RuleError(f"{key} must be numbers of ports, or ranges such as 5900-6923, not {value!r}.")
    return first, last


def _address(key, value):
    try:
        found = ipaddress.ip_network(str(value), strict=False)
    except ValueError as error:
        raise RuleError(f"{key} must be addresses or networks such as 192.0.2.0/24, not {value!r}.") from error
    # Hardly a packet has this address: everything is meant.
    if found.network_address.is_unspecified and found.prefixlen == found.max_prefixlen:
        raise RuleError(f"{key} {value!r} is one address that no host has: for all of them write {found.network_address}/0.")
    return found


def _addresses(rule, key):
    """The networks of a key by family; none contains another, as with ports."""
    found = _list(rule, key, _address)
    by_family = {"ip": [it for it in found if it.version == 4], "ip6": [it for it in found if it.version == 6]}
    return {of: [str(it) for it in ipaddress.collapse_addresses(networks)] for of, networks in by_family.items() if networks}


def _families(rule, family):
    """The addresses of each family in which the rule can match; one without a family where it is for both."""
    asked = FAMILIES[_one_of(rule, "ipversion", tuple(FAMILIES), "")] if "ipversion" in rule else ""
    sources, destinations = _addresses(rule, "source"), _addresses(rule, "destination")
    sides = [set(side) for side in (sources, destinations, [asked] if asked else [], [family] if family else []) if side]
    if not sides:
        return [{"family": "", "sources": [], "destinations": []}]
    possible = set.intersection(*sides)
    if not possible:
        raise RuleError("source, destination, ipversion and proto are of different families: no packet fits.")
    return [
        {"family": of, "sources": sources.get(of, []), "destinations": destinations.get(of, [])} for of in sorted(possible)
    ]
