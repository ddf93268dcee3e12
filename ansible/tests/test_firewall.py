"""The role that configures the firewall, whose rules the kernel reads: each key is carried out, or refused by name."""

import json
import pathlib
import re
import shutil
import tempfile
import unittest

import yaml
from support import BIN, COLLECTION, FIREWALL, NOTING_SYSTEMCTL, TemporaryDirectoryTest, collection_module, collections_path

firewall = collection_module("plugin_utils.firewall")
DOCS = COLLECTION.parents[2] / "docs"

# As users take them over from upstream.
RULES = """\
- rule_name: "200 exporter, storage card only"
  rule: {proto: tcp, dport: 9100, interface: eno2}
- rule_name: "201 telnet is shut"
  rule: {proto: tcp, dport: 23, jump: DROP}
- rule_name: "202 old rule, taken away"
  rule: {proto: tcp, dport: 8080, extras: {ensure: absent}}
- rule_name: "203 networks of both families"
  rule: {proto: tcp, dport: [9000, 20:21, 9000-9001], source: ["192.0.2.0/24", "198.51.100.7", "2001:DB8::/32"]}
- rule_name: "204 everything from one network"
  rule: {proto: all, source: 203.0.113.0/24}
- rule_name: "205 new connections only"
  rule: {proto: tcp, dport: 5000, state: [NEW]}
- rule_name: "206 answers of a port to IPv6"
  rule: {proto: udp, sport: 123, ipversion: ipv6, action: reject, chain: INPUT, table: filter}
- rule_name: "207 a protocol by its number"
  rule: {proto: 112, destination: 224.0.0.18, interface: [eno1, eno2]}
- rule_name: "208 one by its name"
  rule: {proto: VRRP}
- rule_name: 010
  rule: {port: 53}
"""

NFT = """\
    tcp dport { 53 } accept comment "010"
    iifname { "eno2" } tcp dport { 9100 } accept comment "200 exporter, storage card only"
    tcp dport { 23 } drop comment "201 telnet is shut"
    ip saddr { 192.0.2.0/24, 198.51.100.7/32 } tcp dport { 20-21, 9000-9001 } accept comment "203 networks of both families"
    ip6 saddr { 2001:db8::/32 } tcp dport { 20-21, 9000-9001 } accept comment "203 networks of both families"
    ip saddr { 203.0.113.0/24 } accept comment "204 everything from one network"
    tcp dport { 5000 } ct state { new } accept comment "205 new connections only"
    meta nfproto ipv6 udp sport { 123 } reject comment "206 answers of a port to IPv6"
    iifname { "eno1", "eno2" } ip daddr { 224.0.0.18/32 } meta l4proto 112 accept comment "207 a protocol by its number"
    meta l4proto 112 accept comment "208 one by its name"
"""

IPTABLES = """\
-p tcp --dport 53 -m comment --comment "010" -j ACCEPT
-i eno2 -p tcp --dport 9100 -m comment --comment "200 exporter, storage card only" -j ACCEPT
-p tcp --dport 23 -m comment --comment "201 telnet is shut" -j DROP
-s 192.0.2.0/24,198.51.100.7/32 -p tcp --dport 20:21 -m comment --comment "203 networks of both families" -j ACCEPT
-s 192.0.2.0/24,198.51.100.7/32 -p tcp --dport 9000:9001 -m comment --comment "203 networks of both families" -j ACCEPT
-s 203.0.113.0/24 -m comment --comment "204 everything from one network" -j ACCEPT
-p tcp --dport 5000 -m conntrack --ctstate NEW -m comment --comment "205 new connections only" -j ACCEPT
-i eno1 -d 224.0.0.18/32 -p 112 -m comment --comment "207 a protocol by its number" -j ACCEPT
-i eno2 -d 224.0.0.18/32 -p 112 -m comment --comment "207 a protocol by its number" -j ACCEPT
-p 112 -m comment --comment "208 one by its name" -j ACCEPT
"""

