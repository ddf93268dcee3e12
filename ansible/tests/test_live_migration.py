"""How guests move between hosts, as libvirt's and nova's playbooks configure it: over TLS, over ssh, or not at all."""

import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import yaml
from certificates import Authority
from support import ANSIBLE, BIN, TemporaryDirectoryTest, collections_path
from test_nova_audit import NFT, PODMAN, START, SYSTEMCTL

# QEMU's user of the image, logins to other hosts, and nova's files; everything else as in the audit's tests.
MIGRATING_PODMAN = r"""#!/bin/bash
here=$(dirname "$0")
case "$*" in
*"id -u"*) echo "podman $*" >>"$here/notes"; echo 64998 ;;
*virt-admin*) echo "podman $*" >>"$here/notes"; [ ! -e "$here/keeps-certificate" ] ;;
"container exists libvirt") ;;
*qemu+*) echo "podman $*" >>"$here/notes"; [ ! -e "$here/refuses" ] || { cat "$here/refuses" >&2; exit 1; } ;;
"exec nova_compute sh"*)
    cd /var/lib/openstack/config/nova && sha256sum -- *nova*.conf | sort -k 2
    cd /var/lib/edpm-config/nova && sha256sum live-migration.conf config-drive.conf 2>/dev/null | sed 's/  /  01-nova_/' ;;
*) exec "$here/podman-of-audits" "$@" ;;
esac
"""

# It begins as Debian's kernels do.
SYSCTL = r"""#!/bin/bash
here=$(dirname "$0")
case $1 in
--ignore) cat "$here/userfaultfd" 2>/dev/null || echo 0 ;;
--load=*) [ ! -e "$here/read-only" ] && sed -n 's/^vm.unprivileged_userfaultfd = //p' "${1#*=}" >"$here/userfaultfd" ;;
*) exit 1 ;;
esac
"""
NETCAT = "#!/bin/sh\necho 'usage: nc [-46CDdFhklNnrStUuvZz]' >&2\n"
AUDIT = """
- hosts: all
  gather_facts: false
  tasks:
    - ansible.builtin.include_role: {name: osp.edpm.edpm_install_certs, tasks_from: audit}
    - ansible.builtin.include_role: {name: osp.edpm.edpm_libvirt, tasks_from: audit}
    - ansible.builtin.include_role: {name: osp.edpm.edpm_nova, tasks_from: audit}
    - ansible.builtin.include_role: {name: osp.edpm.edpm_audit}
    - ansible.builtin.copy:
        content: "{{ {'expected': edpm_audit_expected, 'differences': edpm_audit_differences} | to_json }}"
        dest: "{{ playbook_dir }}/audit.json"
"""
ADDRESS = "192.0.2.7"
TLS = {"edpm_tls_certs_enabled": True, "edpm_libvirt_qemu_options": {"user": '"+of-mine"'}}
PKI = "/var/lib/edpm-config/libvirt/pki"


