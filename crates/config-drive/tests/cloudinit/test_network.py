# Network data, as cloud-init understands it, against what the host says.
"""The expectation is made from the input alone; cloud-init's own parser and renderers make the rest."""

import ipaddress
import json
import pathlib
import tempfile
import unittest

from cloudinit.distros import rhel
from cloudinit.net import eni, netplan, network_manager, network_state, sysconfig
from cloudinit.sources.helpers import openstack

import support

N_HOSTS = 80


def known_macs(host):
    """The cards of a machine, which are named by the kernel."""
    links = host["network"]["links"]
    return {it["kind"]["mac"].lower(): f"ens{idx}" for idx, it in enumerate(links) if "mac" in it["kind"]}


def converted(host, drive):
    """What cloud-init makes of the drive on that machine."""
    data = json.loads(drive["files"]["network_data.json"])
    return openstack.convert_net_json(data, known_macs=known_macs(host))


def state(host, drive):
    """The same, as its renderers get it."""
    return network_state.parse_net_config_data(converted(host, drive), skip_broken=False)


def expected(host):
    """Interfaces by their names on the host."""
    links = {it["id"]: it for it in host["network"]["links"]}
    macs = known_macs(host)
    found = {}
    for link in links.values():
        kind = link["kind"]
        it = {"mtu": link["mtu"], "mac": None, "bond": None, "master": None, "vlan": None}
        it["subnets"] = [subnet(net) for net in host["network"]["networks"] if net["link"] == link["id"]]
        if "mac" in kind:
            it["mac"] = kind["mac"].lower()
        if "bond" in kind:
            given = {"miimon": "100"} if not {"miimon", "arp_interval"} & set(kind["bond"]["options"]) else {}
            it["bond"] = {"mode": kind["bond"]["mode"], **given, **kind["bond"]["options"]}
        if "vlan" in kind:
            below = links[kind["vlan"]["parent"]]
            it["vlan"] = (name(below, links, macs), kind["vlan"]["vlanId"])
            it["mac"] = below["kind"].get("mac", "").lower() or None
        for bond in links.values():
            if link["id"] in bond["kind"].get("bond", {}).get("members", []):
                it["master"] = bond["id"]
        found[name(link, links, macs)] = it
    return found


def name(link, links, macs):
    """How the host calls a link."""
    kind = link["kind"]
    if "mac" in kind:
        return macs[kind["mac"].lower()]
    if "vlan" in kind:
        return f"{name(links[kind['vlan']['parent']], links, macs)}.{kind['vlan']['vlanId']}"
    return kind.get("name", link["id"])


def subnet(net):
    """An address with what goes with it."""
    at = ipaddress.ip_interface(net["address"])
    default = ["0.0.0.0/0" if at.version == 4 else "::/0"] if "gateway" in net else []
    routes = [(to, net["gateway"]) for to in default]
    routes += [(it["destination"], it["gateway"]) for it in net["routes"]]
    return {
        "address": (str(at.ip), at.network.prefixlen),
        "routes": sorted(routes),
        "dns": net.get("dnsServers", []),
        "search": net.get("dnsSearch", []),
    }


def seen(interface):
    """An interface of cloud-init's, in the same words."""
    bond = {key[5:]: value for key, value in interface.items() if key.startswith("bond_")}
    is_bond = interface["type"] == "bond"
    routes = [
        sorted((f"{it['network']}/{it['prefix']}", it["gateway"]) for it in net["routes"])
        for net in interface["subnets"]
    ]
    return {
        "mtu": interface["mtu"],
        "mac": interface["mac_address"],
        "bond": bond if is_bond else None,
        "master": interface.get("bond-master"),
        "vlan": (interface["vlan-raw-device"], interface["vlan_id"]) if interface["type"] == "vlan" else None,
        "subnets": [
            {
                "address": (net["address"], net["prefix"]),
                "routes": to,
                "dns": net.get("dns_nameservers", []),
                "search": net.get("dns_search", []),
            }
            for net, to in zip(interface["subnets"], routes)
        ],
    }


class Network(unittest.TestCase):
    """Random hosts."""

    @classmethod
    def setUpClass(cls):
        rng, cls.seed = support.chance()
        cls.hosts = [support.host(rng) for _ in range(N_HOSTS)]
        cls.drives = support.drives(cls.hosts)

    def setUp(self):
        print(self.seed)

    def test_cloud_init_understands_the_network_that_the_host_says(self):
        for host, drive in zip(self.hosts, self.drives):
            found = {it["name"]: seen(it) for it in state(host, drive).iter_interfaces()}
            self.assertEqual(found, expected(host), json.dumps(host["network"], indent=1))

    def test_every_link_has_an_mtu(self):
        for drive in self.drives:
            links = json.loads(drive["files"]["network_data.json"])["links"]
            self.assertTrue(links and all(it["mtu"] >= 1280 for it in links))

    def test_every_renderer_for_bonds_and_vlans_writes_every_address_and_every_way_out(self):
        made = {
            "eni": eni.Renderer,
            "netplan": netplan.Renderer,
            "network-manager": network_manager.Renderer,
            "sysconfig": lambda: sysconfig.Renderer(rhel.Distro.renderer_configs["sysconfig"]),
        }
        for host, drive in list(zip(self.hosts, self.drives))[:6]:
            for which, new in made.items():
                with self.subTest(which), tempfile.TemporaryDirectory() as folder:
                    new().render_network_state(state(host, drive), target=folder)
                    files = [it for it in pathlib.Path(folder).rglob("*") if it.is_file()]
                    text = "\n".join(it.read_text() for it in files)
                    for net in host["network"]["networks"]:
                        # Of name servers, sysconfig keeps no more than resolv.conf may have.
                        found = [net["address"].split("/")[0]]
                        found += [net["gateway"]] if "gateway" in net else []
                        found += [it["gateway"] for it in net["routes"]]
                        for word in found:
                            self.assertIn(word, text, json.dumps(host["network"], indent=1))

    def test_given_network_data_is_read_with_an_mtu_on_each_link(self):
        data = """
links:
  - {id: eno1, name: eno1, type: phy}
  - {id: eno2, name: eno2, type: phy, mtu: 9000}
  - {id: eno2.7, type: vlan, vlan_id: 7, vlan_link: eno2, vlan_mac_address: null}
networks:
  - {id: a, link: eno2.7, type: ipv4, ip_address: 192.0.2.10, netmask: 255.255.255.0}
"""
        host = {**self.hosts[0], "given": {"networkData": data}}
        host["network"] = {"links": [], "networks": []}
        found = {it["name"]: it["mtu"] for it in state(host, support.drives([host])[0]).iter_interfaces()}
        self.assertEqual(found, {"eno1": 1500, "eno2": 9000, "eno2.7": 9000})
