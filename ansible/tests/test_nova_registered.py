"""nova-operator's play that asks for a compute's registration, against a podman that answers as told."""

import re
import unittest

from support import ANSIBLE, BIN, TemporaryDirectoryTest

PLAY = ANSIBLE.parent / "crates" / "nova-operator" / "plays" / "nova-registered.yaml"

PODMAN = r"""#!/bin/bash
# Each exec answers with the next line of the file "answers"; the last one stays.
here=$(dirname "$0")
case $1 in
exec)
    cat >/dev/null
    [ -e "$here/exec-fails" ] && { echo "Error: container state improper" >&2; exit 255; }
    head -n 1 "$here/answers"
    [ "$(wc -l <"$here/answers")" -gt 1 ] && sed -i 1d "$here/answers"
    exit 0 ;;
container) [ -e "$here/inspect" ] && cat "$here/inspect" || exit 125 ;;
logs) echo "the last line of nova-compute" >&2 ;;
esac
"""

RUNNING = '[{"State": {"Running": true}}]'
REGISTERED = '{"state": "registered", "host": "h", "last_seen_up": "%s"}'
UNREGISTERED = '{"state": "unregistered", "host": "h"}'


class NovaRegistered(TemporaryDirectoryTest):
    def play(self, *answers, inspect=RUNNING, exec_fails=False):
        self.write("bin/podman", PODMAN).chmod(0o755)
        self.write("bin/answers", "\n".join(answers) + "\n")
        if inspect:
            self.write("bin/inspect", inspect)
        if exec_fails:
            self.write("bin/exec-fails", "")
        # The pauses are the only thing that is changed.
        text, n_changed = re.subn(r"retries: \d+\n(\s+)delay: \d+", r"retries: 2\n\1delay: 0", PLAY.read_text())
        self.assertEqual(n_changed, 2)
        (self.directory / "play.yml").write_text(text)
        return self.command(
            BIN / "ansible-playbook", "-i", "localhost,", "-c", "local", "-e", "ansible_become=false", "play.yml",
            env={"PATH": f"{self.directory}/bin:{BIN}:/usr/bin:/bin"},
        )

    def fails(self, words, *answers, **more):
        done = self.play(*answers, **more)
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.assertIn(f'"msg": "{words}', done.stdout.replace("\n", " "))

    def test_a_report_that_moves_while_the_play_lasts_counts(self):
        done = self.play(REGISTERED % "10:00:00", REGISTERED % "10:00:10")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("changed=0", done.stdout)

    def test_a_record_that_appears_while_the_play_lasts_counts(self):
        done = self.play(UNREGISTERED, REGISTERED % "None", REGISTERED % "10:00:10")
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_a_report_from_before_the_run_does_not_count(self):
        self.fails("nova-compute runs, but has not reported to its cell since 10:00:00", REGISTERED % "10:00:00")

    def test_a_report_does_not_count_before_it_is_known_what_was_there(self):
        bus = '{"state": "bus", "said": "(403) ACCESS_REFUSED"}'
        self.fails("nova-compute runs, but has not reported to its cell since", bus, REGISTERED % "10:00:00")

    def test_a_missing_record_is_told(self):
        self.fails("nova-compute runs, but the cell has no Service record of h", UNREGISTERED)

    def test_a_refused_login_is_told_with_the_brokers_words(self):
        said = '{"state": "bus", "said": "(403) ACCESS_REFUSED"}'
        self.fails("The cell's message bus refuses nova-compute or cannot be reached: (403)", said)

    def test_a_silent_conductor_is_told(self):
        self.fails("The cell's nova-conductor does not answer", '{"state": "conductor", "said": ""}')

    def test_a_stopped_container_is_told_with_its_last_line(self):
        self.fails(
            "The container nova_compute is not running; its last line is: the last line of nova-compute",
            inspect='[{"State": {"Running": false}}]', exec_fails=True,
        )

    def test_a_missing_container_is_told(self):
        self.fails("The container nova_compute does not exist", inspect=None, exec_fails=True)


if __name__ == "__main__":
    unittest.main()
