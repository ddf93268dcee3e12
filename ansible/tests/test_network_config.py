"""The program that applies a network template, in a network namespace of its own."""

import json
import os
import subprocess
import unittest

import jinja2
import yaml
from support import COLLECTION, HANGS, TemporaryDirectoryTest

PROGRAM = COLLECTION / "roles" / "edpm_network_config" / "files" / "edpm-network-config"
# A pair of virtual cards; the namespace and all that is in it end with the shell.
WORLD = "ip link add eth0 type veth peer name other; ip address add 10.9.0.1/24 dev eth0; ip link set eth0 up; "

BRIDGE = [{
    "type": "bridge", "name": "br-ctl", "mtu": 1400, "use_dhcp": False,
    "addresses": [{"ip_netmask": "10.9.0.1/24"}],
    "routes": [{"ip_netmask": "10.8.0.0/16", "next_hop": "10.9.0.254"}, {"default": True, "next_hop": "10.9.0.253"}],
    "members": [{"type": "interface", "name": "nic1"}],
}]
PLAIN_BRIDGE = [{
    "type": "linux_bridge", "name": "br-ctl", "addresses": [{"ip_netmask": "10.9.0.1/24"}],
    "members": [{"type": "interface", "name": "eth0"}],
}]
# Everything that a link may have, as os-net-config takes it: numbers and truth as text, other spellings of addresses.
MANY_WORDS = [{
    "type": "interface", "name": "eth0", "mtu": "1400", "use_dhcp": "false", "onboot": "yes", "defroute": "no",
    "nm_controlled": "off", "dns_servers": [], "domain": [],
    "addresses": [{"ip_netmask": "10.9.0.1/255.255.255.0"}, {"ip_netmask": "2001:DB8:0:0::10/64"}],
    "routes": [
        {"destination": "10.8.0.7/32", "nexthop": "10.9.0.254"},
        {"ip_netmask": "2001:DB8:0:1::/64", "next_hop": "2001:DB8::0:1", "default": "false"},
        {"ip_netmask": "0.0.0.0/0", "default": "True", "next_hop": "10.9.0.253"},
    ],
}]


def link(**keys):
    return {"type": "interface", "name": "eth0", **keys}


def bridge(**keys):
    return {"type": "bridge", "name": "br0", **keys}


def route(**keys):
    return link(addresses=[{"ip_netmask": "10.9.0.1/24"}], routes=[keys])


class NetworkTest(TemporaryDirectoryTest):
    def run_in_namespace(self, script, world=WORLD):
        return subprocess.run(
            ["unshare", "--net", "--mount", "bash", "-c", world + script], cwd=self.directory, text=True,
            capture_output=True, timeout=HANGS, check=False,
            env={**os.environ, "EDPM_NETWORK_STATE": str(self.directory / "state"), "PROGRAM": str(PROGRAM)},
        )

    def config(self, name, links):
        self.write(name, json.dumps({"network_config": links}))


