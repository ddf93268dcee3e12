//! The reasons of the conditions `ConfigurationInSync` and `RedeployRequested`.

use api::conditions::Reason;

pub(crate) const IN_SYNC: Reason =
    Reason::good("InSync", "The last audit found nothing that differs from what was deployed.");
pub(crate) const OUT_OF_SYNC: Reason = Reason::warning(
    "OutOfSync",
    "Files, containers, units or firewall rules of the host differ from what was deployed; the \
     message has their number and the first three.",
    "When an audit finds no difference; with `nova.openstack.org/audit-repair` the host is \
     deployed again once for each result.",
    "Deploy it again; the message has the command.",
);
pub(crate) const DEPLOYED_SINCE: Reason = Reason::unknown(
    "DeployedSince",
    "The last audit found differences, and the host was deployed again since.",
    "Yes.",
    "Wait for the next audit.",
);
pub(crate) const DEPLOYMENT_FAILED_SINCE: Reason = Reason::unknown(
    "DeploymentFailedSince",
    "The last audit found no difference, and a deployment has failed on the host since, which may \
     have changed a part of it.",
    "When the host is deployed again.",
    "See `DeploymentReady`.",
);
pub(crate) const AUDIT_OVERDUE: Reason = Reason::unknown(
    "AuditOverdue",
    "The last audit found no difference, and none has ended for three intervals since.",
    "When the next audit of the host ends.",
    "See what keeps node and compute from being deployed with their present inputs, and whether \
     their ssh Secret exists; else audits wait for their places.",
);
pub(crate) const NOT_AUDITED: Reason = Reason::unknown(
    "NotAudited",
    "No audit of the host has ended yet.",
    "Yes, once the host is deployed.",
    "Wait for the first audit.",
);
pub(crate) const NOT_RECORDED: Reason = Reason::unknown(
    "DeploymentNotRecorded",
    "It is not known which files were last deployed, because a release before has deployed them, or \
     because the Secret with them was made again since by a release that renders them otherwise: nothing \
     is compared or repaired.",
    "With the next deployment.",
    "Deploy, if you want audits before the next change; the message has the command.",
);
pub(crate) const HOST_NOT_ANSWERING: Reason = Reason::unknown(
    "HostNotAnswering",
    "The host gave the last audit no answer.",
    "At the next audit that it answers.",
    "See whether ssh to the host answers, and the log of the run.",
);
pub(crate) const AUDIT_FAILED: Reason = Reason::unknown(
    "AuditFailed",
    "The last audit has no result of the host, or one that cannot be read.",
    "At the next audit that comes to its end.",
    "Read the log of the run; the message has the command that finds it.",
);
pub(crate) const AUDIT_PLAYBOOK_UNREADABLE: Reason = Reason::unknown(
    "AuditPlaybookUnreadable",
    "The runner image of the compute has no playbook for audits that Ansible can read.",
    "No.",
    "Set `spec.ansibleEEContainerImage` of the compute to the image of this release, or correct \
     `auditPlaybook` of the service.",
);
pub(crate) const AUDIT_INVALID: Reason = Reason::error(
    "AuditInvalid",
    "An annotation of the audits has no legal value; nothing is audited.",
    "No.",
    "Correct it; the message names the legal values.",
);
pub(crate) const AUDITS_NOT_SUPPORTED: Reason = Reason::unknown(
    "AuditsNotSupported",
    "Hosts of node sets are not audited, so the annotation does nothing.",
    "When the annotation is gone.",
    "Remove the annotation.",
);
pub(crate) const REPAIR_REQUESTED: Reason = Reason::notable(
    "RepairRequested",
    "An audit found differences on the host, where services of phase 0 are audited too: all \
     services of the node are to be deployed once more; the message has the run and the first \
     difference.",
    "When the compute was deployed since.",
    "Wait: `deploy` and `maxUnavailable` of the role decide when that begins.",
);