TWICE = "- rule_name: a\n  rule:\n    dport: 22\n    dport: 80\n"
REFUSED = [
    ({"dport": 22, "source": "0.0.0.0"}, "source '0.0.0.0' is one address that no host has: for all of them write 0.0.0.0/0."),
    ({"dport": 22, "destination": "::/128"}, "destination '::/128' is one address that no host has: for all of them write ::/0."),
    ({"proto": "tcp", "dports": 1}, "key 'dports' is not carried out: did you mean dport?"),
    ({"proto": "tcp", "limit": "20/min"}, "key 'limit' is not carried out"),
    ({"proto": "tcp", "dport": "ssh"}, "dport must be numbers of ports, or ranges such as 5900-6923, not 'ssh'."),
    ({"proto": "tcp", "dport": 70000}, "not '70000'."),
    ({"proto": "tcp", "dport": "30-20"}, "not '30-20'."),
    ({"proto": "tcp", "dport": True}, "not 'True'."),
    ({"proto": "tcp", "dport": []}, "dport has no value"),
    ({"proto": "tcp", "dport": 1, "port": 2}, "dport and port are the same: keep dport alone."),
    ({"proto": "all", "dport": 1}, "ports need proto tcp, udp, udplite, sctp, dccp, not 'all'."),
    ({"proto": "tpc", "dport": 1}, "proto must be all, tcp, udp"),
    ({"dport": 1, "jump": "LOG"}, "jump must be accept or drop or reject, not 'LOG'."),
    ({"dport": 1, "jump": "drop", "action": "accept"}, "action and jump are the same: keep action alone."),
    ({"dport": 1, "chain": "OUTPUT"}, "chain must be input, not 'OUTPUT'."),
    ({"dport": 1, "table": "raw"}, "table must be filter, not 'raw'."),
    ({"dport": 1, "state": ["OLD"]}, "state must be new, established, related, invalid, untracked, not 'OLD'."),
    ({"dport": 1, "source": "host.example"}, "source must be addresses or networks such as 192.0.2.0/24"),
    ({"dport": 1, "source": "192.0.2.0/24", "destination": "2001:db8::1"}, "are of different families: no packet fits."),
    ({"dport": 1, "source": "192.0.2.0/24", "ipversion": "ipv6"}, "are of different families: no packet fits."),
    ({"dport": 1, "ipversion": 4}, "ipversion must be ipv4 or ipv6, not 4."),
    ({"dport": 1, "interface": "eth0; drop"}, "interface must be names of network interfaces, not 'eth0; drop'."),
    ({"dport": 1, "extras": {"ensure": "gone"}}, "ensure must be present or enabled or absent, not 'gone'."),
    ({"dport": [[1]]}, "dport must be short values."),
    ({"dport": 1, "source": "1" * 1000}, "source must be short values."),
    ({}, "write proto: all if that is meant."),
    ({"action": "accept", "chain": "INPUT"}, "write proto: all if that is meant."),
    (None, "a rule must have keys"),
]

# What the role writes on the host goes into a directory of the test.
START = """
set -e
for path in etc/edpm-firewall etc/systemd/system usr/local/sbin var/lib/edpm-config; do
  mkdir -p "$0/$path" "/$path"
  mount --bind "$0/$path" "/$path"
done
exec "$@"
"""

CONFIGURE = """
- hosts: localhost
  gather_facts: false
  tasks:
    - ansible.builtin.import_role:
        name: osp.edpm.edpm_nftables
        tasks_from: configure
"""

OTHERS = CONFIGURE.replace("configure", "others")

# The client is fe80::1 in this namespace, the server fe80::2 in another one; other packets from there are dropped.
DHCPV6 = r"""
set -e
nft -f "$0/rules.nft"
unshare --net sleep infinity &
server=$!
trap 'kill $server' EXIT
until [ "$(readlink /proc/$server/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do :; done
ip link add here type veth peer name there netns "$server"
ip address add fe80::1/64 dev here nodad
ip link set here up
nsenter --net --target "$server" sh -c 'ip address add fe80::2/64 dev there nodad && ip link set there up'
exec 3< <(python3 - <<'END'
import select, socket
def listen(port):
    it = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    it.bind(("::", port))
    return it
others, client = listen(547), listen(546)
client.settimeout(60)
print("ready", flush=True)
client.recv(9)
# Sent before, and so received before, if it was let in.
print("others too" if select.select([others], [], [], 0)[0] else "answered", flush=True)
END
)
read -r ready <&3
nsenter --net --target "$server" python3 - <<'END'
import socket
it = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
it.bind(("::", 547))
here = lambda port: ("fe80::1", port, 0, socket.if_nametoindex("there"))
it.sendto(b"no", here(547))
it.sendto(b"yes", here(546))
END
cat <&3
"""


