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


def converted(drive):
    """What cloud-init makes of the drive."""
    return openstack.convert_net_json(json.loads(drive["files"]["network_data.json"]), known_macs={})


def state(drive):
    """The same, as its renderers get it."""
    return network_state.parse_net_config_data(converted(drive), skip_broken=False)


def expected(network):
    """Interfaces by their names on the host."""
    bond = network["uplink"].get("bond")
    cards = bond["bondInterfaces"] if bond else [network["uplink"]["card"]]
    plain = {"mtu": network["mtu"], "mac": None, "bond": None, "master": None, "vlan": None, "subnets": []}
    found = {name: {**plain, "master": "bond0" if bond else None} for name in cards}
    top = cards[0]
    if bond:
        given = {"miimon": "100"} if not {"miimon", "arp_interval"} & set(bond["bondOptions"]) else {}
        top = "bond0"
        found[top] = {**plain, "bond": {"mode": bond["bondMode"], **given, **bond["bondOptions"]}}
    if "vlanId" in network:
        vlan = (top, network["vlanId"])
        top = f"{top}.{network['vlanId']}"
        found[top] = {**plain, "vlan": vlan}
    found[top]["subnets"] = [subnet(network)]
    return found


def subnet(network):
    """The address with what goes with it."""
    at = ipaddress.ip_interface(network["address"])
    to = "0.0.0.0/0" if at.version == 4 else "::/0"
    return {
        "address": (str(at.ip), at.network.prefixlen),
        "routes": [(to, network["gateway"])] if "gateway" in network else [],
        "dns": network.get("dnsServers", []),
        "search": network.get("dnsSearch", []),
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
            found = {it["name"]: seen(it) for it in state(drive).iter_interfaces()}
            self.assertEqual(found, expected(host["network"]), json.dumps(host["network"], indent=1))

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
                    new().render_network_state(state(drive), target=folder)
                    files = [it for it in pathlib.Path(folder).rglob("*") if it.is_file()]
                    text = "\n".join(it.read_text() for it in files)
                    net = host["network"]
                    for word in [net["address"].split("/")[0], net.get("gateway", "")]:
                        self.assertIn(word, text, json.dumps(net, indent=1))

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
        found = {it["name"]: it["mtu"] for it in state(support.drives([host])[0]).iter_interfaces()}
        self.assertEqual(found, {"eno1": 1500, "eno2": 9000, "eno2.7": 9000})
