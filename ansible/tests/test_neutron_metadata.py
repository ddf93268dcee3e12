"""The role of neutron's metadata agent, with a real Open vSwitch, and an agent and a metadata API that do what counts."""

import sys
import unittest

from ovn import OvnHost
from support import ANSIBLE, with_look_for_guests

CLEANUP = ANSIBLE.parent / "crates" / "nova-operator" / "plays" / "nova-cleanup.yaml"
CONFIG = "/var/lib/openstack/neutron-ovn-metadata-agent"
OWN = f"{CONFIG}/01-neutron-ovn-metadata-agent.conf"
REMOTE = "tcp:127.0.0.1:6642"

# As the agent, it opens its socket once Open vSwitch and the southbound database have answered.
AGENT = f"""#!{sys.executable}
import pathlib, re, signal, socket, time
text = "\\n".join(path.read_text() for path in sorted(pathlib.Path("/etc/neutron.conf.d").iterdir()))
socket.socket(socket.AF_UNIX).connect(re.findall("(?m)^ovsdb_connection = unix:(.*)", text)[-1])
address, port = re.findall("(?m)^ovn_sb_connection = tcp:(.*):(.*)", text)[-1]
while True:
    try:
        socket.create_connection((address, int(port)))
        break
    except OSError:
        time.sleep(0.1)
path = pathlib.Path("/var/lib/neutron/metadata_proxy")
path.unlink(missing_ok=True)
server = socket.socket(socket.AF_UNIX)
server.bind(str(path))
server.listen()
signal.pause()
"""

# nova's metadata API as far as the agent's signature goes; its secret is the argument.
NOVA = """
import hashlib, hmac, http.server, sys

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        good = hmac.new(sys.argv[1].encode(), self.headers["X-Instance-ID"].encode(), hashlib.sha256).hexdigest()
        is_good = hmac.compare_digest(good, self.headers["X-Instance-ID-Signature"])
        self.send_response(404 if is_good and self.headers["X-Tenant-ID"] else 403)
        self.end_headers()

http.server.HTTPServer(("127.0.0.1", 8775), Handler).serve_forever()
"""


