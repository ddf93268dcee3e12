"""The plugin's play that asks a nova-compute for an option: a small process with oslo's own libraries answers."""

import hashlib
import json
import os
import subprocess
import sys
import time
import unittest

from support import ANSIBLE, BIN, TemporaryDirectoryTest

PLAY = ANSIBLE.parent / "crates" / "kubectl-edpm" / "plays" / "nova-option.yaml"

# Whatever changes a host is refused.
PODMAN = r"""#!/bin/bash
here=$(dirname "$0")/..
export PYTHONPATH=$here/lib
[ "$1" = exec ] && [ -e "$here/stopped" ] && { echo 'Error: can only create exec sessions on running containers: container state improper' >&2; exit 255; }
[ -e "$here/gone" ] && { echo 'Error: no container with name or ID "nova_compute" found' >&2; exit 125; }
case "$1 $2" in
"exec nova_compute") shift 2; exec nsenter --mount="/proc/$(cat "$here/pid")/ns/mnt" "$@" ;;
"exec --interactive") shift 3; exec nsenter --mount="/proc/$(cat "$here/pid")/ns/mnt" "$@" ;;
"container inspect") [[ $4 = *Status* ]] && { cat "$here/stopped" 2>/dev/null || echo running; exit 0; }; printf '%s\n' "/var/lib/kolla/config_files/other /other" "/var/lib/kolla/config_files/src $here/host" ;;
"logs --since") cat "$here/log" ;;
*) touch "$here/changed"; exit 1 ;;
esac
"""

CONF = """
from oslo_config import cfg
CONF = cfg.CONF
CONF.register_opts([cfg.ListOpt("cpu_models"), cfg.StrOpt("cpu_mode"), cfg.StrOpt("some_password")], group="libvirt")
CONF.register_opts([cfg.StrOpt("transport_url", secret=True), cfg.StrOpt("memcache"), cfg.StrOpt("unset", default="own")])
"""

CONFIG = """
from nova.conf import CONF
def parse_args(argv, configure_db=True):
    CONF(argv[1:], project="nova", version="1")
"""

NOVA_COMPUTE = """
import signal
import sys
from nova import config, conf
from oslo_reports import guru_meditation_report, opts

class Version:
    vendor_string = product_string = version_string_with_package = lambda self: "x"

class Chatty:
    def write(self, text):
        for line in text.splitlines(keepends=True):
            sys.__stderr__.write(line + ("2026-11-22 12:00:00.1 7 DEBUG nova [-] Meanwhile: \\n" if line.endswith("\\n") else ""))
        return len(text)

    def flush(self):
        sys.__stderr__.flush()

config.parse_args(sys.argv)
if "chatty" in conf.CONF.memcache:
    sys.stderr = Chatty()
opts.set_defaults(conf.CONF)
if "deaf" not in conf.CONF.memcache:
    guru_meditation_report.TextGuruMeditation.setup_autorun(Version(), conf=conf.CONF)
print("ready", flush=True)
while True:
    signal.pause()
"""

FILES = {
    "01-nova.conf": "[DEFAULT]\ntransport_url = rabbit://nova:hunter2@h/\nmemcache = http://u:hunter2@h\n[libvirt]\n"
    "cpu_mode = host-model\ncpu_models = Westmere\nsome_password = hunter2\n",
    "25-nova.conf": "[libvirt]\ncpu_models = Zebra, Nehalem\n",
}


