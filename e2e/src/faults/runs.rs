//! Faults of runs that a user creates; their host is the runner pod itself.

use super::{Fault, Kstatus};

/// What the faults have in common.
const OF_RUN: Fault = Fault { kstatus: Kstatus::Failed, ..Fault::of("OpenStackAnsibleEE", "run") };

/// The faults.
pub const FAULTS: &[Fault] = &[
    Fault {
        name: "by-hand-task-failed",
        done: "A task fails on one of two hosts.",
        words: ["b, task 'Break'", "broken", "kubectl logs -n NAMESPACE"],
        ..OF_RUN
    },
    Fault {
        name: "by-hand-output-hidden",
        done: "A task with `no_log` fails.",
        words: ["task 'Sign in'", "(hidden by no_log)", "kubectl logs -n NAMESPACE"],
        ..OF_RUN
    },
    Fault {
        name: "by-hand-playbook-invalid",
        done: "A play has a keyword that is unknown to Ansible.",
        words: [
            "the playbook (spec.playbookContents)",
            "Ansible failed before reaching any host",
            "kubectl logs -n NAMESPACE",
        ],
        ..OF_RUN
    },
    Fault {
        name: "by-hand-playbook-not-found",
        done: "`spec.playbook` names a file that is not there.",
        words: [
            "the playbook (spec.playbook nowhere.yml)",
            "Ansible failed before reaching any host",
            "kubectl logs -n NAMESPACE",
        ],
        ..OF_RUN
    },
    Fault {
        name: "by-hand-limit-without-host",
        done: "`--limit` leaves no host of the inventory.",
        words: [
            "--limit in spec.cmdLine",
            "matches no host of the inventory",
            "correct the limit or the inventory",
        ],
        ..OF_RUN
    },
    Fault {
        name: "by-hand-hosts-not-matched",
        done: "The only play is about hosts that the inventory does not have.",
        words: [
            "any of the hosts",
            "No play reached",
            "check the playbook's hosts and the inventory",
        ],
        ..OF_RUN
    },
    Fault {
        name: "by-hand-deadline",
        done: "A run takes longer than `activeDeadlineSeconds`.",
        words: ["Job run-", "was stopped at its deadline", "raise spec.activeDeadlineSeconds"],
        ..OF_RUN
    },
    Fault {
        name: "by-hand-image-not-pulled",
        done: "`spec.image` names an image that the registry does not have.",
        words: ["edpm/no-such-image:1", "not found", "Correct spec.image, or its registry"],
        kstatus: Kstatus::InProgress,
        ..OF_RUN
    },
    Fault {
        name: "by-hand-environment-missing",
        done: "`spec.env` takes a value from a ConfigMap that does not exist.",
        words: [
            "configmap \"settings\"",
            "CreateContainerConfigError",
            "Create what is missing, or correct the spec",
        ],
        kstatus: Kstatus::InProgress,
        ..OF_RUN
    },
    Fault {
        name: "by-hand-job-refused",
        done: "A quota refuses the run's Job.",
        words: ["Job run-", "exceeded quota: no-more", "Raise the quota"],
        kstatus: Kstatus::InProgress,
        ..OF_RUN
    },
    Fault {
        name: "by-hand-job-deleted",
        done: "The run's Job is deleted while it runs.",
        words: [
            "Job run-",
            "was deleted before its result was recorded",
            "kubectl delete osaee -n NAMESPACE run",
        ],
        ..OF_RUN
    },
    Fault {
        name: "by-hand-account-not-allowed",
        done: "A run asks for a ServiceAccount that the installation does not allow.",
        words: [
            "spec.serviceAccountName",
            "runs may not use ServiceAccount default",
            "remove the field",
        ],
        ..OF_RUN
    },
];
