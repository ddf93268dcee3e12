//! The reasons of the conditions `ConfigurationInSync` and `RedeployRequested`.

api::reasons! {
    pub(crate) mod catalog;

    /// What audits of a host find.
    const AUDITS;

    IN_SYNC: good "InSync"
        means "The last audit found nothing that differs from what was deployed.";
    OUT_OF_SYNC: warning "OutOfSync"
        means "Files, containers, units or firewall rules of the host differ from what was \
            deployed; the message has their number and the first three."
        heals "When an audit finds no difference; with `nova.openstack.org/audit-repair` the host \
            is deployed again once for each result."
        step "Deploy it again; the message has the command.";
    DEPLOYED_SINCE: unknown "DeployedSince"
        means "The last audit found differences, and the host was deployed again since."
        heals "Yes." step "Wait for the next audit.";
    DEPLOYMENT_FAILED_SINCE: unknown "DeploymentFailedSince"
        means "The last audit found no difference, and a deployment has failed on the host since, \
            which may have changed a part of it."
        heals "When the host is deployed again." step "See `DeploymentReady`.";
    AUDIT_OVERDUE: unknown "AuditOverdue"
        means "The last audit found no difference, and none has ended for three intervals since."
        heals "When the next audit of the host ends."
        step "See what keeps node and compute from being deployed with their present inputs, and \
            whether their ssh Secret exists; else audits wait for their places.";
    NOT_AUDITED: unknown "NotAudited" means "No audit of the host has ended yet."
        heals "Yes, once the host is deployed." step "Wait for the first audit.";
    NOT_RECORDED: unknown "DeploymentNotRecorded"
        means "It is not known which files were last deployed, because a release before has \
            deployed them, or because the Secret with them was made again since by a release that \
            renders them otherwise: nothing is compared or repaired."
        heals "With the next deployment."
        step "Deploy, if you want audits before the next change; the message has the command.";
    HOST_NOT_ANSWERING: unknown "HostNotAnswering" means "The host gave the last audit no answer."
        heals "At the next audit that it answers."
        step "See whether ssh to the host answers, and the log of the run.";
    AUDIT_FAILED: unknown "AuditFailed"
        means "The last audit has no result of the host, or one that cannot be read."
        heals "At the next audit that comes to its end."
        step "Read the log of the run; the message has the command that finds it.";
    AUDIT_PLAYBOOK_UNREADABLE: unknown "AuditPlaybookUnreadable"
        means "The runner image of the compute has no playbook for audits that Ansible can read."
        heals "No."
        step "Set `spec.ansibleEEContainerImage` of the compute to the image of this release, or \
            correct `auditPlaybook` of the service.";
    AUDIT_INVALID: error "AuditInvalid"
        means "An annotation of the audits has no legal value; nothing is audited."
        heals "No." step "Correct it; the message names the legal values.";

    /// The repair of what an audit found.
    const REPAIR;

    REPAIR_REQUESTED: notable "RepairRequested"
        means "An audit found differences on the host, where services of phase 0 are audited too: \
            all services of the node are to be deployed once more; the message has the run and the \
            first difference."
        heals "When the compute was deployed since."
        step "Wait: `deploy` and `maxUnavailable` of the role decide when that begins.";
}