class NovaOption(TemporaryDirectoryTest):
    def start(self, **files):
        """Starts the process with these files, which are older than it; the host has them too."""
        self.write("bin/podman", PODMAN).chmod(0o755)
        for name, text in (("__init__", ""), ("conf", CONF), ("config", CONFIG)):
            self.write(f"lib/nova/{name}.py", text)
        script = self.write("bin/nova-compute", f"#!{sys.executable}\n{NOVA_COMPUTE}")
        script.chmod(0o755)
        for name, text in {**FILES, **files}.items():
            for folder in ("nova.conf.d", "host"):
                self.age(self.write(f"{folder}/{name}", text))
        self.age(self.directory / "nova.conf.d")
        log = (self.directory / "log").open("w")
        self.addCleanup(log.close)
        process = subprocess.Popen(
            # In a mount namespace of its own, as in a container: nobody else's nova-compute is seen there.
            ["unshare", "--mount", script, "--config-dir", self.directory / "nova.conf.d"],
            stdout=subprocess.PIPE, stderr=log, text=True,
            env={"PYTHONPATH": str(self.directory / "lib"), "PATH": "/usr/bin:/bin"},
        )
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.write("pid", str(process.pid))
        self.assertEqual(process.stdout.readline(), "ready\n", (self.directory / "log").read_text())
        return process

    def age(self, path, seconds=-3600):
        moment = time.time() + seconds
        os.utime(path, (moment, moment))

    def ask(self, section, option, hide="false", salt="edpm_ask_salt=s"):
        result = self.directory / "result"
        done = self.command(
            BIN / "ansible-playbook", "-v", "-i", "h,", "-c", "local", "-e", "ansible_become=false", PLAY,
            "-e", f"edpm_ask_section={section} edpm_ask_option={option} {salt} edpm_ask_hide={hide}",
            env={
                "PATH": f"{self.directory}/bin:{BIN}:/usr/bin:/bin",
                "ANSIBLE_CALLBACK_PLUGINS": f"{ANSIBLE / 'callback'}:{ANSIBLE / 'key_checks'}",
                "EDPM_RUN_HOSTS": "h",
                "EDPM_RESULT_FILE": str(result),
            },
        )
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("changed=0", done.stdout)
        self.assertFalse((self.directory / "changed").exists(), done.stdout)
        self.assertNotIn("hunter2", done.stdout + done.stderr + result.read_text())
        return json.loads(json.loads(result.read_text())["report"])

    def file(self, name):
        return f"{self.directory}/nova.conf.d/{name}"

    def test_the_process_tells_its_value_and_its_files_where_it_comes_from(self):
        process = self.start()
        report = self.ask("libvirt", "cpu_models")
        digests = [hashlib.sha256(text.encode()).hexdigest()[:12] for text in FILES.values()]
        self.assertEqual(report["said"], {"value": "Nehalem, Zebra"})
        self.assertEqual(report["host"], [f"{digest} {name}" for digest, name in zip(digests, FILES)])
        self.assertTrue(report["folder"].endswith("/host"))
        self.assertEqual(report["state"], "running")
        asked = report["asked"]
        self.assertEqual(asked["by_files"], report["said"])
        self.assertEqual(asked["origin"], {"kind": "user", "detail": self.file("25-nova.conf")})
        self.assertEqual(asked["files"], [f"{digest} {self.file(name)}" for digest, name in zip(digests, FILES)])
        self.assertEqual(asked["newer"], [])
        self.assertEqual(asked["process"].split()[0], str(process.pid))
        self.assertLess(abs(asked["started"] - time.time()), 120)
        self.assertIsNone(process.poll(), "whoever is asked goes on")

    def test_the_file_is_named_that_sets_the_option_and_not_a_later_one_with_the_same_section(self):
        self.start(**{"25-nova.conf": "[DEFAULT]\nunset = set\n"})
        report = self.ask("DEFAULT", "transport_url", "true")
        self.assertEqual(report["asked"]["origin"], {"kind": "user", "detail": self.file("01-nova.conf")})

    def test_what_changed_after_the_start_is_told_and_is_not_what_the_process_says(self):
        self.start()
        self.age(self.write("nova.conf.d/25-nova.conf", "[libvirt]\ncpu_models = Haswell\n"), 3600)
        report = self.ask("libvirt", "cpu_models")
        self.assertEqual(report["said"], {"value": "Nehalem, Zebra"})
        self.assertEqual(report["asked"]["by_files"], {"value": "Haswell"})
        self.assertEqual(report["asked"]["newer"], [self.file("25-nova.conf")])

    def test_a_file_that_is_taken_away_changes_its_folder(self):
        self.start()
        (self.directory / "nova.conf.d" / "25-nova.conf").unlink()
        self.age(self.directory / "nova.conf.d", 3600)
        asked = self.ask("libvirt", "cpu_models")["asked"]
        self.assertEqual((asked["newer"], asked["by_files"]), ([f"{self.directory}/nova.conf.d"], {"value": "Westmere"}))

    def test_secret_values_leave_the_host_as_digests_alone(self):
        self.start()
        digest = hashlib.sha256(b"srabbit://nova:hunter2@h/").hexdigest()[:8]
        report = self.ask("DEFAULT", "transport_url")
        self.assertEqual(report["said"], {"hidden": True})
        self.assertEqual(report["asked"]["by_files"], {"hidden": True, "digest": digest})
        by_name = self.ask("libvirt", "some-password", hide="true")
        self.assertEqual(by_name["said"], by_name["asked"]["by_files"])
        self.assertEqual(by_name["said"]["digest"], hashlib.sha256(b"shunter2").hexdigest()[:8])
        self.assertTrue(self.ask("DEFAULT", "memcache")["said"]["hidden"])

    def test_digests_of_secret_values_can_be_compared_with_each_other_alone(self):
        self.start()
        reports = [self.ask("libvirt", "some-password", hide="true", salt="") for _ in range(2)]
        digests = [report["said"]["digest"] for report in reports]
        self.assertEqual(digests, [report["asked"]["by_files"]["digest"] for report in reports])
        self.assertNotEqual(*digests)

    def test_a_value_that_no_file_sets_is_novas_own(self):
        self.start()
        report = self.ask("DEFAULT", "unset")
        self.assertEqual((report["said"], report["asked"]["origin"]["kind"]), ({"value": "own"}, "opt_default"))

    def test_a_process_that_watches_a_file_is_asked_by_that(self):
        handler = self.write("handler", "")
        self.start(**{"30-nova.conf": f"[oslo_reports]\nfile_event_handler = {handler}\n"})
        self.assertEqual(self.ask("libvirt", "cpu_mode")["said"], {"value": "host-model"})

    def test_what_others_log_meanwhile_parts_no_answer(self):
        self.start(**{"30-nova.conf": "[DEFAULT]\nmemcache = chatty\n"})
        self.assertEqual(self.ask("DEFAULT", "transport_url")["said"], {"hidden": True})
        self.assertEqual(self.ask("libvirt", "cpu_models")["said"], {"value": "Nehalem, Zebra"})
        self.assertIn("DEBUG", (self.directory / "log").read_text())

    def test_a_process_that_does_not_listen_yet_is_left_alive(self):
        process = self.start(**{"30-nova.conf": "[DEFAULT]\nmemcache = deaf\n"})
        report = self.ask("libvirt", "cpu_mode")
        self.assertIn("does not answer yet", report["problem"])
        self.assertEqual(report["asked"]["by_files"], {"value": "host-model"})
        self.assertIsNone(process.poll())

    def test_files_that_cannot_be_read_are_told_without_a_word_of_them(self):
        self.start()
        self.write("nova.conf.d/25-nova.conf", "hunter2\n")
        self.assertIn("ConfigFileParseError", self.ask("libvirt", "cpu_mode")["problem"])

    def test_a_missing_container_is_told(self):
        self.start()
        self.write("gone", "")
        report = self.ask("libvirt", "cpu_mode")
        self.assertIn("no container with name or ID", report["problem"])
        self.assertEqual((report["state"], report["folder"], report["host"], report["asked"]), ("", "", [], {}))

    def test_a_container_that_does_not_run_is_told_with_the_files_of_its_host(self):
        self.start()
        self.write("stopped", "exited\n")
        report = self.ask("libvirt", "cpu_mode")
        self.assertEqual((report["state"], report["asked"]), ("exited", {}))
        self.assertEqual([line.split()[1] for line in report["host"]], list(FILES))


if __name__ == "__main__":
    unittest.main()