class Host(TemporaryDirectoryTest):
    """A host of the test's own, which is the side of Ansible too."""

    def setUp(self):
        super().setUp()
        programs = {
            "podman": MIGRATING_PODMAN, "podman-of-audits": PODMAN.replace('$(dirname "$0")', f"{self.directory}/bin"),
            "systemctl": SYSTEMCTL, "nft": NFT, "nc": NETCAT, "sysctl": SYSCTL,
        }
        for name in ("systemd-run", "iptables-nft", "iptables-legacy"):
            programs[name] = "#!/bin/bash\n[ ${0##*/} = systemd-run ]\n"
        for name, text in programs.items():
            self.write(f"bin/{name}", text).chmod(0o755)
        users, groups = (pathlib.Path(path).read_text() for path in ("/etc/passwd", "/etc/group"))
        self.write("root/passwd", f"{users}nova:x:42436:42436::/home/nova:/bin/sh\n")
        self.write("root/group", f"{groups}nova:x:42436:\nlibvirt:x:42473:nova\n")
        self.write("src/01-nova.conf", "[DEFAULT]\nhost = h\n")

    def ansible(self, playbook, **more):
        """Runs a playbook; how it ended."""
        given = {
            "edpm_nova_config_src": f"{self.directory}/src", "edpm_nova_compute_image": "nova:1", "edpm_nova_libvirt_image": "libvirt:1",
            "canonical_hostname": "h", "ctlplane_ip": ADDRESS, "ansible_become": False, **more,
        }
        return self.command(
            "unshare", "--mount", "bash", "-c", START, self.directory / "root",
            BIN / "ansible-playbook", "--diff", "-i", "h,", "-c", "local", "-e", json.dumps(given), playbook,
            env={
                "PATH": f"{self.directory}/bin:{BIN}:/usr/sbin:/usr/bin:/sbin:/bin",
                "ANSIBLE_COLLECTIONS_PATH": collections_path(self.directory),
            },
        )

    def run_playbook(self, name, **more):
        """Runs a playbook of the collection; its exit code, what it said in one line, and what podman and systemd were to do."""
        (self.directory / "bin" / "notes").write_text("")
        done = self.ansible(f"osp.edpm.{name}", **more)
        notes = (self.directory / "bin" / "notes").read_text().splitlines()
        return done.returncode, " ".join((done.stdout + done.stderr).split()), notes

    def deploy(self, *names, **more):
        """Runs playbooks, which must succeed; what the last one said, and what it had podman and systemd do."""
        for name in names:
            code, said, notes = self.run_playbook(name, **more)
            self.assertEqual(code, 0, said)
        return said, notes

    def path(self, path):
        return self.directory / "root" / path.lstrip("/")

    def text(self, path):
        return self.path(path).read_text()

    def started(self, notes):
        """What was begun or ended of those notes."""
        return [words for words in map(str.split, notes) if words[1] in ("create", "rm", "restart", "start", "stop", "enable")]

    def open_ports(self):
        """The ports that the firewall's rules of libvirt let in, by their names."""
        rules = yaml.safe_load(self.text("/var/lib/edpm-config/firewall/libvirt.yaml"))
        return {rule["rule_name"][:3]: [str(port) for port in rule["rule"]["dport"]] for rule in rules}

    def options(self, path):
        """The options of a file of libvirt."""
        return dict(re.findall(r"^(\w+) = (.*)$", self.text(path), re.MULTILINE))

    def nova_options(self):
        """How guests move, as nova reads it after its generated file and before the users'; nothing: not at all."""
        path = self.path("/var/lib/edpm-config/nova/live-migration.conf")
        return dict(re.findall(r"^(\w+) = (.*)$", path.read_text(), re.MULTILINE)) if path.exists() else {}


    def audit(self, **more):
        """Audits the host; the paths of files that are expected, and what differs."""
        self.write("audit.yml", AUDIT)
        done = self.ansible("audit.yml", **more)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        found = json.loads((self.directory / "audit.json").read_text())
        return [line.split("|")[1] for line in found["expected"] if line.startswith("file|")], found["differences"]


class NotAtAll(Host):
    def test_without_certificate_and_key_nothing_listens_and_the_rest_agrees_with_the_firewall(self):
        self.write("bin/read-only", "")
        said, notes = self.deploy("libvirt")
        self.assertIn("vm.unprivileged_userfaultfd cannot be set on this host, so no guest can be moved from or to it", said)
        [created] = [line for line in notes if line.startswith("podman create")]
        # A guest that is started now may move over TLS later: it sees what is mounted now.
        for folder in ("CA", "libvirt", "qemu"):
            self.assertIn(f" --volume={PKI}/{folder}:/etc/pki/{folder}:ro ", created)
            self.assertEqual([path for path in self.path(f"{PKI}/{folder}").rglob("*") if path.is_file()], [])
        self.assertIn(" --volume=/etc/ssh/ssh_known_hosts:/etc/ssh/ssh_known_hosts:ro ", created)
        daemon = self.options("/var/lib/openstack/config/libvirt/libvirtd.conf")
        self.assertEqual((daemon["listen_tls"], daemon["listen_tcp"]), ("0", "0"))
        self.assertNotIn("--listen", self.text("/var/lib/kolla/config_files/libvirt.json"))
        self.assertNotIn("x509", self.text("/var/lib/openstack/config/libvirt/qemu.conf"))
        qemu = self.options("/var/lib/openstack/config/libvirt/qemu.conf")
        self.assertEqual(self.open_ports(), {
            "005": [f"{qemu['remote_display_port_min']}-{qemu['remote_display_port_max']}"],
            "007": [f"{qemu['migration_port_min']}-{qemu['migration_port_max']}"],
        })

    def test_the_firewall_lets_in_the_ports_that_the_user_gives_qemu(self):
        options = {"migration_port_min": 50000, "migration_port_max": 50063, "remote_display_port_max": 7923}
        given = {"edpm_libvirt_qemu_options": options, "edpm_libvirt_config_src": f"{self.directory}/given"}
        self.deploy("libvirt", **given)
        self.assertEqual(self.open_ports(), {"005": ["5900-7923"], "007": ["50000-50063"]})
        # A file of the user's is stronger than the options.
        self.write("given/qemu.conf", "# migration_port_min = 1\nmigration_port_min = 49152\n migration_port_max=49215\nremote_display_port_max = 65535\n")
        self.deploy("libvirt", **given)
        self.assertEqual(self.open_ports(), {"005": ["5900-6923"], "007": ["49152-49215"]})
        # Rules of the user's own stand as they are.
        own = {"rule_name": "007 one network", "rule": {"proto": "tcp", "dport": "49152-49215", "source": "192.0.2.0/24"}}
        self.deploy("libvirt", edpm_libvirt_firewall_rules=[own], **given)
        self.assertEqual(yaml.safe_load(self.text("/var/lib/edpm-config/firewall/libvirt.yaml")), [own])


