"""What the first container of a run learns of hosts' own keys, with the real ssh-keyscan and a real sshd."""

import json
import socketserver
import subprocess
import sys
import threading
import unittest

from support import ANSIBLE, TemporaryDirectoryTest

SCRIPT = ANSIBLE / "host_keys" / "edpm_host_keys.py"
ED25519 = "AAAAC3NzaC1lZDI1NTE5AAAAI"


class Hostile(socketserver.BaseRequestHandler):
    """Talks like ssh-keyscan's own output instead of like sshd."""

    def handle(self):
        self.request.sendall(f"SSH-2.0-x\r\n127.0.0.1 ssh-ed25519 {ED25519}{'A' * 43}\r\n".encode() * 50)


class HostKeysTest(TemporaryDirectoryTest):
    def ask(self, *arguments, **env):
        """Runs the script as its container does; returns what it told."""
        result, known_hosts = self.directory / "result", self.directory / "known_hosts"
        done = self.command(
            sys.executable, "-I", "-c", SCRIPT.read_text(), *arguments,
            env={"EDPM_RESULT_FILE": str(result), "EDPM_KNOWN_HOSTS": str(known_hosts), **env},
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.known_hosts = known_hosts.read_text()
        self.size = result.stat().st_size
        message = json.loads(result.read_text())
        self.assertEqual(message["v"], 1)
        return message["keys"]

    def sshd(self, kind):
        """Starts an sshd with one key of a type; returns its port."""
        return self.start_sshd(self.make_key(f"{kind}_key", kind))

    def scanner(self, body):
        """A program in place of ssh-keyscan that notes its arguments."""
        path = self.write("scanner", f'#!/bin/sh\necho "$@" >> {self.directory}/asked\n{body}\n')
        path.chmod(0o755)
        return str(path)

    def asked(self):
        return (self.directory / "asked").read_text().splitlines()


class RealHosts(HostKeysTest):
    def test_an_ed25519_key_is_told_and_known_under_its_port(self):
        port = self.sshd("ed25519")
        kind, key = (self.directory / "ed25519_key.pub").read_text().split()[:2]
        told = self.ask(f"127.0.0.1:{port}")
        self.assertEqual([ED25519 + tail for tail in told], [key])
        self.assertEqual(self.known_hosts, f"[127.0.0.1]:{port} {kind} {key}\n")

    def test_only_the_key_with_the_given_fingerprint_is_trusted_and_each_is_told(self):
        port = self.sshd("ed25519")
        listed = subprocess.run(
            ["ssh-keygen", "-lf", self.directory / "ed25519_key.pub"], check=True, capture_output=True, text=True
        )
        fingerprint = listed.stdout.split()[1]
        told = self.ask(f"127.0.0.1:{port} {fingerprint}")
        self.assertIn(told[0], self.known_hosts)
        self.assertEqual(self.ask(f"127.0.0.1:{port} {fingerprint[:-1]}x"), told)
        self.assertEqual(self.known_hosts, "")

    def test_a_host_without_an_ed25519_key_and_one_that_is_silent_are_told_apart(self):
        port = self.sshd("ecdsa")
        self.assertEqual(self.ask(f"127.0.0.1:{port}", f"127.0.0.1:{self.reserve_port()}"), ["-", "?"])
        self.assertEqual(self.known_hosts, "")

    def test_what_a_host_says_in_place_of_a_key_is_none(self):
        with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Hostile) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            self.assertEqual(self.ask(f"127.0.0.1:{server.server_address[1]}"), ["?"])
            server.shutdown()
        self.assertEqual(self.known_hosts, "")


class Scanner(HostKeysTest):
    def test_the_command_line(self):
        cases = [
            ("192.0.2.7:22", "-p 22 -- 192.0.2.7"),
            ("Host.example.org:2022", "-p 2022 -- Host.example.org"),
            ("2001:db8::7:22", "-p 22 -- 2001:db8::7"),
        ]
        for address, expected in cases:
            (self.directory / "asked").unlink(missing_ok=True)
            self.ask(address, EDPM_SSH_KEYSCAN=self.scanner(""))
            self.assertEqual(
                self.asked(), [f"-T 5 -t ed25519 {expected}", f"-T 5 -t ecdsa,rsa {expected}"]
            )

    def test_names_that_are_options_or_patterns_are_not_asked(self):
        scanner = self.scanner(f"echo x ssh-ed25519 {ED25519}{'A' * 43}")
        for address in ("-fx:22", "*:22", "a,b:22", "a b:22", "!a:22", ":22", "a:", "a:b", "a", "", "a\nb:22"):
            told = self.ask(address, EDPM_SSH_KEYSCAN=scanner)
            self.assertEqual((told, self.known_hosts), (["?"], ""), address)
        self.assertFalse((self.directory / "asked").exists())

    def test_only_whole_keys_of_the_type_count(self):
        tail = "A" * 43
        cases = [
            (f"h ssh-ed25519 {ED25519}{tail}", tail),
            (f"# h:22 SSH-2.0-x\\nh ssh-ed25519 {ED25519}{tail}", tail),
            (f"h ssh-ed25519 {ED25519}{tail}A", "-"),
            (f"h ssh-ed25519 {ED25519}Z{tail[1:]}", "-"),
            (f"h ssh-ed25519 {ED25519}{tail[1:]}", "-"),
            (f"h ssh-rsa {ED25519}{tail}", "-"),
            (f"h ssh-ed25519 {ED25519}{tail} h2", "?"),
            ("h ssh-ed25519", "?"),
            ("\\377\\000\\033[2J", "?"),
        ]
        for output, expected in cases:
            told = self.ask("h:22", EDPM_SSH_KEYSCAN=self.scanner(f"printf '{output}\\n'"))
            self.assertEqual(told, [expected], output)
            known = f"h ssh-ed25519 {ED25519}{tail}\n" if expected == tail else ""
            self.assertEqual(self.known_hosts, known, output)

    def test_an_image_without_the_scanner_is_told_and_ends_well(self):
        self.assertEqual(self.ask("h:22", EDPM_SSH_KEYSCAN="/nonexistent"), ["!"])

    def test_eighty_keys_fit_into_a_termination_message(self):
        scanner = self.scanner(f"echo h ssh-ed25519 {ED25519}{'A' * 43}")
        told = self.ask(*[f"host-{number}:22" for number in range(80)], EDPM_SSH_KEYSCAN=scanner)
        self.assertEqual((len(told), len(self.known_hosts.splitlines())), (80, 80))
        self.assertLessEqual(self.size, 4096)


if __name__ == "__main__":
    unittest.main()
