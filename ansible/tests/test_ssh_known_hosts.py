"""The playbook that makes hosts known to each other: ssh itself finds the keys, and only keys of hosts become lines."""

import json
import unittest

from support import BIN, TemporaryDirectoryTest, collection_module, collections_path

filters = collection_module("filter.known_hosts")

START = 'mount --bind "$0" /etc/ssh && exec "$@"'
HOSTS = ("h1", "h2")


def line(name, kind="ssh-ed25519", letter="A"):
    return f"{name},[{name}]* {kind} {letter * 68}"


class Lines(unittest.TestCase):
    def test_of_what_a_host_answers_only_public_keys_count(self):
        answer = "\n".join([
            f"ssh-ed25519 {'A' * 68} root@h", f"@cert-authority * ssh-rsa {'A' * 68}", f"ssh-rsa {'A' * 68},* x",
            f"* ssh-rsa {'A' * 68}", "ssh-ed25519 {{ lookup('pipe', 'id') }}", "ssh-dss " + "A" * 68, "\x1b[31m",
        ])
        names = ["192.0.2.7", "h.lab", "*", "h.lab", "a b", "!h"]
        self.assertEqual(filters.known_hosts_lines([{"names": names, "answer": answer}]),
                         [f"192.0.2.7,[192.0.2.7]*,h.lab,[h.lab]* ssh-ed25519 {'A' * 68}"])

    def test_lines_of_hosts_beyond_the_run_stay(self):
        present = filters.known_hosts("own line\n", [line("h1"), line("h2")])
        self.assertEqual(present.splitlines(), ["own line", filters.BEGIN, line("h1"), line("h2"), filters.END])
        again = filters.known_hosts(present, [line("h2", letter="B")])
        self.assertEqual(again.splitlines(), ["own line", filters.BEGIN, line("h1"), line("h2", letter="B"), filters.END])

    def test_hosts_that_are_given_are_known_by_their_present_keys(self):
        block = [line("h1"), line("h2"), "h3,[h3]*,h3.lab,[h3.lab]* ssh-ed25519 " + "A" * 68]
        key = "ssh-ed25519 " + "C" * 68
        given = f"h1 {key}\n[h4]:2222 {key}\nh2 {key}\n* {key}\n|1|a=|b= {key}\n@revoked h9 {key}\nno line\n{block[2]}\n"
        found = filters.known_hosts(filters.known_hosts("", block), [line("h2", letter="B")], given + "h3 ssh-ed25519 " + "A" * 68)
        # The run's own answers count first; a line with more names of the same key stays.
        self.assertEqual(found.splitlines()[1:-1], [line("h1", letter="C"), line("h2", letter="B"), block[2], line("h4", letter="C")])

    def test_marks_without_an_end_are_lines_as_others(self):
        text = filters.known_hosts(f"{filters.BEGIN}\nmine\n", [])
        self.assertEqual(text.splitlines(), [filters.BEGIN, "mine", filters.BEGIN, filters.END])


class SshKnownHosts(TemporaryDirectoryTest):
    """Each host has its own keys, which its sshd names; the file that is written is the same for both here."""

    def setUp(self):
        super().setUp()
        hosts = {}
        for number, host in enumerate(HOSTS, 1):
            keys = [self.make_key(f"{host}-{kind}", kind) for kind in ("ed25519", "ecdsa")]
            named = "\\n".join(f"hostkey {key}" for key in [*keys, "/nonexistent"])
            self.write(f"bin-{host}/sshd", f"#!/bin/sh\n[ \"$1\" = -T ] && printf 'port 22\\n{named}\\n'\n").chmod(0o755)
            hosts[host] = {
                "ansible_connection": "local", "ansible_become": False, "ctlplane_ip": f"192.0.2.{number}",
                "canonical_hostname": f"{host}.lab", "internalapi_ip": f"2001:db8::{number}", "nodeset_networks": ["internalapi"],
                "edpm_playbook_environment": {"PATH": f"{self.directory}/bin-{host}:/usr/sbin:/usr/bin:/sbin:/bin"},
            }
        self.write("hosts.json", json.dumps({"all": {"hosts": hosts}}))
        (self.directory / "ssh").mkdir()
        (self.directory / "given").mkdir()
        self.file = self.directory / "ssh" / "ssh_known_hosts"

    def deploy(self, *options):
        """Runs the playbook, one host after the other as they share the file; what it said."""
        done = self.command(
            "unshare", "--mount", "sh", "-c", START, self.directory / "ssh",
            BIN / "ansible-playbook", "-f", "1", "-i", "hosts.json", "-e", f"edpm_ssh_known_hosts_src={self.directory}/given",
            *options, "osp.edpm.ssh_known_hosts",
            env={"ANSIBLE_COLLECTIONS_PATH": collections_path(self.directory)},
        )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def found(self, name):
        """The public keys that ssh finds for a name, or a name and a port in brackets."""
        done = self.command("ssh-keygen", "-F", name, "-f", self.file)
        return {" ".join(it.split()[1:3]) for it in done.stdout.splitlines() if not it.startswith("#")}

    def keys(self, host):
        return {" ".join((self.directory / f"{host}-{kind}.pub").read_text().split()[:2]) for kind in ("ed25519", "ecdsa")}

    def test_ssh_finds_each_host_by_address_and_name_with_and_without_a_port(self):
        self.write("ssh/ssh_known_hosts", "mine ssh-rsa AAAA\n").chmod(0o600)
        before = self.file.stat().st_ino
        self.deploy()
        for number, host in enumerate(HOSTS, 1):
            for name in (host, f"{host}.lab", f"192.0.2.{number}", f"[192.0.2.{number}]:2222", f"2001:db8::{number}"):
                self.assertEqual(self.found(name), self.keys(host), name)
        self.assertEqual(self.found("192.0.2.9"), set())
        self.assertTrue(self.file.read_text().startswith("mine ssh-rsa AAAA\n"))
        # Containers have the file itself mounted.
        self.assertEqual((self.file.stat().st_ino, self.file.stat().st_mode & 0o777), (before, 0o644))
        self.assertEqual(self.deploy().count("changed=0"), 2)

    def test_a_run_over_one_host_keeps_the_others_and_takes_its_new_key(self):
        self.deploy()
        old = self.keys("h2")
        for kind in ("ed25519", "ecdsa"):
            for suffix in ("", ".pub"):
                (self.directory / f"h2-{kind}{suffix}").unlink()
            self.make_key(f"h2-{kind}", kind)
        self.deploy("--limit", "h2")
        self.assertEqual(self.found("h1"), self.keys("h1"))
        self.assertEqual(self.found("192.0.2.2"), self.keys("h2"))
        self.assertFalse(old & self.keys("h2"))

    def test_hosts_that_are_given_are_known_too(self):
        key = "ssh-ed25519 " + "A" * 68
        self.write("given/ssh_known_hosts", f"192.0.2.3,h3.lab,h3 {key}\n")
        self.deploy("--limit", "h2")
        self.assertEqual([self.found(name) for name in ("h3.lab", "[192.0.2.3]:2222", "h1")], [{key}, {key}, set()])
        self.assertEqual(self.found("h2"), self.keys("h2"))

    def test_a_host_without_a_key_is_refused(self):
        self.write("bin-h1/sshd", "#!/bin/sh\nexit 1\n")
        with self.assertRaises(AssertionError) as refused:
            self.deploy("--limit", "h1")
        self.assertIn("sshd of this host has no key of type ed25519, ecdsa or rsa", " ".join(str(refused.exception).split()))


if __name__ == "__main__":
    unittest.main()
