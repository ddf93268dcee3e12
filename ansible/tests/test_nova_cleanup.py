"""nova-operator's play that takes nova-compute out of service, against a systemd and a podman in files."""

import json
import shutil
import unittest

from support import ANSIBLE, BIN, TemporaryDirectoryTest, with_look_for_guests

PLAY = ANSIBLE.parent / "crates" / "nova-operator" / "plays" / "nova-cleanup.yaml"

# Each unit is a file of the folder "units" with two words: whether it is enabled, and its state.
SYSTEMCTL = r"""#!/bin/bash
here=$(dirname "$0")
cd "$here/units" || exit 1
unit=${!#}
case $1 in
list-unit-files)
    found=1
    for it in $unit; do [ -e "$it" ] && { echo "$it $(cut -d' ' -f1 "$it") enabled"; found=0; }; done
    exit $found ;;
is-enabled)
    enabled=$(cut -d' ' -f1 "$unit")
    echo "$enabled"
    [ "$enabled" = enabled ] || [ "$enabled" = static ] ;;
show) echo "ActiveState=$(cut -d' ' -f2 "$unit")" ;;
disable)
    [ "$2" = --now ] || exit 1
    [ -e "$here/stop-fails" ] && { echo "Job for $unit canceled." >&2; exit 1; }
    echo "$unit" >>"$here/stopped"
    [ "$(cut -d' ' -f1 "$unit")" = static ] && echo "static inactive" >"$unit" || echo "disabled inactive" >"$unit" ;;
*) exit 1 ;;
esac
"""

PODMAN = r"""#!/bin/bash
here=$(dirname "$0")
case "$1 $2" in
"container inspect")
    [ "$4 $5" = "{{ .State.Running }} nova_compute" ] && [ -e "$here/running" ] && exec cat "$here/running"
    exit 125 ;;
"stop --time")
    [ "$4" = nova_compute ] || exit 1
    echo nova_compute >>"$here/stopped"
    echo false >"$here/running" ;;
*) exit 1 ;;
esac
"""


