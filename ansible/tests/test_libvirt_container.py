"""The role that runs libvirt, against a podman and a systemd that only take notes: guests outlive the container."""

import json
import os
import pathlib
import re
import unittest

from support import BIN, NOTING_SYSTEMCTL, OWN_UNITS, TemporaryDirectoryTest, collections_path

PODMAN = r"""#!/bin/bash
here=$(dirname "$0")
echo "podman $*" >>"$here/notes"
case "$1 $2" in
"image exists" | "rm "*) ;;
"image inspect") echo id-of-image ;;
"create "*) for word; do case $word in edpm_identity=*) echo "${word#*=}" >"$here/identity" ;; esac; done ;;
"container inspect")
    [ -e "$here/identity" ] || exit 125
    case $4 in
    *Running*) echo "true $(cat "$here/identity")" ;;
    *.Id*) cat "$here/id" ;;
    *) echo "$(cat "$here/identity") id-of-image" ;;
    esac ;;
*) exit 1 ;;
esac
"""

PLAY = """
- hosts: localhost
  gather_facts: false
  tasks:
    - ansible.builtin.include_role:
        name: osp.edpm.edpm_libvirt
        tasks_from: "{{ item }}"
      loop: [ports.yml, configure.yml]
    - ansible.builtin.set_fact:
        edpm_libvirt_optional: {stdout_lines: []}
    - ansible.builtin.include_role:
        name: osp.edpm.edpm_libvirt
        tasks_from: daemon.yml
      loop: "{{ edpm_libvirt_daemons }}"
      loop_control:
        loop_var: edpm_libvirt_daemon
"""

GUEST = "/usr/bin/qemu-system-x86_64 -name guest=g1,debug-threads=on"
MODULAR = ["virtlogd", "virtqemud"]