class OverTls(Host):
    """The playbooks deploy the host once; each test has a copy of it."""

    @classmethod
    def setUpClass(cls):
        cls.authority = Authority()
        cls.kept = pathlib.Path(tempfile.mkdtemp(prefix="edpm-ansible-tls-"))
        cls.addClassCleanup(shutil.rmtree, cls.kept, ignore_errors=True)
        cls.notes = None

    def setUp(self):
        super().setUp()
        if self.notes is not None:
            subprocess.run(["cp", "--archive", f"{self.kept}/.", self.directory], check=True)
            self.write("bin/podman-of-audits", PODMAN.replace('$(dirname "$0")', f"{self.directory}/bin"))
            return
        self.give()
        self.tls("nova")
        type(self).notes = self.tls("libvirt")[1]
        subprocess.run(["cp", "--archive", f"{self.directory}/.", self.kept], check=True)

    def give(self, **properties):
        """Gives libvirt's run a certificate; the text of its key."""
        texts = dict(zip(("tls.crt", "tls.key"), self.authority.issue("h", **{"address": ADDRESS, **properties})))
        for name, text in {**texts, "ca.crt": self.authority.pem}.items():
            self.write(f"root/var/lib/openstack/certs/libvirt/default/h-{name}", text)
        return texts["tls.key"]

    def tls(self, *names, **more):
        return self.deploy(*names, **TLS, **more)

    def test_libvirt_listens_with_the_certificate_and_nova_says_so(self):
        [created] = [line for line in self.notes if line.startswith("podman create")]
        for folder in ("CA", "libvirt", "qemu"):
            self.assertIn(f" --volume={PKI}/{folder}:/etc/pki/{folder}:ro ", created)
        self.assertIn('"/usr/sbin/libvirtd --listen --config /etc/libvirt/libvirtd.conf"',
                      self.text("/var/lib/kolla/config_files/libvirt.json"))
        daemon = self.options("/var/lib/openstack/config/libvirt/libvirtd.conf")
        self.assertEqual((daemon["listen_tls"], daemon["listen_tcp"], daemon["auth_tls"]), ("1", "0", '"none"'))
        # It would not start with a certificate that has expired since, for example after the host did.
        self.assertEqual(daemon["tls_no_sanity_certificate"], "1")
        self.assertNotIn("tls_no_verify_certificate", daemon)
        qemu = self.options("/var/lib/openstack/config/libvirt/qemu.conf")
        self.assertEqual((qemu["default_tls_x509_cert_dir"], qemu["default_tls_x509_verify"]), ('"/etc/pki/qemu"', "1"))
        self.assertEqual(self.open_ports()["009"], ["16514"])
        self.assertEqual(self.nova_options(), {
            "live_migration_scheme": "tls", "live_migration_with_native_tls": "True", "live_migration_inbound_addr": ADDRESS,
        })
        self.assertEqual((self.directory / "bin" / "userfaultfd").read_text(), "1\n")
        self.assertTrue(any(f"virsh --connect qemu+tls://{ADDRESS}/system" in line for line in self.notes))

    def test_keys_are_for_those_who_use_them_alone(self):
        found = {}
        for path in sorted(self.path(PKI).rglob("*key*.pem")):
            found[path.name] = (path.stat().st_uid, path.stat().st_mode & 0o777)
            self.assertEqual(path.read_text(), self.text("/var/lib/openstack/certs/libvirt/default/tls.key"))
        libvirts, qemus = (0, 0o400), (64998, 0o400)
        self.assertEqual(found, {
            "clientkey.pem": libvirts, "serverkey.pem": libvirts, "client-key.pem": qemus, "server-key.pem": qemus,
        })
        # On the host, the number of QEMU's user may be that of another one.
        self.assertEqual(self.path(PKI).parent.stat().st_mode & 0o777, 0o700)
        self.assertTrue([line for line in self.notes if " --env=user=of-mine " in line], "QEMU's user is the one of qemu.conf")

    def test_a_renewed_certificate_ends_no_guest(self):
        said, notes = self.tls("libvirt")
        self.assertIn("changed=0", said)
        self.assertNotIn("PRIVATE KEY", said)
        key = self.give()
        _, notes = self.tls("libvirt")
        self.assertEqual(self.text(f"{PKI}/qemu/server-key.pem"), key)
        self.assertIn("podman exec libvirt virt-admin --connect libvirtd:///system server-update-tls libvirtd", notes)
        self.assertEqual([words[1] for words in self.started(notes) if words[1] in ("create", "rm", "restart", "stop")], [])
        # One that does not read it anew is started again.
        self.write("bin/keeps-certificate", "")
        self.give()
        self.assertIn(["systemctl", "restart", "edpm_libvirt.service"], self.started(self.tls("libvirt")[1]))

    def test_a_certificate_that_cannot_serve_is_refused_before_libvirt_is_touched(self):
        key = self.text(f"{PKI}/qemu/server-key.pem")
        refused = [
            ({"begins": -9, "ends": -1}, "The certificate expired at "),
            ({"enciphers": False}, "The certificate lacks key encipherment among its keyUsages."),
            ({"address": "192.0.2.8"}, f"The certificate is not for the address {ADDRESS}"),
        ]
        for properties, words in refused:
            with self.subTest(words):
                self.give(**properties)
                code, said, notes = self.run_playbook("libvirt", **TLS)
                self.assertNotEqual(code, 0)
                self.assertIn(words, said)
                self.assertEqual((notes, self.text(f"{PKI}/qemu/server-key.pem")), ([], key))

    def test_a_host_without_certificate_is_refused_with_both_ways_out(self):
        shutil.rmtree(self.path("/var/lib/openstack/certs"))
        code, said, notes = self.run_playbook("libvirt", **TLS)
        self.assertNotEqual(code, 0)
        self.assertIn("The certificate is missing or cannot be read.", said)
        self.assertIn("the service install-certs brings there", said)
        self.assertIn("edpm_libvirt_tls_certs_enabled and edpm_nova_live_migration_tls to false", said)
        self.assertEqual(notes, [])

    def test_a_libvirt_that_other_hosts_do_not_reach_fails_in_its_words(self):
        self.write("bin/refuses", "error: failed to connect to the hypervisor\nerror: no certificate of ours\n")
        code, said, _ = self.run_playbook("libvirt", **TLS)
        self.assertNotEqual(code, 0)
        self.assertIn(f"libvirt does not answer over TLS at {ADDRESS}, so no guest would come to this host: error: no certificate of ours",
                      said)

    def test_nova_is_not_touched_while_libvirt_does_not_answer_over_tls(self):
        self.write("bin/refuses", "error: failed to connect to the hypervisor\nerror: unable to connect: Connection refused\n")
        self.write("src/01-nova.conf", "[DEFAULT]\nhost = h\ndebug = True\n")
        code, said, notes = self.run_playbook("nova", **TLS)
        self.assertNotEqual(code, 0)
        self.assertIn(f"libvirt does not answer over TLS at {ADDRESS}, so no guest would come to this host: "
                      "error: unable to connect: Connection refused Deploy install-certs and libvirt before nova", said)
        self.assertEqual(self.started(notes), [])
        self.assertNotIn("debug", self.text("/var/lib/openstack/config/nova/01-nova.conf"))

    def test_an_audit_finds_what_was_written_in_sync_and_a_certificate_that_another_has_put_there(self):
        expected, differences = self.audit(**TLS)
        self.assertEqual(differences, [])
        self.assertIn("/var/lib/edpm-config/nova/live-migration.conf", expected)
        self.assertEqual(len([path for path in expected if path.startswith(PKI)]), 8)
        self.path(f"{PKI}/libvirt/private/serverkey.pem").write_text("another\n")
        self.assertEqual(self.audit(**TLS)[1], [f"file {PKI}/libvirt/private/serverkey.pem: content"])
        # A run that was given none does not know them.
        for path in self.path("/var/lib/openstack/certs/libvirt/default").glob("h-*"):
            path.unlink()
        self.assertEqual(self.audit(**TLS)[1], [])