class NovaCleanup(TemporaryDirectoryTest):
    def setUp(self):
        super().setUp()
        self.playbook = self.write("playbook.yaml", with_look_for_guests(PLAY))
        self.processes("/usr/bin/vim qemu-system-guest=notes")
        self.path = f"{self.directory}/bin:{BIN}:/usr/bin:/bin"

    def processes(self, *lines):
        """Has these be the processes of the host, numbered from 1."""
        listed = "".join(f"{number} {line}\n" for number, line in enumerate(lines, 1))
        self.write("bin/processes", listed)
        self.write("bin/ps", f"#!/bin/sh\ncat {self.directory}/bin/processes\n").chmod(0o755)

    def host(self, running=None, **units):
        self.write("bin/systemctl", SYSTEMCTL).chmod(0o755)
        self.write("bin/podman", PODMAN).chmod(0o755)
        (self.directory / "bin" / "units").mkdir(exist_ok=True)
        for unit, state in units.items():
            self.write(f"bin/units/{unit.replace('__', '.')}", f"{state}\n")
        if running is not None:
            self.write("bin/running", f"{running}\n")

    def play(self, *options):
        return self.command(
            BIN / "ansible-playbook", "-v", "-i", "localhost,", "-c", "local", "-e", "ansible_become=false",
            "-e", json.dumps({"edpm_guests_definitions": [f"{self.directory}/definitions"]}), *options, self.playbook,
            env={"PATH": self.path},
        )

    def stopped(self):
        file = self.directory / "bin" / "stopped"
        return file.read_text().split() if file.exists() else []

    def cleaned(self, *stopped, options=()):
        """Plays twice: the first time stops exactly these, the second time changes nothing."""
        done = self.play(*options)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(self.stopped(), list(stopped))
        again = self.play(*options)
        self.assertEqual(again.returncode, 0, again.stdout)
        self.assertIn("changed=0", again.stdout)
        self.assertEqual(self.stopped(), list(stopped))

    def test_a_running_compute_is_stopped_and_disabled_and_nothing_else_is(self):
        self.host(
            running="false",
            edpm_nova_compute__service="enabled active",
            edpm_libvirt__service="enabled active",
            edpm_nova_computer__service="enabled active",
        )
        self.cleaned("edpm_nova_compute.service")

    def test_upstreams_timer_goes_too(self):
        self.host(
            edpm_nova_compute__service="enabled active",
            edpm_nova_compute_healthcheck__service="static inactive",
            edpm_nova_compute_healthcheck__timer="enabled active",
        )
        self.cleaned("edpm_nova_compute.service", "edpm_nova_compute_healthcheck.timer")

    def test_the_agents_of_neutron_go_with_the_host_alone_and_ovn_controller_last(self):
        units = dict.fromkeys(
            (
                "edpm_ovn_controller__service",
                "edpm_ovn_metadata_agent__service",
                "edpm_ovn_metadata_agent_healthcheck__timer",
                "edpm_neutron_sriov_agent__service",
                "edpm_ovn_bgp_agent__service",
                "edpm_libvirt__service",
            ),
            "enabled active",
        )
        self.host(edpm_nova_compute__service="enabled active", **units)
        self.cleaned("edpm_nova_compute.service")
        self.cleaned(
            "edpm_nova_compute.service",
            "edpm_neutron_sriov_agent.service",
            "edpm_ovn_metadata_agent.service",
            "edpm_ovn_metadata_agent_healthcheck.timer",
            "edpm_ovn_controller.service",
            options=("-e", "edpm_nova_host_leaves=true"),
        )

    def test_a_unit_between_two_starts_or_only_enabled_is_stopped(self):
        for state in ("disabled activating", "enabled failed", "enabled inactive", "enabled-runtime active"):
            with self.subTest(state):
                (self.directory / "bin" / "stopped").unlink(missing_ok=True)
                self.host(edpm_nova_compute__service=state)
                self.cleaned("edpm_nova_compute.service")

    def test_a_container_that_runs_without_its_unit_is_stopped(self):
        self.host(running="true", edpm_nova_compute__service="disabled inactive")
        self.cleaned("nova_compute")

    def test_a_host_without_a_compute_is_left_as_it_is(self):
        self.host()
        self.cleaned()

    def refused(self, *said):
        """Plays where guests are on the host: nothing is touched, and all of this is said."""
        self.host(edpm_nova_compute__service="enabled active", running="true")
        done = self.play("-e", "edpm_nova_remove_files=true", "-e", "edpm_nova_host_leaves=true")
        self.assertNotEqual(done.returncode, 0, done.stdout)
        for text in said:
            self.assertIn(text, done.stdout)
        self.assertIn("changed=0", done.stdout)
        self.assertEqual(self.stopped(), [])

    def test_a_host_on_which_a_guest_runs_is_not_touched_and_the_guest_is_named(self):
        uuid = "6a1e3a0e-5b7c-4a53-9e0c-6f1f4b1c2d3e"
        guest = f"-name guest=instance-00000001,debug-threads=on -S -uuid {uuid} -no-user-config"
        for program in ("/usr/bin/qemu-system-x86_64", "/usr/libexec/qemu-kvm"):
            with self.subTest(program):
                self.processes("/usr/sbin/libvirtd", f"{program} {guest}")
                self.refused(
                    "The host must have no guests",
                    f"1 guest is on this host, so nova-compute is not stopped: instance-00000001 ({uuid}). Migrate or delete",
                )

    def test_guests_of_all_kinds_count_and_three_of_them_are_named(self):
        self.processes(
            "/usr/libexec/libvirt_lxc --name c1 --console 23", "/usr/bin/cloud-hypervisor --api-socket x",
            *(f"qemu-system-aarch64 -name guest=g{number}" for number in range(5)),
        )
        self.refused("7 guests are on this host, so nova-compute is not stopped: c1, g0, g1 and others.")

    def test_a_guest_that_is_shut_off_is_on_the_host_too(self):
        self.write("definitions/instance-00000002.xml", "<domain type='kvm'>\n  <uuid>0f-1</uuid>\n</domain>\n")
        self.write("definitions/networks/default.xml", "<network/>\n")
        self.refused("1 guest is on this host, so nova-compute is not stopped: instance-00000002 (0f-1). Migrate")

    def test_what_libvirt_asks_of_qemu_is_no_guest(self):
        self.processes("/usr/bin/qemu-system-x86_64 -S -no-user-config -nodefaults -nographic -machine none,accel=kvm")
        self.host(edpm_nova_compute__service="enabled active")
        self.cleaned("edpm_nova_compute.service")

    def test_a_host_whose_processes_cannot_be_listed_is_not_taken_for_an_empty_one(self):
        for fails in ("exit 1", "exit 0"):
            with self.subTest(fails):
                self.write("bin/ps", f"#!/bin/sh\n{fails}\n").chmod(0o755)
                self.refused("Look for guests")
        (self.directory / "bin" / "ps").unlink()
        for tool in ("id", "sed", "grep", "sort", "head", "bash", "cut", "dirname", "cat", "mkdir", "rm", "chmod", "stat"):
            (self.directory / "bin" / tool).symlink_to(shutil.which(tool))
        self.path = f"{self.directory}/bin"
        self.refused("guests cannot be looked for without ps")

    def test_no_key_that_opens_other_hosts_stays_where_files_are_removed(self):
        pki = "var/lib/edpm-config/libvirt/pki"
        removed = [
            "var/lib/openstack/config/nova/01-nova.conf", "var/lib/nova/.ssh/ssh-privatekey", "home/nova/.ssh/authorized_keys",
            "var/lib/openstack/certs/libvirt/default/tls.key", *(f"{pki}/{name}.pem" for name in (
                "libvirt/private/clientkey", "libvirt/private/serverkey", "qemu/client-key", "qemu/server-key",
            )),
        ]
        kept = ["var/lib/nova/compute_id", "var/lib/openstack/certs/ovn/default/tls.key"]
        for path in [*removed, *kept]:
            self.write(f"root/{path}", "")
        self.host(edpm_nova_compute__service="enabled active")
        mounts = "".join(f'mkdir -p /{it} && mount --bind "$0/{it}" /{it} && ' for it in ("var/lib", "home"))
        # The second time the host leaves, and with it go the keys of neutron's agents.
        for leaves, left in ((False, kept), (True, kept[:1])):
            with self.subTest(leaves=leaves):
                variables = {"edpm_guests_definitions": [], "edpm_nova_remove_files": True, "edpm_nova_host_leaves": leaves}
                done = self.command(
                    "unshare", "--mount", "sh", "-c", f'{mounts}exec "$@"', self.directory / "root",
                    BIN / "ansible-playbook", "-i", "localhost,", "-c", "local", "-e", "ansible_become=false",
                    "-e", json.dumps(variables), self.playbook, env={"PATH": self.path},
                )
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                root = self.directory / "root"
                found = [str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()]
                self.assertEqual(sorted(found), sorted(left))
        # libvirt's container has the directory mounted, and would not start again without it.
        self.assertTrue((self.directory / "root" / pki / "qemu").is_dir())

    def test_a_unit_that_cannot_be_stopped_fails_the_play(self):
        self.host(edpm_nova_compute__service="enabled active")
        self.write("bin/stop-fails", "")
        done = self.play()
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.assertIn("Stop and disable the units of nova-compute", done.stdout)


if __name__ == "__main__":
    unittest.main()