class Ports(unittest.TestCase):
    """The ports at which programs listen as the collection configures them, and those that it lets in."""

    @staticmethod
    def yaml(name):
        """A file of a role, with the ports that QEMU has unless the user gives it others."""
        text = (COLLECTION / "roles" / name).read_text()
        ports = dict(re.findall(r"^  (\w+_port_(?:min|max)): (\d+)$", text, re.MULTILINE))
        return yaml.safe_load(re.sub(r"{{ edpm_libvirt_ports\.(\w+) }}", lambda it: ports[it[1]], text))

    def let_in(self, rules):
        """The ports of rules, by protocol."""
        found = firewall.read({"rules": rules})
        return sorted((rule["protocol"], port) for rule in found for port in rule["dports"])

    def test_libvirt_and_qemu_listen_where_its_rules_let_in_and_nowhere_else(self):
        libvirt = self.yaml("edpm_libvirt/vars/main.yml")
        ports = libvirt["edpm_libvirt_qemu_ports"]
        ranges = [("tcp", f"{ports[f'{of}_port_min']}-{ports[f'{of}_port_max']}") for of in ("remote_display", "migration")]
        self.assertEqual(self.let_in(libvirt["edpm_libvirt_plain_rules"]), ranges)
        # libvirt's own port for TLS, which its files do not change; without TLS it listens nowhere.
        self.assertEqual(self.let_in(libvirt["edpm_libvirt_tls_rules"]), [("tcp", "16514")])
        daemon = (COLLECTION / "roles" / "edpm_libvirt" / "templates" / "daemon.conf.j2").read_text()
        self.assertNotRegex(daemon, "tls_port|tcp_port|listen_addr")
        self.assertEqual(re.findall("listen_tcp = (.*)", daemon), ["0"])

    def test_tunnels_end_where_the_rules_of_ovn_let_in(self):
        ovn = self.yaml("edpm_ovn/defaults/main.yml")
        options = self.yaml("edpm_ovn/meta/argument_specs.yml")["argument_specs"]["main"]["options"]
        tunnels = {"geneve": ("udp", "6081"), "vxlan": ("udp", "4789")}
        self.assertEqual(options["edpm_ovn_encap_type"]["choices"], list(tunnels))
        self.assertEqual(self.let_in(ovn["edpm_ovn_firewall_rules"]), sorted(tunnels.values()))
        # Open vSwitch's database is for this host alone.
        self.assertEqual(ovn["edpm_ovn_manager"], "ptcp:6640:127.0.0.1")

    def test_the_pages_name_every_port_that_a_role_lets_in(self):
        found = set()
        for path in (COLLECTION / "roles").glob("*/*/main.yml"):
            if path.parts[-2] in ("defaults", "vars"):
                for name, rules in self.yaml(path).items():
                    if name.endswith("_rules") and isinstance(rules, list):
                        found.update((path.parts[-3], *port) for port in self.let_in(rules))
        self.assertEqual({role for role, _, _ in found}, {"edpm_libvirt", "edpm_ovn"})
        hosts, networking = (DOCS.joinpath(name).read_text() for name in ("hosts.md", "networking.md"))
        for role, protocol, port in sorted(found):
            with self.subTest(role=role, port=port):
                words = f"{protocol.upper()} {port.replace('-', '–')}"
                self.assertIn(words, hosts)
                if role == "edpm_ovn":
                    self.assertIn(f"| {words} |", networking)

    def test_nova_leaves_the_ports_of_consoles_to_qemu(self):
        rendered = (DOCS.parent / "crates" / "nova-config" / "src" / "conf" / "nova.rs").read_text()
        self.assertIn('"server_listen"', rendered)
        self.assertNotRegex(rendered, "vnc_port|port_range|serial_console|spice")


class FirewallTest(TemporaryDirectoryTest):
    """A host whose rules lie in a directory, and whose kernel is this machine's in a namespace without rules."""

    def setUp(self):
        super().setUp()
        self.write("bin/systemctl", NOTING_SYSTEMCTL).chmod(0o755)
        self.rules = self.directory / "root/etc/edpm-firewall"

    def tools(self):
        libraries = ":".join(str(path) for path in FIREWALL.glob("usr/lib/*-linux-gnu"))
        xtables = next(FIREWALL.glob("usr/lib/*-linux-gnu/xtables"), None)
        return {
            "PATH": f"{self.directory}/bin:{BIN}:/usr/sbin:/usr/bin:/sbin:/bin:{FIREWALL}/usr/sbin",
            **({"LD_LIBRARY_PATH": libraries, "XTABLES_LIBDIR": str(xtables)} if libraries else {}),
        }

    def play(self, playbook=CONFIGURE, **more):
        """Runs a play on the host; its exit code and what it said in one line."""
        name = playbook if playbook.startswith("osp.") else self.write("play.yml", playbook)
        done = self.command(
            "unshare", "--mount", "--net", "bash", "-c", START, self.directory / "root",
            BIN / "ansible-playbook", "-i", "localhost,", "-c", "local", "-e", json.dumps(more), name,
            env={**self.tools(), "ANSIBLE_COLLECTIONS_PATH": collections_path(self.directory)},
        )
        return done.returncode, " ".join((done.stdout + done.stderr).split())

    def in_namespace(self, script):
        """What a script says in a network namespace of its own."""
        done = self.command("unshare", "--net", "bash", "-c", script, self.rules, env=self.tools())
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout


