"""nova-operator's play that takes nova-compute out of service, against a systemd and a podman in files."""

import unittest

from support import ANSIBLE, BIN, TemporaryDirectoryTest

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
            BIN / "ansible-playbook", "-v", "-i", "localhost,", "-c", "local", "-e", "ansible_become=false", *options, PLAY,
            env={"PATH": f"{self.directory}/bin:{BIN}:/usr/bin:/bin"},
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

    def test_a_unit_that_cannot_be_stopped_fails_the_play(self):
        self.host(edpm_nova_compute__service="enabled active")
        self.write("bin/stop-fails", "")
        done = self.play()
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.assertIn("Stop and disable the units of nova-compute", done.stdout)


if __name__ == "__main__":
    unittest.main()