@unittest.skipUnless(os.geteuid() == 0, "needs root for a network namespace")
class NetworkConfig(NetworkTest):
    def test_a_bridge_takes_the_address_over_and_a_second_run_changes_nothing(self):
        self.config("c", BRIDGE)
        done = self.run_in_namespace("""
            $PROGRAM apply c >/dev/null; echo "== again"; $PROGRAM apply c; $PROGRAM check c; echo "== end"
            ip -o -4 address show | awk '{print $2, $4}'; ip route; ip -o link show br-ctl | grep -o "mtu 1400"
        """)
        self.assertIn("== again\n== end\n", done.stdout, done.stderr)
        self.assertIn("br-ctl 10.9.0.1/24", done.stdout)
        self.assertNotIn("eth0 10.9.0.1/24", done.stdout)
        self.assertIn("10.8.0.0/16 via 10.9.0.254 dev br-ctl", done.stdout)
        self.assertIn("default via 10.9.0.253 dev br-ctl", done.stdout)
        self.assertTrue(done.stdout.endswith("mtu 1400\n"))

    def test_check_tells_the_differences_and_changes_nothing(self):
        self.config("c", BRIDGE)
        done = self.run_in_namespace("$PROGRAM check c; ip -o link")
        self.assertIn("create bridge br-ctl", done.stdout)
        self.assertNotIn("br-ctl", done.stdout.split("via 10.9.0.253")[1])

    def test_what_the_file_drops_is_removed_again(self):
        self.config("c", BRIDGE)
        self.config("d", [{"type": "interface", "name": "eth0", "addresses": [{"ip_netmask": "10.7.0.1/24"}]}])
        done = self.run_in_namespace("""
            { $PROGRAM apply c; $PROGRAM apply d; } >/dev/null; $PROGRAM check d; echo "== end"
            ip -o -4 address show | awk '{print $2, $4}'; ip -o link
        """)
        self.assertEqual(done.stdout.splitlines()[0], "== end", done.stdout + done.stderr)
        self.assertIn("eth0 10.7.0.1/24", done.stdout)
        self.assertNotIn("br-ctl", done.stdout)

    def test_a_member_that_the_file_drops_leaves_the_bridge_and_others_stay(self):
        self.config("c", [bridge(members=[link(), link(name="other")])])
        self.config("d", [bridge(members=[link()])])
        done = self.run_in_namespace("""
            ip address flush dev eth0; $PROGRAM apply c >/dev/null
            ip link add tap0 type veth peer name guest; ip link set tap0 master br0
            $PROGRAM check d; $PROGRAM apply d; $PROGRAM check d; echo "== end"; ip -o link show master br0
        """)
        told, _, ports = done.stdout.partition("== end\n")
        self.assertEqual(told, "other: leave br0\n" * 2, done.stderr)
        self.assertEqual([line.split()[1].split("@")[0] for line in ports.splitlines()], ["eth0", "tap0"])

    def test_an_address_that_was_there_before_outlives_the_file(self):
        self.config("c", [{"type": "interface", "name": "eth0", "addresses": [{"ip_netmask": "10.9.0.1/24"}]}])
        self.config("d", [{"type": "interface", "name": "eth0"}])
        done = self.run_in_namespace("$PROGRAM apply c; $PROGRAM apply d; ip -o -4 address show dev eth0")
        self.assertIn("10.9.0.1/24", done.stdout, done.stderr)

    def test_all_that_a_link_may_have_is_done_however_it_is_spelled(self):
        self.config("c", MANY_WORDS)
        done = self.run_in_namespace("""
            $PROGRAM validate c && $PROGRAM apply c >/dev/null; echo "== again"; $PROGRAM apply c; $PROGRAM check c
            echo "== end"; ip -o address show dev eth0; ip route; ip -6 route; ip -o link show eth0
        """)
        self.assertIn("== again\n== end\n", done.stdout, done.stderr)
        for part in (
            "inet 10.9.0.1/24", "inet6 2001:db8::10/64", "default via 10.9.0.253 dev eth0", "10.8.0.7 via 10.9.0.254",
            "2001:db8:0:1::/64 via 2001:db8::1", "mtu 1400",
        ):
            self.assertIn(part, done.stdout)

    def test_the_default_route_goes_with_the_address_of_the_card(self):
        self.config("c", PLAIN_BRIDGE)
        done = self.run_in_namespace("""
            ip address add 2001:db8::10/64 dev eth0 nodad
            ip route add default via 10.9.0.254 dev eth0 proto dhcp metric 100; ip route add 10.8.0.0/16 via 10.9.0.253
            $PROGRAM apply c >/dev/null; ip route; echo "== again"; $PROGRAM apply c; $PROGRAM check c; echo "== lost"
            ip route delete default; $PROGRAM check c; $PROGRAM apply c; ip route show default
        """)
        routes, _, rest = done.stdout.partition("== again\n")
        self.assertIn("default via 10.9.0.254 dev br-ctl proto static metric 100", routes, done.stderr)
        self.assertIn("10.8.0.0/16 via 10.9.0.253 dev br-ctl", routes)
        told = "route default via 10.9.0.254\n"
        self.assertIn(f"== lost\n{told}", rest.replace("eth0: has the address 2001:db8::10/64 of its own\n", ""))
        self.assertIn("default via 10.9.0.254 dev br-ctl", rest)

    def test_a_route_of_the_template_takes_the_place_of_the_cards_own(self):
        self.config("c", PLAIN_BRIDGE)
        self.config("d", BRIDGE)
        done = self.run_in_namespace("""
            ip route add default via 10.9.0.254 dev eth0 metric 100
            { $PROGRAM apply c; $PROGRAM apply d; } >/dev/null; $PROGRAM check d; ip route show default
        """)
        self.assertEqual(done.stdout.split(), "default via 10.9.0.253 dev br-ctl proto static linkdown".split(), done.stderr)

    def test_an_address_that_comes_back_on_a_member_is_told_and_taken_away(self):
        self.config("c", PLAIN_BRIDGE)
        done = self.run_in_namespace("""
            $PROGRAM apply c >/dev/null; ip address add 10.9.0.1/24 dev eth0; ip route append default via 10.9.0.254 dev eth0
            $PROGRAM check c; echo "== apply"; $PROGRAM apply c; echo "== end"; ip -o -4 address show
        """)
        self.assertIn("eth0: no address 10.9.0.1/24", done.stdout.split("== apply")[0], done.stderr)
        self.assertNotIn("eth0", done.stdout.split("== end")[1].replace("@eth0", ""))

    def test_a_members_own_address_is_refused_before_and_told_after(self):
        self.config("c", PLAIN_BRIDGE)
        done = self.run_in_namespace("""
            ip address add 10.7.0.1/24 dev eth0; $PROGRAM validate c; echo "rc $?"; ip -o link show br-ctl 2>&1
            $PROGRAM apply c >/dev/null; $PROGRAM check c; ip -o -4 address show dev eth0
        """)
        self.assertIn("eth0 has the address 10.7.0.1/24 of its own, but is to be a member", done.stderr)
        self.assertIn("rc 1\nDevice \"br-ctl\" does not exist", done.stdout)
        self.assertIn("eth0: has the address 10.7.0.1/24 of its own\n", done.stdout)
        self.assertIn("inet 10.7.0.1/24", done.stdout)

    def test_an_address_with_a_peer_is_the_hosts_address(self):
        self.config("c", [link(
            addresses=[{"ip_netmask": "10.6.0.7/32"}], routes=[{"default": True, "next_hop": "10.6.0.1"}],
        )])
        done = self.run_in_namespace("""
            ip address add 10.6.0.7 peer 10.6.0.1/32 dev eth0
            $PROGRAM validate c 10.6.0.7 && $PROGRAM apply c; $PROGRAM check c
        """)
        self.assertEqual(done.stdout, "route default via 10.6.0.1\n", done.stderr)

    def test_what_systemd_networkd_reads_anew_takes_nothing_of_ours(self):
        self.config("c", [link(
            addresses=[{"ip_netmask": "10.5.0.1/24"}], routes=[{"ip_netmask": "10.4.0.0/16", "next_hop": "10.5.0.254"}],
        )])
        world = """
            mount -t tmpfs none /run; mount -t tmpfs none /etc/systemd; mount -t sysfs -o ro none /sys
            mkdir -p /run/dbus /run/systemd/network /run/systemd/netif/{links,leases,lldp} /etc/systemd/network
            chown -R systemd-network: /run/systemd/netif
            printf '[Match]\\nName=eth0\\n[Network]\\nLinkLocalAddressing=no\\n' >/run/systemd/network/10-eth0.network
        """
        script = """
            dbus-daemon --system --fork --nopidfile; /lib/systemd/systemd-networkd 2>/dev/null & networkd=$!
            state() { grep -q "ADMIN_STATE=$1" /run/systemd/netif/links/*; }
            until state configured; do :; done
            $PROGRAM apply c >/dev/null
            touch /run/systemd/network/10-eth0.network
            rm -f /run/systemd/netif/links/*; networkctl reload; until state configured; do :; done
            $PROGRAM check c; echo "rc $?"; ip -o -4 address show dev eth0; ip route; kill $networkd; wait
        """
        done = self.run_in_namespace(script, world + WORLD)
        self.assertIn("rc 0\n", done.stdout, done.stderr)
        self.assertTrue(done.stdout.startswith("rc 0"), done.stdout)
        self.assertIn("10.5.0.1/24", done.stdout)
        self.assertIn("10.4.0.0/16 via 10.5.0.254", done.stdout)