class LibvirtContainer(TemporaryDirectoryTest):
    def setUp(self):
        super().setUp()
        for name, text in (("podman", PODMAN), ("systemctl", NOTING_SYSTEMCTL), ("ps", "#!/bin/sh\necho 1 /sbin/init\n")):
            self.write(f"bin/{name}", text).chmod(0o755)
        self.write("bin/id", "0123456789abcdef\n")
        self.write("play.yml", PLAY)
        for name in ("dest", "units", "given"):
            (self.directory / name).mkdir()

    def run_role(self, **more):
        """Runs the role; its exit code, what it said in one line, and what podman and systemd were given."""
        notes = self.directory / "bin" / "notes"
        notes.write_text("")
        given = {
            "edpm_nova_libvirt_image": "libvirt:1",
            "edpm_libvirt_daemons": ["libvirtd"],
            "edpm_libvirt_config_src": f"{self.directory}/given",
            "edpm_libvirt_config_dest": f"{self.directory}/dest",
            "edpm_container_kolla_file": f"{self.directory}/kolla/libvirt.json",
            "canonical_hostname": "h.lab",
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
        return done.returncode, " ".join((done.stdout + done.stderr).split()), notes.read_text().splitlines()

    def deploy(self, **more):
        """Runs the role, which must succeed; what podman and systemd were given."""
        code, said, lines = self.run_role(**more)
        self.assertEqual(code, 0, said)
        return lines

    def qemu_conf(self):
        return (self.directory / "dest" / "qemu.conf").read_text()

    def run_guest(self):
        """Has this process look like a guest, and podman name its control group as the container's."""
        own = pathlib.Path("/proc/self/cgroup").read_text().splitlines()
        is_v2 = pathlib.Path("/sys/fs/cgroup/cgroup.controllers").exists()
        line = next(line for line in own if (line.startswith("0::") if is_v2 else ":memory:" in line))
        self.write("bin/id", f"{line.rsplit(':', 1)[1]}\n")
        self.write("bin/ps", f"#!/bin/sh\necho {os.getpid()} {GUEST}\n")

    def test_guests_are_started_in_the_control_groups_and_among_the_processes_of_the_host(self):
        for daemons in (["libvirtd"], MODULAR):
            with self.subTest(daemons):
                created = [line for line in self.deploy(edpm_libvirt_daemons=daemons) if line.startswith("podman create")]
                self.assertEqual(len(created), len(daemons))
                for line in created:
                    for words in (
                        "--privileged", "--pid host", "--cgroupns host", "--volume=/sys/fs/cgroup:/sys/fs/cgroup",
                        "--volume=/run/libvirt:/run/libvirt:shared", "--volume=/etc/libvirt/qemu:/etc/libvirt/qemu",
                    ):
                        self.assertIn(f" {words} ", line)
                (self.directory / "bin" / "identity").unlink()
                # Without a virtlogd no guest would start, unless its output goes to a file.
                self.assertEqual('\nstdio_handler = "file"\n' in self.qemu_conf(), daemons != MODULAR)

    def test_a_users_own_handler_of_output_counts(self):
        self.deploy(edpm_libvirt_qemu_options={"stdio_handler": '"logd"'})
        self.assertEqual(self.qemu_conf().count("stdio_handler"), 1)

    def test_libvirt_itself_logs_in_to_other_hosts_as_nova_and_never_takes_an_unknown_one(self):
        self.deploy()
        kolla = json.loads((self.directory / "kolla" / "libvirt.json").read_text())
        self.assertIn(("/var/lib/kolla/config_files/src/ssh-config", "/root/.ssh/config"),
                      [(entry["source"], entry["dest"]) for entry in kolla["config_files"]])
        config = (self.directory / "dest" / "ssh-config").read_text()
        # The key that nova's container lays out in the directory that both have mounted.
        for line in ("User nova", "IdentityFile /var/lib/nova/.ssh/ssh-privatekey", "BatchMode yes"):
            self.assertIn(f"  {line}\n", config)
        # A question cannot be answered there, and is refused.
        self.assertNotIn("StrictHostKeyChecking", config)

    def test_a_users_own_port_of_qemu_stands_alone(self):
        self.deploy(edpm_libvirt_qemu_options={"migration_port_min": 50000})
        # libvirt takes the first of two lines.
        self.assertEqual(re.findall("migration_port_min = (.*)", self.qemu_conf()), ["50000"])

    def test_an_own_file_of_qemu_has_both_ports_of_migrations_or_with_ssh_none(self):
        tls = {"edpm_tls_certs_enabled": True}
        without = '# migration_port_min = 1\nuser = "qemu"\n'
        for text, variables, lacks in (
            (without + "migration_port_max = 61215\n", tls, "migration_port_min"),
            (without + "migration_port_max = 61215\n", {}, "migration_port_min"),
            (without, tls, "migration_port_min and migration_port_max"),
        ):
            with self.subTest(text=text, variables=variables):
                self.write("given/qemu.conf", text)
                code, said, lines = self.run_role(**variables)
                self.assertNotEqual(code, 0, said)
                self.assertIn(f"given lacks {lacks}: guests would move to ports that the firewall does not let in. "
                              "Add migration_port_min = 61152 and migration_port_max = 61215, or other ports.", said)
                self.assertEqual(lines, [])
        self.write("given/qemu.conf", without)
        self.deploy()
        self.write("given/qemu.conf", "migration_port_min = 61152\nmigration_port_max=61215\n")
        self.deploy(**tls)

    def test_ports_of_qemu_that_end_before_they_begin_are_refused(self):
        code, said, lines = self.run_role(edpm_libvirt_qemu_options={"migration_port_min": 62000})
        self.assertNotEqual(code, 0, said)
        self.assertIn("migration_port_min is 62000 and migration_port_max is 61215: set both", said)
        self.assertEqual(lines, [])

    def test_each_host_has_a_uuid_of_its_own_that_stays_unless_the_firmwares_is_wanted(self):
        found = []
        for more in ({}, {"edpm_libvirt_qemu_options": {"max_core": 0}}, {"canonical_hostname": "h2.lab"}, {"edpm_libvirt_host_uuid": ""}):
            self.deploy(**more)
            found.append(re.findall("host_uuid = (.*)", (self.directory / "dest" / "libvirtd.conf").read_text()))
        self.assertRegex(found[0][0], r'^"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"$')
        self.assertEqual((found[1], found[3]), (found[0], []))
        self.assertNotEqual(found[2], found[0])

    def test_a_configuration_that_keeps_guests_in_the_containers_group_is_refused(self):
        code, said, lines = self.run_role(edpm_libvirt_qemu_options={"cgroup_controllers": "[]"})
        self.assertNotEqual(code, 0, said)
        self.assertIn("qemu.conf has cgroup_controllers = []: guests would then run in the control group", said)
        self.assertEqual(lines, [])
        self.write("given/qemu.conf", 'user = "qemu"\ncgroup_controllers=[\n]\n')
        self.assertNotEqual(self.run_role()[0], 0)
        self.write("given/qemu.conf", '# cgroup_controllers = []\ncgroup_controllers = ["cpu", "memory"]\n')
        self.deploy()

    def test_a_container_with_guests_in_its_group_is_not_stopped(self):
        self.deploy()
        self.run_guest()
        self.assertFalse([line for line in self.deploy() if "stop" in line], "nothing has to be restarted")
        change = {"edpm_libvirt_qemu_options": {"max_core": 0}}
        code, said, lines = self.run_role(**change)
        self.assertNotEqual(code, 0, said)
        self.assertIn("1 guest is in the control group of container libvirt and would end with it: g1. Migrate", said)
        self.assertFalse([line for line in lines if "stop" in line or "create" in line or " rm " in line])
        self.assertTrue([line for line in self.deploy(**change, edpm_container_ends_guests=True) if "create" in line])

    def test_a_container_whose_guests_are_elsewhere_is_made_anew(self):
        self.deploy()
        self.run_guest()
        self.write("bin/id", "0123456789abcdef\n")
        self.assertTrue([line for line in self.deploy(edpm_libvirt_qemu_options={"max_core": 0}) if "create" in line])


if __name__ == "__main__":
    unittest.main()
