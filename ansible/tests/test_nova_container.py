"""The role that runs nova-compute, against a podman and a systemd that only take notes: when the container starts again."""

import json
import re
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
"run --rm") case "$*" in *" nova:1 "*tss*) cat "$here/lacks" ;; *" id-"*swtpm*) cat "$here/libvirt-lacks" ;; esac 2>/dev/null || true ;;
"exec nova_compute")
    cd "$here/../dest" && sha256sum -- *nova*.conf | sort -k 2
    cd /var/lib/edpm-config/nova && sha256sum without-vtpm.conf live-migration.conf config-drive.conf 2>/dev/null | sed 's/  /  01-nova_/' ;;
"top nova_compute") echo nova-compute ;;
*) exit 1 ;;
esac
"""

OWN_FILES = 'mkdir -p /var/lib/edpm-config/nova && mount --bind "$0/../edpm" /var/lib/edpm-config/nova && '

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

# What the given files decide, for the files of each directory.
PLAY_GIVEN = """
- hosts: localhost
  gather_facts: false
  tasks:
    - ansible.builtin.include_tasks: given.yml
      loop: "{{ directories }}"
"""
GIVEN = """
- ansible.builtin.include_role:
    name: osp.edpm.edpm_nova
    tasks_from: given.yml
  vars:
    edpm_nova_files: "{{ query('ansible.builtin.fileglob', item ~ '/*') | sort }}"
- ansible.builtin.debug:
    msg: "stops within {{ edpm_nova_stop_timeout }}, {{ 'nobody' if edpm_nova_adds_host | bool else 'a file' }} names the host"