# A link of a template, and what is said of it: the path, the value, the legal way.
REFUSED = [
    ("x", 'network_config[0].type: "x": write one of interface, bridge'),
    ({"type": "ovs_bridge", "name": "br-ex"}, 'network_config[0].type: "ovs_bridge": write one of'),
    (link(name=None), "network_config[0].name: is missing"),
    (link(name="a/b"), 'network_config[0].name: "a/b": write a name of 1 to 15'),
    (link(mtu="big"), 'network_config[0].mtu: "big": write a whole number from 68 to 65535'),
    (link(mtu=True), "network_config[0].mtu: true: write a whole number"),
    (link(use_dhcp=True), "network_config[0].use_dhcp: true: addresses by DHCP are not supported"),
    (link(onboot="no"), 'network_config[0].onboot: "no": each link is up at every start'),
    (link(nm_controlled=True), "network_config[0].nm_controlled: true: NetworkManager is not asked"),
    (link(adresses=[]), "network_config[0].adresses: []: this key is not carried out, leave it out; there are type, name"),
    (link(members=[]), "network_config[0].members: []: this key is not carried out"),
    (link(addresses="10.0.0.1/24"), 'network_config[0].addresses: "10.0.0.1/24": write a list'),
    (link(addresses=["10.0.0.1/24"]), 'network_config[0].addresses[0]: "10.0.0.1/24": write a mapping'),
    (link(addresses=[{}]), "network_config[0].addresses[0].ip_netmask: is missing"),
    (link(addresses=[{"ip_netmask": "10.0.0.300/24"}]), 'addresses[0].ip_netmask: "10.0.0.300/24": write an address with'),
    (link(addresses=[{"ip_netmask": "10.0.0.30"}]), 'addresses[0].ip_netmask: "10.0.0.30": write an address with its prefix'),
    (link(addresses=[{"ip_netmask": "10.0.0.1/24"}] * 2), "10.0.0.1 is of network_config[0] already: write it once"),
    (link(dns_servers=["a"]), 'network_config[0].dns_servers: "a": write an address without a prefix'),
    (route(default=True, next_hop="10.9.0.254", table=200), "routes[0].table: 200: this key is not carried out"),
    (route(default=True, next_hop="10.9.0.254", metric=500), "routes[0].metric: 500: this key is not carried out"),
    (route(default=True, next_hop="10.9.0.254", route_options="table 5"), 'routes[0].route_options: "table 5": this key'),
    (route(default="maybe", next_hop="10.9.0.254"), 'routes[0].default: "maybe": write true or false'),
    (route(default=True), "routes[0]: a default route needs next_hop"),
    (route(next_hop="10.9.0.254"), "routes[0]: it has no destination"),
    (route(default=False, next_hop="10.9.0.254"), "routes[0]: it has no destination"),
    (route(default=True, ip_netmask="10.8.0.0/16", next_hop="10.9.0.254"), "default: true and 10.8.0.0/16 are two routes"),
    (route(ip_netmask="10.8.1.0/16"), 'routes[0].ip_netmask: "10.8.1.0/16": write default, or a network'),
    (route(ip_netmask="10.8.1.0"), 'routes[0].ip_netmask: "10.8.1.0": write default, or a network with its prefix'),
    (route(ip_netmask="10.8.0.0/16", destination="10.7.0.0/16"), "routes[0]: ip_netmask is destination"),
    (route(ip_netmask="10.8.0.0/16", next_hop="2001:db8::1"), "10.8.0.0/16 and 2001:db8::1 are of IPv4 and IPv6"),
    (route(ip_netmask="10.8.0.0/16", next_hop="10.9.0.254/24"), 'routes[0].next_hop: "10.9.0.254/24": write an address'),
    (bridge(members=[bridge(name="br1")]), 'members[0].type: "bridge": write one of interface, dummy, vlan'),
    (bridge(members=[link(), link()]), "members[1].name: eth0 is network_config[0].members[0] already"),
    (bridge(members=[link(name="nic1"), link()]), "members[1].name: eth0 is network_config[0].members[0] already"),
    (bridge(members=[link(primary=True), link(name="other")]), "members[0].primary: it has no effect where a bridge has"),
    ({"type": "vlan", "vlan_id": 5}, "network_config[0].device: is missing: a vlan needs a device"),
    ({"type": "vlan", "device": "eth0"}, "network_config[0].vlan_id: is missing"),
    ({"type": "vlan", "device": "eth0", "vlan_id": 4095}, "network_config[0].vlan_id: 4095: write a whole number from 1 to"),
    ({"type": "vlan", "device": "vlan5", "vlan_id": 5}, "network_config[0].device: vlan5 is this vlan or a later one"),
    (route(ip_netmask="10.8.0.0/16", next_hop="10.9.0.1"), "routes[0]: 10.9.0.1 is this host's address or of a whole"),
    (route(ip_netmask="10.8.0.0/16", next_hop="10.9.0.255"), "routes[0]: 10.9.0.255 is this host's address or of a whole"),
    (route(ip_netmask="10.9.0.0/24", next_hop="10.9.0.254"), "routes[0]: 10.9.0.0/24 is reached by the address of eth0"),
    (link(mtu=1000, addresses=[{"ip_netmask": "2001:db8::5/64"}]), "network_config[0].mtu: 1000: addresses of IPv6 need"),
    *(
        (link(addresses=[{"ip_netmask": it}]), f'addresses[0].ip_netmask: "{it}": a host cannot have this address')
        for it in ("10.7.0.0/24", "10.7.0.255/24", "239.7.0.5/24", "127.0.0.5/8", "0.0.0.0/0", "2001:db8::/64", "ff02::5/64")
    ),
]
# Two links that are right alone: of routes to one network the later would replace the other on the host.
REFUSED_TOGETHER = [
    (
        [
            route(default=True, next_hop="10.9.0.254"),
            link(name="other", addresses=[{"ip_netmask": "10.7.0.5/24"}], routes=[{"default": True, "next_hop": "10.7.0.254"}]),
        ],
        "network_config[1].routes[0]: network_config[0].routes[0] is a route to default already: write one of them",
    ),
    (
        [{"type": "vlan", "device": "eth0", "vlan_id": 5}, {"type": "vlan", "name": "storage", "device": "nic1", "vlan_id": 5}],
        "network_config[1].vlan_id: 5 of eth0 is network_config[0] already: write one entry",
    ),
    (None, "network_config: null: write a list of links, or [] for none"),
]
# What only the host can say, of its cards and of the addresses and routes that they have.
REFUSED_HERE = [
    ("", link(name="eth7"), "network_config[0].name: there is no interface eth7 on this host; it has eth0, other"),
    ("", {"type": "dummy", "name": "eth0"}, "network_config[0].name: eth0 exists and is no dummy"),
    ("", {"type": "vlan", "device": "eth7", "vlan_id": 5}, "network_config[0].device: there is no interface eth7"),
    ("", {"type": "vlan", "device": "eth0", "vlan_id": 5, "mtu": 9000}, "network_config[0].mtu: 9000: vlan5 takes at most 1500"),
    ("", bridge(mtu=9000, members=[link()]), "network_config[0].mtu: 9000: br0 takes at most 1500"),
    ("", route(default=True, next_hop="10.90.0.254"), "routes[0]: 10.90.0.254 is in no network of eth0: correct it"),
    ("", bridge(), "the address 10.9.0.1/24 is on eth0, which is not in the template"),
    ("", bridge(members=[link()], addresses=[]), "eth0 has the address 10.9.0.1/24 of its own, but is to be a member"),
    (
        "ip address add 10.6.0.7 peer 10.6.0.1/32 dev eth0; ip route add default via 10.6.0.1 dev eth0; ",
        bridge(members=[link()], addresses=[{"ip_netmask": "10.6.0.7/32"}]),
        "the template has no route default via 10.6.0.1, which eth0 would lose: add it",
    ),
    ("for n in 1 2 10; do ip link add b$n type veth peer name c$n; done; ", link(name="nic2"), "nic2 may be b10 or b2"),
    ("", link(dns_servers=["192.0.2.53"]), "network_config[0].dns_servers: 192.0.2.53 is not in /etc/resolv.conf"),
    ("", link(domain="example.net"), "network_config[0].domain: example.net is not in /etc/resolv.conf"),
]
RESOLVER = "echo 'nameserver 2001:DB8:0::53\nsearch example.org' >resolv; mount --bind resolv /etc/resolv.conf; "


