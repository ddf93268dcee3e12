"""The filter that says whether rules of a firewall let a login in, so that rules which would shut Ansible out are not written."""

import ipaddress

DOCUMENTATION = """
name: firewall_lets_in
short_description: whether one of these rules accepts a connection from an address to a TCP port
options:
  _input:
    description: the rules as osp.edpm.firewall_rules gives them
    type: list
    required: true
  address:
    description: where the connection comes from
    type: str
    required: true
  port:
    description: the port of the host
    type: int
    required: true
"""


def firewall_lets_in(rules, address, port):
    """Only what surely accepts it counts: no rule for some interfaces, other protocols or other states."""
    source = ipaddress.ip_address(str(address).partition("%")[0])
    return any(
        rule["action"] == "accept"
        and not rule["interfaces"] and not rule["states"] and not rule["sports"] and not rule["destinations"]
        and rule["protocol"] in ("", "tcp")
        and (not rule["dports"] or any(_is_in(int(port), ports) for ports in rule["dports"]))
        and rule["family"] in ("", "ip" if source.version == 4 else "ip6")
        and (not rule["sources"] or any(source in ipaddress.ip_network(it) for it in rule["sources"]))
        for rule in rules
    )


def _is_in(port, ports):
    first, _, last = ports.partition("-")
    return int(first) <= port <= int(last or first)


class FilterModule:
    """Gives the filter its name."""

    def filters(self):
        return {"firewall_lets_in": firewall_lets_in}