class OverSsh(Host):
    def setUp(self):
        super().setUp()
        self.write("src/ssh-privatekey", "the key of nova\n")
        self.write("src/ssh-publickey", 'ssh-ed25519 AAAA nova\nfrom="192.0.2.0/24" ssh-rsa BBBB\n')

    def test_nova_moves_guests_by_the_key_that_each_host_accepts_and_a_host_that_lets_none_in_says_why(self):
        self.write("bin/refuses", "error: Cannot recv data: Host key verification failed.\n")
        said, notes = self.deploy("nova")
        self.assertIn("No guest can be moved to this host over ssh: Cannot recv data: Host key verification failed. "
                      "It needs the service ssh-known-hosts before nova", said)
        self.assertIn(f"podman exec libvirt virsh --connect qemu+ssh://{ADDRESS}/system version", notes)
        self.assertEqual(self.nova_options(), {
            "live_migration_scheme": "ssh", "live_migration_with_native_tls": "False", "live_migration_inbound_addr": ADDRESS,
        })
        keys = self.path("/home/nova/.ssh/authorized_keys")
        self.assertEqual(keys.read_text(), 'restrict ssh-ed25519 AAAA nova\nfrom="192.0.2.0/24" ssh-rsa BBBB\n')
        self.assertEqual((keys.stat().st_uid, keys.stat().st_mode & 0o777), (42436, 0o600))
        keys.write_text(keys.read_text().replace("restrict ", ""))
        (self.directory / "bin" / "refuses").unlink()
        self.assertNotIn("No guest can be moved", self.deploy("nova")[0])
        self.assertIn("restrict ssh-ed25519", keys.read_text())