"""


class NovaContainer(TemporaryDirectoryTest):
    def setUp(self):
        super().setUp()
        self.write("bin/podman", PODMAN).chmod(0o755)
        self.write("bin/systemctl", NOTING_SYSTEMCTL).chmod(0o755)
        self.write("bin/image", "id-1\n")
        self.write("play.yml", PLAY)
        for name in ("dest", "edpm", "units"):
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
            "ctlplane_ip": "192.0.2.7",
            "edpm_container_kolla_file": f"{self.directory}/kolla/nova_compute.json",
            **more,
        }
        done = self.command(
            "unshare", "--mount", "sh", "-c", OWN_FILES + OWN_UNITS, self.directory / "units",
            BIN / "ansible-playbook", "-i", "localhost,", "-c", "local", "-e", json.dumps(given), "play.yml",
            env={
                "PATH": f"{self.directory}/bin:{BIN}:/usr/sbin:/usr/bin:/sbin:/bin",
                "ANSIBLE_COLLECTIONS_PATH": collections_path(self.directory),
            },
        )
        return done, notes.read_text().splitlines()

    def test_a_container_starts_again_where_that_is_asked_for_or_its_image_has_become_another(self):
        self.assertIn("create", self.deploy())
        self.assertEqual(self.deploy(), [])
        self.assertEqual(self.deploy(edpm_nova_restart=True), ["restart"])
        self.assertEqual(self.deploy(edpm_nova_restart=False), [])
        # The name of the image was given to another image.
        self.write("bin/image", "id-2\n")
        self.assertIn("create", self.deploy())
        self.assertEqual(self.deploy(), [])

    def test_a_container_that_does_not_stay_up_points_to_the_options_that_nova_refuses(self):
        self.write("bin/falls", "")
        done, _ = self.run_role()
        self.assertNotEqual(done.returncode, 0)
        said = " ".join(done.stdout.split())
        self.assertIn("does not stay up: ConfigWarnings of a NovaExternalCompute names values that nova refuses; else read", said)

    def test_a_host_without_podman_is_not_asked_again_and_the_service_that_installs_it_is_named(self):
        self.write("bin/podman", "#!/bin/sh\necho asked >>$0.notes\nexit 127\n")
        done, _ = self.run_role()
        self.assertNotEqual(done.returncode, 0)
        said = " ".join(done.stdout.split())
        self.assertIn("no podman on the host: list the service install-os, which installs it, before this one", said)
        notes = self.directory / "bin" / "podman.notes"
        self.assertEqual(notes.read_text().splitlines(), ["asked", "asked"])

    def given(self, *configurations):
        """What the role says of each of these sets of files."""
        for index, files in enumerate(configurations):
            for name, text in files.items():
                self.write(f"given/{index}/{name}", text)
        self.write("given.yml", GIVEN)
        self.write("play.yml", PLAY_GIVEN)
        done, _ = self.run_role(directories=[f"{self.directory}/given/{index}" for index in range(len(configurations))])
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return re.findall(r"stops within (\d+), (nobody|a file) names the host", done.stdout)

    def stop_timeouts(self, *configurations):
        """The seconds that nova gets to stop with each of these sets of files."""
        given = ({name: f"[DEFAULT]\nhost = h\n{text}\n" for name, text in files.items()} for files in configurations)
        return [int(seconds) for seconds, _ in self.given(*given)]

    def test_a_file_names_the_host_in_its_default_section_alone(self):
        texts = {
            "[remote_debug]\nhost = 192.0.2.200\n": "nobody",
            "[DEFAULT]\ndebug = True\n[remote_debug]\nhost = 192.0.2.200\n": "nobody",
            "[DEFAULT]\ndebug = True\n  host = part of the value above\n": "nobody",
            "[DEFAULT]\n# host = h\nhost_name = h\n": "nobody",
            "[default]\nhost = h\n": "nobody",
            "[DEFAULT]\nhost = h\n": "a file",
            "[DEFAULT]\nhost : h\n": "a file",
            "[DEFAULT]\nhost:h\n": "a file",
            "# begin\r\n[DEFAULT] \r\ndebug = True\r\n\r\nhost=h\r\n": "a file",
            "[a]\nb = 1\n[DEFAULT]\n[c]\nd = 1\n[DEFAULT]\nhost = h\n": "a file",
        }
        found = self.given(*({"01-nova.conf": "[a]\nb = 1\n", "30-nova-debug.conf": text} for text in texts))
        self.assertEqual([named for _, named in found], list(texts.values()))

    def test_vtpms_are_off_only_where_an_image_lacks_what_nova_looks_for(self):
        off = self.directory / "edpm" / "without-vtpm.conf"
        for file, what in (("lacks", "user and group tss in the image of nova-compute"), ("libvirt-lacks", "swtpm in the image of libvirt")):
            self.write(f"bin/{file}", f"{what}\n")
            done, _ = self.run_role()
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn(f"cannot run on this host, which lacks {what}.", done.stdout)
            self.assertIn("[libvirt]\nswtpm_enabled = False\n", off.read_text())
            (self.directory / "bin" / file).unlink()
            self.assertIn("create", self.deploy())
            self.assertFalse(off.exists())

    def moves(self):
        """How guests move, as nova reads it between its generated file and those of users; nothing: not at all."""
        path = self.directory / "edpm" / "live-migration.conf"
        return dict(re.findall("^(\\w+) = (.*)$", path.read_text(), re.MULTILINE)) if path.exists() else {}

    def test_guests_move_over_tls_else_over_ssh_else_not_at_all_and_nova_reads_each_change(self):
        self.assertIn("create", self.deploy())
        self.assertEqual(self.moves(), {})
        tls = {"edpm_tls_certs_enabled": True}
        address = {"live_migration_inbound_addr": "192.0.2.7"}
        key = self.write("src/ssh-privatekey", "the key of nova\n")
        for more, scheme, native in (({}, "ssh", "False"), (tls, "tls", "True"), ({**tls, "edpm_nova_live_migration_tls": False}, "ssh", "False")):
            self.assertIn("create", self.deploy(**more))
            self.assertEqual(self.moves(), {"live_migration_scheme": scheme, "live_migration_with_native_tls": native, **address})
        key.unlink()
        self.assertIn("create", self.deploy())
        self.assertEqual(self.moves(), {})

    def test_nova_starts_again_where_another_guest_than_before_gets_a_config_drive(self):
        self.assertIn("create", self.deploy())
        drives = self.directory / "edpm" / "config-drive.conf"
        agent = self.directory / "units" / "multi-user.target.wants" / "edpm_ovn_metadata_agent.service"
        agent.parent.mkdir(exist_ok=True)
        agent.symlink_to("../edpm_ovn_metadata_agent.service")
        self.assertIn("create", self.deploy())
        self.assertIn("force_config_drive = False", drives.read_text())
        self.assertEqual(self.deploy(), [])
        # The agent was taken off the host: without a config drive, guests would have nothing.
        agent.unlink()
        self.assertIn("create", self.deploy())
        self.assertFalse(drives.exists())

    def test_nova_gets_the_time_to_stop_that_its_files_give_it_and_the_last_file_counts(self):
        own, override = "01-nova.conf", "02-nova-override.conf"
        option = "graceful_shutdown_timeout ="
        seconds = self.stop_timeouts(
            {own: ""}, *({own: f"{option} {value}"} for value in ("15", "300", "100000", "0")),
            {own: f"{option} 0", override: "manager_shutdown_timeout: 60\ngraceful_shutdown_timeout=90"},
        )
        self.assertEqual(seconds, [42, 42, 325, 100025, 86425, 115])

    def test_the_unit_starts_after_libvirts_and_never_starts_it(self):
        # It restarts every two seconds while it has no container: a start of libvirt's would cancel its stop.
        self.deploy()
        unit = (self.directory / "units" / "edpm_nova_compute.service").read_text()
        self.assertIn("\nAfter=network-online.target edpm_libvirt.service\n", unit)
        self.assertEqual(unit.count("edpm_libvirt"), 1)

    def test_the_unit_waits_longer_than_podman_does(self):
        self.write("src/01-nova.conf", "[DEFAULT]\nhost = h\ngraceful_shutdown_timeout = 300\n")
        self.deploy()
        unit = (self.directory / "units" / "edpm_nova_compute.service").read_text()
        self.assertIn("podman stop --time 325 ", unit)
        self.assertIn("TimeoutStopSec=345\n", unit)


if __name__ == "__main__":
    unittest.main()
