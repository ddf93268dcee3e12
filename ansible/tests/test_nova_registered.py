"""nova-operator's play that asks for a compute's registration, against a podman that answers as told."""

import json
import re
import unittest

from support import ANSIBLE, BIN, TemporaryDirectoryTest

PLAY = ANSIBLE.parent / "crates" / "nova-operator" / "plays" / "nova-registered.yaml"

PODMAN = r"""#!/bin/bash
# Each exec answers with the next line of the file "answers"; the last one stays. Whatever changes a host is refused.
here=$(dirname "$0")
case $1 in
exec)
    cat >/dev/null
    [ -e "$here/exec-fails" ] && { echo "Error: container state improper" >&2; exit 255; }
    head -n 1 "$here/answers"
    [ "$(wc -l <"$here/answers")" -gt 1 ] && sed -i 1d "$here/answers"
    exit 0 ;;
container) [ -e "$here/inspect" ] && cat "$here/inspect" || exit 125 ;;
logs)
    [ -e "$here/inspect" ] && [ "$2 $4" = "--since nova_compute" ] || exit 125
    awk -v since="$3" '$1 >= since + 0' "$here/log" >&2 ;;
*) touch "$here/changed"; exit 1 ;;
esac
"""

# The lines of the container's log, in podman's hands and in the journal's, begin with their time.
JOURNALCTL = r"""#!/bin/bash
here=$(dirname "$0")
case " $* " in
*" --since=@"*" CONTAINER_NAME=nova_compute "*) ;;
*) exit 1 ;;
esac
arguments=$*
since=${arguments#*--since=@}
awk -v since="${since%% *}" '$1 >= since + 0' "$here/journal"
"""

# Seconds of a time before the play begins and of one in its course.
BEFORE, MEANWHILE = 1, 9999999999
RUNNING = f"true {BEFORE}"
STARTED_AGAIN = f"true {MEANWHILE}"
STOPPED = f"false {MEANWHILE}"
REFUSED = "CRITICAL nova hunter2 amqp.exceptions.AccessRefused: (0, 0): (403) ACCESS_REFUSED - Login was refused"
NO_VHOST = "CRITICAL nova hunter2 amqp.exceptions.NotAllowed: Connection.open: (530) NOT_ALLOWED - vhost x not found"
RENAMED = "ERROR nova hunter2 InvalidConfiguration: My node u has host 'h' but my host is 'i'; Possible rename detected, refusing to start!"
OTHER = "CRITICAL nova hunter2 METHOD_NOT_ALLOWED libvirt.libvirtError: no such socket"
LOST = "CRITICAL nova hunter2 InvalidConfiguration: No local node identity found, but this is not our first startup on this host."
DUPLICATE = "ERROR nova hunter2 InvalidConfiguration: Duplicate compute node record found for host h node h"
CONFLICT = 'ERROR hunter2 Got 409: {"detail": "There was a conflict. Conflicting resource provider name: h already exists."}'
# More than what is read of a log.
LONG_LOG = [(9, "DEBUG hunter2 " + "x" * 1_000_000)] * 17
CREATED = "INFO hunter2 [req-1] Created resource provider record via placement API for resource provider with UUID u and name h."
REGISTERED = '{"state": "registered", "host": "h", "last_seen_up": "%s"}'
UNREGISTERED = '{"state": "unregistered", "host": "h"}'
REFUSAL = (
    "The message bus refuses nova-compute with ACCESS_REFUSED: user, password or vhost of transport_url is wrong. "
    "Correct it in customServiceConfig"
)
UNSTABLE = (
    "The container nova_compute does not stay up: ConfigWarnings of the NovaExternalCompute names values that nova refuses; "
    "else read `podman logs nova_compute` on the host."
)