class ConfigDrives(Host):
    """A guest that moves without shared storage loses its config drive, so only those have one that need it."""

    def agent(self):
        """Where systemd has neutron's metadata agent that starts with the host."""
        return self.path("/etc/systemd/system/multi-user.target.wants/edpm_ovn_metadata_agent.service")

    def test_guests_that_an_agent_serves_have_one_if_they_ask_and_an_audit_agrees(self):
        drives = self.path("/var/lib/edpm-config/nova/config-drive.conf")
        self.deploy("libvirt", "nova")
        self.assertFalse(drives.exists())
        self.assertEqual(self.audit()[1], [])

        self.agent().parent.mkdir(parents=True, exist_ok=True)
        self.agent().symlink_to("../edpm_ovn_metadata_agent.service")
        self.assertEqual(self.audit()[1], ["file /var/lib/edpm-config/nova/config-drive.conf: missing"])
        self.deploy("nova")
        self.assertIn("[DEFAULT]\nforce_config_drive = False\n", drives.read_text())
        expected, differences = self.audit()
        self.assertIn("/var/lib/edpm-config/nova/config-drive.conf", expected)
        self.assertEqual(differences, [])


class Kolla(unittest.TestCase):
    def test_what_the_role_adds_is_read_between_the_generated_file_and_the_users(self):
        files = json.loads((ANSIBLE / "osp/edpm/roles/edpm_nova/files/kolla.json").read_text())["config_files"]
        for source in ("live-migration.conf", "config-drive.conf"):
            [name] = [pathlib.Path(entry["dest"]).name for entry in files if entry["source"].endswith(f"/{source}")]
            self.assertLess("01-nova.conf", name)
            self.assertLess(name, "02-nova-default.conf")


if __name__ == "__main__":
    unittest.main()
