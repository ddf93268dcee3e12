"""The role that runs nova-compute, against a podman and a systemd that only take notes: when the container starts again."""

import json
import unittest

from support import BIN, NOTING_SYSTEMCTL, OWN_UNITS, TemporaryDirectoryTest, collections_path

PODMAN = r"""#!/bin/bash
here=$(dirname "$0")
echo "podman $*" >>"$here/notes"
case "$1 $2" in
"image exists" | "rm "*) ;;
"image inspect") cat "$here/image" ;;
"create "*) cp "$here/image" "$here/created-from"; for word; do case $word in edpm_identity=*) echo "${word#*=}" >"$here/identity" ;; esac; done ;;
"container inspect")
    [ -e "$here/identity" ] || exit 125
    case $4 in *Running*) [ -e "$here/falls" ] || echo "true $(cat "$here/identity")" ;; *) echo "$(cat "$here/identity") $(cat "$here/created-from")" ;; esac ;;
"exec nova_compute") cd "$here/../dest" && sha256sum -- *nova*.conf | sort -k 2 ;;
"top nova_compute") echo nova-compute ;;
*) exit 1 ;;
esac
"""

PLAY = """
- hosts: localhost
  gather_facts: false
  tasks:
    - ansible.builtin.set_fact:
        edpm_nova_fixed: {changed: false}
        edpm_nova_identified: {changed: false}
        edpm_nova_files: "{{ query('ansible.builtin.fileglob', edpm_nova_config_src ~ '/*') | sort }}"
    - ansible.builtin.include_role:
        name: osp.edpm.edpm_nova
        tasks_from: "{{ item }}"
      loop: [files.yml, compute.yml]
"""



class NovaContainer(TemporaryDirectoryTest):
    def setUp(self):
        super().setUp()
        self.write("bin/podman", PODMAN).chmod(0o755)
        self.write("bin/systemctl", NOTING_SYSTEMCTL).chmod(0o755)
        self.write("bin/image", "id-1\n")
        self.write("play.yml", PLAY)
        for name in ("dest", "units"):
            (self.directory / name).mkdir()
        self.write("src/01-nova.conf", "[DEFAULT]\nhost = h\n")

    def deploy(self, **more):
        """Runs the role; what it had podman and systemd do to the container."""
        done, lines = self.run_role(**more)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return [line.split()[1] for line in lines if line.split()[1] in ("create", "restart", "start", "stop")]

    def run_role(self, **more):
        """Runs the role; how it ended, and what podman and systemd were told."""
        notes = self.directory / "bin" / "notes"
        notes.write_text("")
        given = {
            "edpm_nova_config_src": f"{self.directory}/src",
            "edpm_nova_config_dest": f"{self.directory}/dest",
            "edpm_nova_compute_image": "nova:1",
            "edpm_container_kolla_file": f"{self.directory}/kolla/nova_compute.json",
            **more,
        }
        done = self.command(
            "unshare", "--mount", "sh", "-c", OWN_UNITS, self.directory / "units",
            BIN / "ansible-playbook", "-i", "localhost,", "-c", "local", "-e", json.dumps(given), "play.yml",
            env={
                "PATH": f"{self.directory}/bin:{BIN}:/usr/sbin:/usr/bin:/sbin:/bin",
                "ANSIBLE_COLLECTIONS_PATH": collections_path(self.directory),
            },
        )
        return done, notes.read_text().splitlines()

    def unit(self):
        return (self.directory / "units" / "edpm_nova_compute.service").read_text()

    def test_a_container_that_is_as_it_should_be_starts_again_only_where_that_is_asked_for(self):
        self.assertIn("create", self.deploy())
        self.assertEqual(self.deploy(), [])
        self.assertEqual(self.deploy(edpm_nova_restart=False), [])
        self.assertEqual(self.deploy(edpm_nova_restart=True), ["restart"])
        self.assertEqual(self.deploy(), [])

    def test_a_container_is_made_anew_when_the_name_of_its_image_was_given_to_another_image(self):
        self.deploy()
        self.write("bin/image", "id-2\n")
        self.assertIn("create", self.deploy())
        self.assertEqual(self.deploy(), [])

    def test_a_container_that_does_not_stay_up_points_to_the_options_that_nova_refuses(self):
        self.write("bin/falls", "")
        done, _ = self.run_role()
        self.assertNotEqual(done.returncode, 0)
        said = " ".join(done.stdout.split())
        self.assertIn("does not stay up: ConfigWarnings of a NovaExternalCompute names values that nova refuses; else read", said)

    def test_nova_gets_the_time_to_stop_that_its_files_give_it_and_the_last_file_counts(self):
        self.deploy()
        self.assertIn("podman stop --time 42 ", self.unit())
        for value, seconds in (("15", 42), ("300", 325), ("100000", 100025), ("0", 86425)):
            self.write("src/01-nova.conf", f"[DEFAULT]\nhost = h\ngraceful_shutdown_timeout = {value}\n")
            self.deploy()
            self.assertIn(f"podman stop --time {seconds} ", self.unit())
            self.assertIn(f"TimeoutStopSec={seconds + 20}\n", self.unit())
        self.write("src/02-nova-override.conf", "[DEFAULT]\nmanager_shutdown_timeout: 60\ngraceful_shutdown_timeout=90\n")
        self.deploy()
        self.assertIn("podman stop --time 115 ", self.unit())


if __name__ == "__main__":
    unittest.main()