@unittest.skipUnless(os.geteuid() == 0, "needs root for a network namespace")
class NetworkTemplate(NetworkTest):
    def refusal(self, links, world=WORLD, word="validate"):
        self.config("c", links)
        done = self.run_in_namespace(f"ip address >before; $PROGRAM {word} c; rc=$?; ip address | cmp - before && exit $rc", world)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        return done.stderr

    def test_what_a_template_cannot_have_is_refused_by_path_and_value_and_nothing_is_done(self):
        for entry, said in REFUSED:
            with self.subTest(said):
                self.assertIn(said, self.refusal([entry], word="apply"))
        for entries, said in REFUSED_TOGETHER:
            with self.subTest(said):
                self.assertIn(said, self.refusal(entries, word="apply"))

    def test_the_example_of_the_documentation_can_be_applied(self):
        text = (COLLECTION / "README.md").read_text().split("## The network template")[1]
        text = yaml.safe_load(text.split("```yaml\n")[1].split("```")[0])["edpm_network_config_template"]
        given = yaml.safe_load(jinja2.Template(text).render(ctlplane_ip="192.0.2.10", storage_ip="198.51.100.10"))
        self.write("c", json.dumps(given))
        world = WORLD + "ip address delete 10.9.0.1/24 dev eth0; ip address add 192.0.2.10/24 dev eth0; "
        done = self.run_in_namespace("$PROGRAM validate c 192.0.2.10 && echo fine", world)
        self.assertEqual(done.stdout, "fine\n", done.stderr)

    def test_everything_that_is_wrong_is_told_at_once(self):
        found = self.refusal([link(mtu=1), route(table=1)])
        self.assertIn("network_config[0].mtu", found)
        self.assertIn("network_config[1].routes[0].table", found)

    def test_a_file_of_another_form_is_refused(self):
        for content in ("null", "[]", '{"network_config": {}}', '{"network_config": [], "other": 1}'):
            with self.subTest(content):
                self.write("c", content)
                done = self.run_in_namespace("$PROGRAM validate c")
                self.assertIn("write ", done.stderr)
                self.assertEqual(done.returncode, 1)

    def test_what_this_host_cannot_do_is_refused_before_anything_is_done(self):
        for world, entry, said in REFUSED_HERE:
            entry = {"addresses": [{"ip_netmask": "10.9.0.1/24"}], **entry} if entry["type"] == "bridge" else entry
            with self.subTest(said):
                self.assertIn(said, self.refusal([entry], WORLD + world))

    def test_a_vlan_may_have_the_mtu_that_the_template_gives_the_link_below(self):
        self.config("c", [link(mtu=9000), {"type": "vlan", "device": "nic1", "vlan_id": 5, "mtu": 9000}])
        done = self.run_in_namespace("$PROGRAM validate c")
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_addresses_of_small_networks_and_a_route_that_stands_twice_are_no_fault(self):
        routes = [{"default": True, "next_hop": "10.9.0.0"}, {"ip_netmask": "0.0.0.0/0", "next_hop": "10.9.0.0"}]
        small = [{"ip_netmask": it} for it in ("10.6.0.7/32", "2001:db8::/127", "2001:db8:0:1::/128")]
        self.config("c", [link(addresses=[{"ip_netmask": "10.9.0.1/31"}, *small], routes=routes)])
        done = self.run_in_namespace("$PROGRAM validate c && $PROGRAM apply c >/dev/null && $PROGRAM check c")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_name_servers_and_domains_that_the_host_has_are_no_fault(self):
        self.config("c", [link(dns_servers=["2001:db8::53"], domain="example.org")])
        done = self.run_in_namespace("$PROGRAM validate c && $PROGRAM check c", WORLD + RESOLVER)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_check_tells_of_a_name_server_that_the_host_lost(self):
        self.config("c", [link(dns_servers=["192.0.2.53"])])
        done = self.run_in_namespace("$PROGRAM check c", WORLD + RESOLVER)
        self.assertIn("192.0.2.53 is not in /etc/resolv.conf", done.stdout, done.stderr)

    def test_the_address_by_which_the_host_is_reached_cannot_be_dropped(self):
        self.config("c", BRIDGE)
        self.config("d", [])
        done = self.run_in_namespace("$PROGRAM apply c >/dev/null; $PROGRAM validate d 10.9.0.2 && $PROGRAM validate d 10.9.0.1")
        self.assertEqual(
            done.stderr, "the template has no address 10.9.0.1, by which this host is reached: add it to a link\n",
        )


if __name__ == "__main__":
    unittest.main()