class NeutronMetadata(OvnHost):
    def setUp(self):
        super().setUp()
        self.program("neutron-ovn-metadata-agent", AGENT)
        self.give("secret-of-both")
        self.start_southbound()
        self.ask("systemctl", "start", "openvswitch-switch.service")

    def give(self, secret, remote=REMOTE):
        """Has these be what the two Secrets give."""
        self.write("src/10-neutron-metadata.conf", f"[ovn]\novn_sb_connection = {remote}\n")
        self.write("src/05-nova-metadata.conf", f"""\
            [DEFAULT]
            nova_metadata_host = 127.0.0.1
            metadata_proxy_shared_secret = {secret}
            """)

    def ansible(self, playbook, *options, **given):
        return super().ansible(playbook, *options, **{
            "edpm_neutron_metadata_agent_image": "agent:1",
            "edpm_neutron_metadata_config_src": f"{self.directory}/src",
            "edpm_neutron_metadata_start_retries": 5,
            **given,
        })

    def deploy(self, **given):
        """Deploys the agent; how many tasks changed something."""
        changed = self.deployed("osp.edpm.neutron_metadata", **given)
        self.assertNotIn("secret-of-both", self.said)
        return changed

    def start_nova(self):
        """Starts the metadata API on the host, and waits until it listens."""
        self.write("nova.py", NOVA)
        self.ask("bash", "-c", f"setsid {sys.executable} nova.py secret-of-both >nova.log 2>&1 </dev/null & "
                 "until (exec 3<>/dev/tcp/127.0.0.1/8775) 2>/dev/null; do kill -0 $! || exit; done")

    def test_the_agent_serves_is_made_anew_for_other_files_alone_and_a_host_that_leaves_keeps_no_secret(self):
        self.start_nova()
        self.deploy()
        own = self.host(OWN)
        self.assertIn("[DEFAULT]\nhost = a.example\n", own.read_text())
        for path in own.parent.iterdir():
            self.assertEqual(path.stat().st_mode & 0o777, 0o600, path)

        pid = self.pid("ovn_metadata_agent")
        self.assertEqual(self.deploy(), 0, self.said)
        self.assertEqual(self.pid("ovn_metadata_agent"), pid)
        self.assertEqual(self.audit("osp.edpm.neutron_metadata_audit"), [])

        # A file that somebody has put there is found, and goes.
        self.host(f"{CONFIG}/99-mine.conf").write_text("[DEFAULT]\n")
        self.assertEqual(self.audit("osp.edpm.neutron_metadata_audit"), [f"directory {CONFIG}: other files"])
        self.write("src/20-metadata-workers.conf", "[DEFAULT]\nmetadata_workers = 2\n")
        self.deploy()
        self.assertNotEqual(self.pid("ovn_metadata_agent"), pid)
        self.assertEqual(sorted(path.name for path in own.parent.iterdir()), [
            "01-neutron-ovn-metadata-agent.conf", "05-nova-metadata.conf", "10-neutron-metadata.conf", "20-metadata-workers.conf",
        ])

        self.program("ps", "#!/bin/sh\necho 1 /sbin/init\n")
        play = self.write("cleanup.yml", with_look_for_guests(CLEANUP))
        leaves = {"edpm_nova_host_leaves": True, "edpm_nova_remove_files": True, "edpm_guests_definitions": ["/nonexistent"]}
        self.deployed(play, **leaves)
        self.assertFalse(own.parent.exists() or (self.directory / "bin" / "containers" / "ovn_metadata_agent").exists())
        self.assertEqual(self.deployed(play, **leaves), 0)

    def test_a_wrong_secret_a_silent_api_and_a_southbound_database_that_is_away_are_named(self):
        playbook = "osp.edpm.neutron_metadata"
        self.assertIn("Guests of this host get no metadata: nova's metadata API does not answer at nova_metadata_host", self.refused(playbook))
        self.start_nova()
        self.give("secret-of-both-misspelled")
        said = self.refused(playbook)
        self.assertIn("nova's metadata API refuses what the agent signs, so the two secrets differ. Make metadata_proxy_shared_secret", said)
        self.assertNotIn("secret-of-both", said)
        self.give("secret-of-both", "tcp:127.0.0.1:6641")
        said = self.refused(playbook)
        self.assertIn("neutron's metadata agent does not serve guests, which needs the southbound database "
                      "tcp:127.0.0.1:6641: nothing answers there.", said)

    def test_an_agent_that_runs_and_has_lost_the_southbound_database_is_not_called_good(self):
        self.start_nova()
        self.deploy()
        pid = self.pid("ovn_metadata_agent")
        self.stop_southbound()
        self.assertIn("neutron's metadata agent has lost the southbound database tcp:127.0.0.1:6642: nothing answers there. See that",
                      self.refused("osp.edpm.neutron_metadata"))
        self.assertEqual(self.pid("ovn_metadata_agent"), pid)
        self.start_southbound()
        self.assertEqual(self.deploy(), 0, self.said)

    def test_what_is_not_given_or_would_not_be_read_is_refused_before_anything_changes(self):
        for name, text in {"database": "[DEFAULT]\nnova_metadata_host = x\nmetadata_proxy_shared_secret = y\n", "part": "nova_metadata_host =\n",
                           "tls": "[DEFAULT]\nnova_metadata_host = x\nmetadata_proxy_shared_secret = y\n[ovn]\novn_sb_connection = ssl:192.0.2.20:6642\n"}.items():
            self.write(f"{name}/10-metadata.conf", text)
        self.write("strange/notes.txt", "")
        self.write("taken/01-neutron-ovn-metadata-agent.conf", "")
        lacks = "set by no file in"
        cases = {
            "none": "nova_metadata_host and metadata_proxy_shared_secret and ovn_sb_connection are set by no file in",
            "database": f"ovn_sb_connection is {lacks}",
            "part": f"nova_metadata_host and metadata_proxy_shared_secret and ovn_sb_connection are {lacks}",
            "tls": "ovn_sb_connection is ssl:192.0.2.20:6642, and this host has no certificate for it: set tlsEnabled",
            "strange": "strange has notes.txt, which the agent would not read",
            "image": "edpm_neutron_metadata_agent_image, the image with neutron's metadata agent, is not set",
            "taken": "taken has 01-neutron-ovn-metadata-agent.conf, which the agent would not read",
        }
        said = self.refusals(
            {name: {"edpm_neutron_metadata_config_src": f"{self.directory}/{name}",
                    "edpm_neutron_metadata_agent_image": "" if name == "image" else "agent:1"} for name in cases},
            "osp.edpm.neutron_metadata",
        )
        for name, words in cases.items():
            with self.subTest(name):
                self.assertIn(words, said[name])


if __name__ == "__main__":
    unittest.main()
