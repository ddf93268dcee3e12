//! Faults of runs that a human makes; their hosts are the runner pod itself.

use super::{Fault, Kstatus};

const RUN: &str = "OpenStackAnsibleEE";

/// The faults.
pub const FAULTS: &[Fault] = &[
    Fault {
        name: "by-hand-task-failed",
        done: "A task fails on one of two hosts.",
        kind: RUN,
        object: "run",
        words: ["b, task 'Break'", "broken", "kubectl logs -n NAMESPACE"],
        kstatus: Kstatus::Failed,
    },
    Fault {
        name: "by-hand-output-hidden",
        done: "A task with `no_log` fails.",
        kind: RUN,
        object: "run",
        words: ["task 'Sign in'", "(hidden by no_log)", "kubectl logs -n NAMESPACE"],
        kstatus: Kstatus::Failed,
    },
    Fault {
        name: "by-hand-playbook-invalid",
        done: "A play has a keyword that Ansible does not know.",
        kind: RUN,
        object: "run",
        words: [
            "the playbook (spec.playbookContents)",
            "Ansible gave up before any host",
            "kubectl logs -n NAMESPACE",
        ],
        kstatus: Kstatus::Failed,
    },
    Fault {
        name: "by-hand-playbook-not-found",
        done: "`spec.playbook` names a file that is not there.",
        kind: RUN,
        object: "run",
        words: [
            "the playbook (spec.playbook nowhere.yml)",
            "Ansible gave up before any host",
            "kubectl logs -n NAMESPACE",
        ],
        kstatus: Kstatus::Failed,
    },
    Fault {
        name: "by-hand-limit-without-host",
        done: "`--limit` leaves no host of the inventory.",
        kind: RUN,
        object: "run",
        words: [
            "--limit in spec.cmdLine",
            "leaves no host of the inventory",
            "correct the one or the other",
        ],
        kstatus: Kstatus::Failed,
    },
    Fault {
        name: "by-hand-hosts-not-matched",
        done: "The only play is about hosts that the inventory does not have.",
        kind: RUN,
        object: "run",
        words: [
            "any of the hosts",
            "No play reached",
            "check the playbook's hosts and the inventory",
        ],
        kstatus: Kstatus::Failed,
    },
    Fault {
        name: "by-hand-deadline",
        done: "A run takes longer than `activeDeadlineSeconds`.",
        kind: RUN,
        object: "run",
        words: ["Job run-", "was stopped at its deadline", "raise spec.activeDeadlineSeconds"],
        kstatus: Kstatus::Failed,
    },
    Fault {
        name: "by-hand-image-not-pulled",
        done: "`spec.image` names an image that the registry does not have.",
        kind: RUN,
        object: "run",
        words: ["edpm/no-such-image:1", "not found", "Correct spec.image, or its registry"],
        kstatus: Kstatus::InProgress,
    },
    Fault {
        name: "by-hand-environment-missing",
        done: "`spec.env` takes a value from a ConfigMap that does not exist.",
        kind: RUN,
        object: "run",
        words: [
            "configmap \"settings\"",
            "CreateContainerConfigError",
            "Create what is missing, or correct the spec",
        ],
        kstatus: Kstatus::InProgress,
    },
    Fault {
        name: "by-hand-job-refused",
        done: "A quota refuses the run's Job.",
        kind: RUN,
        object: "run",
        words: ["Job run-", "exceeded quota: no-more", "Raise the quota"],
        kstatus: Kstatus::InProgress,
    },
    Fault {
        name: "by-hand-job-deleted",
        done: "The run's Job is deleted while it runs.",
        kind: RUN,
        object: "run",
        words: [
            "Job run-",
            "was deleted before its result was recorded",
            "kubectl delete osaee -n NAMESPACE run",
        ],
        kstatus: Kstatus::Failed,
    },
    Fault {
        name: "by-hand-account-not-allowed",
        done: "A run asks for a ServiceAccount that the installation does not allow.",
        kind: RUN,
        object: "run",
        words: [
            "spec.serviceAccountName",
            "runs may not use ServiceAccount default",
            "take the field away",
        ],
        kstatus: Kstatus::Failed,
    },
];