class NovaRegistered(TemporaryDirectoryTest):
    def play(self, *answers, inspect=RUNNING, exec_fails=False, log=(), journal=(), tries="2", given=()):
        self.write("bin/podman", PODMAN).chmod(0o755)
        self.write("bin/journalctl", JOURNALCTL).chmod(0o755)
        self.write("bin/answers", "\n".join(answers) + "\n")
        for name, lines in (("log", log), ("journal", journal)):
            self.write(f"bin/{name}", "".join(f"{time} {line}\n" for time, line in lines))
        for name, text in (("inspect", inspect), ("exec-fails", exec_fails)):
            (self.directory / "bin" / name).unlink(missing_ok=True)
            if text:
                self.write(f"bin/{name}", f"{text}\n")
        # The pauses are the only thing that is changed.
        pauses = re.compile(r"retries: (.*)\n(\s+)delay: \d+")
        text, n_changed = pauses.subn(rf"retries: {tries}\n\2delay: 0", PLAY.read_text())
        self.assertEqual(n_changed, 2)
        text = text.replace("[cat, /var/lib/nova/compute_id]", f"[cat, {self.directory}/compute_id]")
        (self.directory / "play.yml").write_text(text)
        return self.command(
            BIN / "ansible-playbook", "-v", "-i", "localhost,", "-c", "local", "-e", "ansible_become=false", *given, "play.yml",
            env={"PATH": f"{self.directory}/bin:{BIN}:/usr/bin:/bin", "ANSIBLE_SHOW_CUSTOM_STATS": "true"},
        )

    def fails(self, words, *answers, **more):
        done = self.play(*answers, **more)
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.assertIn(f'"msg": "{words}', done.stdout.replace("\n", " "))
        self.assertIn("changed=0", done.stdout)
        self.assertFalse((self.directory / "bin" / "changed").exists(), done.stdout)
        self.assertNotIn("hunter2", done.stdout + done.stderr, "the log is nobody's business")
        self.task_that_failed = done.stdout[: done.stdout.rindex("fatal: ")].rpartition("TASK [")[2]

    def test_a_report_that_moves_while_the_play_lasts_counts(self):
        done = self.play(REGISTERED % "10:00:00", REGISTERED % "10:00:10")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("changed=0", done.stdout)

    def test_the_uuid_of_the_compute_node_is_reported_and_nothing_else_that_its_file_may_have(self):
        uuid = "0a0a0a0a-1111-2222-3333-444444444444"
        for text, ids in ((f"{uuid}\n", {"localhost": uuid}), (f"{uuid} and more\n", {}), ("{{ 1 + 1 }}\n", {})):
            self.write("compute_id", text)
            done = self.play(REGISTERED % "10:00:00", REGISTERED % "10:00:10")
            self.assertEqual(done.returncode, 0, done.stdout)
            stats = json.loads(done.stdout[done.stdout.rindex("RUN: ") + 5 :])
            self.assertEqual(json.loads(stats["edpm_report"]), {"compute_ids": ids})

    def test_a_record_that_appears_while_the_play_lasts_counts(self):
        done = self.play(UNREGISTERED, REGISTERED % "None", REGISTERED % "10:00:10")
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_a_report_from_before_the_run_does_not_count(self):
        words = "nova-compute runs, but has not reported to its cell since 10:00:00: read `podman logs"
        self.fails(words, REGISTERED % "10:00:00")

    def test_a_report_does_not_count_before_it_is_known_what_was_there(self):
        bus = '{"state": "bus", "said": "(403) ACCESS_REFUSED"}'
        self.fails("nova-compute runs, but has not reported to its cell since", bus, REGISTERED % "10:00:00")

    def test_a_host_that_the_run_has_restarted_gets_minutes_until_its_container_answers(self):
        answers = ["nothing"] * 40 + [REGISTERED % "10:00:00", REGISTERED % "10:00:10"]
        self.assertNotEqual(self.play(*answers, tries=r"\1").returncode, 0)
        done = self.play(*answers, tries=r"\1", given=["-e", '{"edpm_reboot_after": {"stdout": "second"}}'])
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_a_missing_record_is_told(self):
        self.fails("nova-compute runs, but the cell has no Service record of h: read `podman logs", UNREGISTERED)

    def test_a_bus_that_does_not_answer_is_told_with_the_drivers_words(self):
        said = '{"state": "bus", "said": "ECONNREFUSED"}'
        self.fails("nova-compute cannot use the cell's message bus: ECONNREFUSED", said)

    def test_a_refused_login_is_told_by_whoever_asks_the_running_container(self):
        said = '{"state": "bus", "said": "(0, 0): (403) ACCESS_REFUSED - Login was refused"}'
        self.fails(REFUSAL, said)

    def test_a_refused_login_is_told_wherever_in_its_restarts_the_container_is(self):
        # Its present life may have said nothing yet, or much already.
        for inspect, n_later in ((RUNNING, 0), (STARTED_AGAIN, 500), (STOPPED, 0)):
            later = [(MEANWHILE, f"INFO line {idx} hunter2") for idx in range(n_later)]
            self.fails(REFUSAL, inspect=inspect, exec_fails=True, log=[(MEANWHILE, REFUSED), *later])

    def test_a_refused_login_is_told_of_a_container_that_answers_nothing(self):
        self.fails(REFUSAL, "no answer", log=[(MEANWHILE, REFUSED)])

    def test_a_refused_login_is_told_of_a_container_that_is_gone_between_two_starts(self):
        self.fails(REFUSAL, inspect=None, exec_fails=True, journal=[(MEANWHILE, REFUSED)])

    def test_a_refused_vhost_is_told(self):
        refusal = REFUSAL.replace("ACCESS_REFUSED", "NOT_ALLOWED")
        self.fails(refusal, inspect=STOPPED, exec_fails=True, log=[(MEANWHILE, NO_VHOST)])

    def test_a_refusal_from_before_the_run_explains_nothing(self):
        old = [(BEFORE, REFUSED)]
        self.fails(UNSTABLE, inspect=STOPPED, exec_fails=True, log=old, journal=old)

    def test_a_refusal_of_earlier_does_not_hide_that_the_bus_lets_in_now(self):
        lines = [(MEANWHILE, REFUSED)]
        self.fails("The cell's nova-conductor does not answer", '{"state": "conductor", "said": ""}', log=lines)

    def test_another_name_of_the_host_is_told_whether_nova_compute_ends_or_stays(self):
        words = "nova-compute refuses to start, because nova has this host under another name (Possible rename detected). Take"
        for inspect, fails in ((STOPPED, True), (STARTED_AGAIN, True), (RUNNING, False)):
            self.fails(words, REGISTERED % "None", inspect=inspect, exec_fails=fails, log=[(MEANWHILE, RENAMED)])
        self.fails(words, inspect=None, exec_fails=True, journal=[(MEANWHILE, RENAMED)])
        self.fails(UNSTABLE, inspect=STOPPED, exec_fails=True, log=[(BEFORE, RENAMED)])

    def test_a_silent_conductor_is_told(self):
        self.fails("The cell's nova-conductor does not answer", '{"state": "conductor", "said": ""}')

    def test_a_container_that_ends_for_another_cause_is_told_with_the_command_for_its_log(self):
        for inspect in (STARTED_AGAIN, STOPPED):
            self.fails(UNSTABLE, inspect=inspect, exec_fails=True, log=[(MEANWHILE, OTHER)])

    def test_a_container_that_ends_without_a_word_is_told_with_the_command_for_its_log(self):
        self.fails(UNSTABLE, inspect=STOPPED, exec_fails=True)

    def test_a_missing_container_is_told(self):
        self.fails("The container nova_compute does not exist", inspect=None, exec_fails=True)


    def test_what_nova_says_of_its_identity_fails_a_compute_that_still_reports(self):
        moving = (REGISTERED % "10:00:00", REGISTERED % "10:00:10")
        for line, task, words in (
            (LOST, "nova-compute must find its identity", "nova-compute refuses to start, because it finds no"),
            (DUPLICATE, "The host must have one compute node", "nova-compute refuses to start, because nova has"),
            (CONFLICT, "The name of the resource provider must be free", "placement has a resource provider of this"),
        ):
            for answers in (moving, moving[:1]):
                self.fails(words, *answers, log=[(BEFORE, line), (MEANWHILE, OTHER)])
                self.assertIn(task, self.task_that_failed)

    def test_what_nova_said_before_it_started_again_or_until_its_provider_was_created_is_over(self):
        moving = (REGISTERED % "10:00:00", REGISTERED % "10:00:10")
        for inspect, log in (
            ("true 5", [(BEFORE, LOST), (BEFORE, DUPLICATE), (BEFORE, CONFLICT)]),
            (RUNNING, [(BEFORE, CONFLICT), (MEANWHILE, CREATED)]),
            (RUNNING, [(BEFORE, CONFLICT), *LONG_LOG, (MEANWHILE, CREATED)]),
            (RUNNING, [(MEANWHILE, LOST.replace("No local", "A local"))]),
        ):
            done = self.play(*moving, inspect=inspect, log=log)
            self.assertEqual(done.returncode, 0, done.stdout)


if __name__ == "__main__":
    unittest.main()