class Configured(FirewallTest):
    """The role configures the host once, with rules as text; each test reads what it left."""

    @classmethod
    def setUpClass(cls):
        cls.kept = pathlib.Path(tempfile.mkdtemp(prefix="edpm-ansible-firewall-"))
        cls.addClassCleanup(shutil.rmtree, cls.kept, ignore_errors=True)

    def setUp(self):
        super().setUp()
        if not list(self.kept.iterdir()):
            code, said = self.play(edpm_nftables_user_rules=RULES)
            self.assertEqual(code, 0, said)
            shutil.copytree(self.rules, self.kept, dirs_exist_ok=True)
        self.rules = self.kept
        self.nft, self.iptables = ((self.rules / name).read_text() for name in ("rules.nft", "rules.iptables"))

    def test_every_key_of_a_rule_is_carried_out_by_each_front_end(self):
        self.assertTrue(self.nft.endswith(NFT + "  }\n}\n"), self.nft)
        lines = "".join(f"-A EDPM-INPUT {line}\n" for line in IPTABLES.splitlines())
        self.assertTrue(self.iptables.endswith(f"{lines}-A EDPM-INPUT -j DROP\nCOMMIT\n"), self.iptables)
        # The kernel takes them, and has what was asked for.
        kernel = self.in_namespace('nft -f "$0/rules.nft" && nft list table inet edpm; iptables-nft-restore "$0/rules.iptables"')
        for part in ('iifname "eno2" tcp dport 9100 accept', "tcp dport 23 drop", "ip saddr 203.0.113.0/24 accept"):
            self.assertIn(part, kernel)

    def test_ssh_is_open_from_everywhere(self):
        for family, network in (("ip", "0.0.0.0/0"), ("ip6", "::/0")):
            self.assertIn(f"    {family} saddr {{ {network} }} tcp dport {{ 22 }} accept", self.nft)
        self.assertIn("-A EDPM-INPUT -s 0.0.0.0/0 -p tcp --dport 22 -m comment", self.iptables)

    def test_the_answer_of_a_dhcpv6_server_comes_in(self):
        self.assertEqual(self.in_namespace(DHCPV6), "answered\n")


class Firewall(FirewallTest):
    def test_what_a_rule_cannot_say_is_refused_by_name_of_rule_and_key(self):
        for rule, words in REFUSED:
            with self.subTest(rule):
                with self.assertRaises(firewall.RuleError) as refused:
                    firewall.read({"edpm_nftables_user_rules": [{"rule_name": "9 mine", "rule": rule}]})
                self.assertIn("edpm_nftables_user_rules, rule '9 mine': ", str(refused.exception))
                self.assertIn(words, str(refused.exception))

    def test_entries_without_a_name_and_with_keys_beside_the_rule_are_refused(self):
        for entry, words in (
            ({"rule": {"dport": 1}}, "v, rule 1: rule_name is missing."),
            ({"rule_name": "a\nb", "rule": {"dport": 1}}, "rule_name must be one line without backslashes."),
            ({"rule_name": "a", "rule": {"dport": 1}, "state": []}, "v, rule 'a': key 'state' is not carried out"),
            ("text", "v, rule 1: an entry must have keys: rule_name, rule."),
        ):
            with self.subTest(entry), self.assertRaises(firewall.RuleError) as refused:
                firewall.read({"v": [entry]})
            self.assertIn(words, str(refused.exception))
        for given, words in (("rule_name: a", "v must be a list of rules"), ("[", "v is no YAML: "), (TWICE, "key dport stands twice")):
            with self.subTest(given), self.assertRaises(firewall.RuleError) as refused:
                firewall.read({"v": given})
            self.assertIn(words, str(refused.exception))
        self.assertEqual(firewall.read({"v": "# none\n", "w": None, "x": []}), [])

    def test_a_few_lines_of_a_host_that_stand_for_millions_of_values_are_refused_at_once(self):
        value = "&a0 [x]"
        for n in range(1, 30):
            value = f"&a{n} [{value}, {', '.join([f'*a{n - 1}'] * 9)}]"
        text = f"- rule_name: bomb\n  rule: {{dport: {value}}}\n"
        with self.assertRaises(firewall.RuleError) as refused:
            firewall.read({"v": text})
        self.assertIn("rule 'bomb': dport must be short values.", str(refused.exception))

    def test_a_refused_rule_of_the_user_changes_no_host(self):
        code, said = self.play("osp.edpm.configure_os", edpm_nftables_user_rules=RULES.replace("dport: 23", "dport: telnet"))
        self.assertNotEqual(code, 0)
        self.assertIn("edpm_nftables_user_rules, rule '201 telnet is shut': dport must be numbers of ports", said)
        self.assertIn("changed=0", said)

    def test_a_refused_rule_of_a_service_is_named_with_its_file(self):
        self.write("root/var/lib/edpm-config/firewall/mine.yaml", "- rule_name: mine\n  rule: {dport: 1, limit: 1/s}\n")
        code, said = self.play()
        self.assertNotEqual(code, 0)
        self.assertIn("/var/lib/edpm-config/firewall/mine.yaml, rule 'mine': key 'limit' is not carried out", said)
        self.assertFalse((self.rules / "rules.nft").exists())

    def test_ssh_is_open_only_from_the_ranges_that_are_given_and_names_of_rules_may_be_numbers(self):
        rules = [{"rule_name": 10, "rule": {"dport": 53}}, {"rule_name": "9", "rule": {"dport": 54}}]
        ranges = ["192.0.2.0/24", "198.51.100.0/24"]
        code, said = self.play(edpm_sshd_allowed_ranges=ranges, edpm_nftables_user_rules=rules)
        self.assertEqual(code, 0, said)
        nft = (self.rules / "rules.nft").read_text()
        self.assertIn("    ip saddr { 192.0.2.0/24, 198.51.100.0/24 } tcp dport { 22 } accept", nft)
        self.assertNotIn("/0 }", nft)
        self.assertIn('    tcp dport { 53 } accept comment "10"\n    tcp dport { 54 } accept comment "9"\n', nft)

    def test_rules_that_would_shut_ansible_out_are_not_written(self):
        login = CONFIGURE.replace("  tasks:", "  environment: {SSH_CONNECTION: 192.0.2.9 40000 198.51.100.1 22}\n  tasks:")
        elsewhere = ["198.51.100.0/24", "2001:db8::/32"]
        code, said = self.play(login, edpm_sshd_allowed_ranges=elsewhere)
        self.assertNotEqual(code, 0)
        self.assertIn("edpm_sshd_allowed_ranges has no network of 192.0.2.9, from which Ansible logs in to port 22", said)
        self.assertFalse((self.rules / "rules.nft").exists())
        # A rule of the user may let it in as well.
        rules = [{"rule_name": "1 runs", "rule": {"dport": "20-22", "source": "192.0.2.0/28"}}]
        code, said = self.play(login, edpm_sshd_allowed_ranges=elsewhere, edpm_nftables_user_rules=rules)
        self.assertEqual(code, 0, said)
        self.assertTrue((self.rules / "rules.nft").exists())


class OtherFirewalls(FirewallTest):
    def test_another_firewall_is_named_with_the_command_that_ends_it(self):
        systemctl = '#!/bin/sh\n[ "$1" = is-active ] && case "$3" in firewalld.service) exit 0 ;; esac\nexit 3\n'
        self.write("bin/systemctl", systemctl).chmod(0o755)
        self.write("bin/ufw", "#!/bin/sh\necho 'Status: inactive'\n").chmod(0o755)
        code, said = self.play(OTHERS)
        self.assertNotEqual(code, 0)
        self.assertIn("firewalld is active on this host, and would drop what the rules of this collection accept", said)
        self.assertIn("run `systemctl disable --now firewalld` on the host; or keep it", said)
        self.assertNotIn("guests", said)
        self.write("bin/systemctl", systemctl.replace("firewalld", "nftables")).chmod(0o755)
        said = self.play(OTHERS)[1]
        self.assertIn("`systemctl disable --now nftables` on the host (stopping nftables.service empties all tables of the kernel, "
                      "those of guests too: move guests away first); or keep it", said)
        self.write("bin/systemctl", "#!/bin/sh\nexit 3\n").chmod(0o755)
        self.assertEqual(self.play(OTHERS)[0], 0)
        self.write("bin/ufw", "#!/bin/sh\necho 'Status: active'\n").chmod(0o755)
        code, said = self.play(OTHERS)
        self.assertNotEqual(code, 0)
        self.assertIn("run `ufw disable` on the host", said)


if __name__ == "__main__":
    unittest.main()
