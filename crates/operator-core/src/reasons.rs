//! The reasons that several operators raise, and those of failed attempts.

#![expect(missing_docs, reason = "each constant says what it means")]

use api::conditions::Reason;

pub const FORBIDDEN: Reason = Reason::warning(
    "Forbidden",
    "The API server refuses an object: a quota, a policy or a missing permission.",
    "When the write is accepted.",
    "Raise the quota, change the policy, or give the operator the permission.",
);
pub const INVALID: Reason = Reason::warning(
    "Invalid",
    "The API server or a webhook does not accept the content of an object.",
    "When the write is accepted.",
    "Correct what the object is made from, or the policy.",
);
pub const ALREADY_EXISTS: Reason = Reason::warning(
    "AlreadyExists",
    "Another object has the name.",
    "When the write is accepted.",
    "Delete the other one if it is not needed, or name yours differently.",
);
pub const SSH_SECRET_INCOMPLETE: Reason = Reason::warning(
    "SshSecretIncomplete",
    "The ssh Secret lacks `ssh-privatekey`.",
    "When the key appears.",
    "Add the key.",
);
pub const SSH_SECRET_INVALID: Reason = Reason::warning(
    "SshSecretInvalid",
    "ssh cannot use what the ssh Secret has in `ssh-privatekey`.",
    "When the key is corrected.",
    "Put the private key there as the message says: as `ssh-keygen` wrote it, without a passphrase.",
);
pub const WAITING_FOR_TURN: Reason = Reason::waiting(
    "WaitingForTurn",
    "As many hosts that were in service as `maxUnavailable` allows are being deployed, fail or are \
     down.",
    "When one of them is in service again.",
    "Wait; where hosts that fail are named, correct their cause, raise `maxUnavailable`, or set \
     `deploy: false` on them.",
);
pub const PAUSED: Reason = Reason::waiting(
    "Paused",
    "`pauseOnFailure` is set, and a host of the role fails.",
    "When no host fails.",
    "Correct the cause that the role names, or set `pauseOnFailure: false`.",
);
pub const AWAITING_DISRUPTION: Reason = Reason::waiting(
    "AwaitingDisruption",
    "Hosts that are in service are deployed only once each operator that holds their node has allowed \
     it, in `status.disruption.holders` of the `OpenStackDataPlaneNode`.",
    "When it is allowed.",
    "Look at the conditions which the operator that the message names writes on the node.",
);
pub const UP_TO_DATE: Reason =
    Reason::good("UpToDate", "The last deployment used the present inputs.");
pub const NEVER_DEPLOYED: Reason =
    Reason::waiting("NeverDeployed", "No deployment has been completed.", "", "");
pub const INPUTS_CHANGED: Reason = Reason::waiting(
    "InputsChanged",
    "The named inputs changed since.",
    "With `deploy: true`.",
    "Deploy, if you want the change.",
);
pub const RUN_BLOCKED: Reason = Reason::warning(
    "RunBlocked",
    "Kubernetes refuses the Job or the pod of a run, can schedule it nowhere, or has lost its worker; \
     the message has its words.",
    "When the cause is gone.",
    "As the message says.",
);
pub const QUEUED: Reason = Reason::waiting(
    "Queued",
    "The next run waits for another that touches the host.",
    "Yes.",
    "Wait.",
);
pub const NOT_REQUESTED: Reason = Reason::waiting(
    "NotRequested",
    "Nothing may run.",
    "No.",
    "Set `deployStrategy.deploy: true` on node, role or data plane.",
);
pub const HOST_UNREACHABLE: Reason = Reason::warning(
    "HostUnreachable",
    "No ssh connection to the host, or it did not end a task within the limit of tasks.",
    "Yes.",
    "Start the host or its sshd; check `ansibleHost` and `ansiblePort`.",
);
pub const KEY_REFUSED: Reason = Reason::warning(
    "KeyRefused",
    "The host refuses the ssh key.",
    "Yes, and at once when the ssh Secret changes.",
    "Put the right key into `ssh-privatekey`, or the public one onto the host, for the user \
     `ansibleUser`.",
);
pub const HOST_KEY_MISMATCH: Reason = Reason::warning(
    "HostKeyMismatch",
    "The host shows another key than the known one, or none is known.",
    "Yes, and at once when the ssh Secret changes or another key is accepted.",
    "Compare with the host's console; then correct `known_hosts` in the ssh Secret, or accept a \
     key that was learned with the command in the message.",
);
pub const HOST_NOT_OWNED: Reason = Reason::warning(
    "HostNotOwned",
    "The host records another owner, or nova-compute there is another host's: nothing was \
     changed on it.",
    "Yes.",
    "Correct the address; or delete the object that has the host, and take the host over with \
     the command in the message.",
);
pub const GUESTS_ON_HOST: Reason = Reason::warning(
    "GuestsOnHost",
    "Guests are on the host itself, whatever nova has of it, so nothing is stopped, restarted or \
     given back there; the message has how many, and the first ones.",
    "Yes, once they are gone.",
    "Migrate or delete them; the message of a removal has the command to go on with them there.",
);
pub const IDENTITY_MISSING: Reason = Reason::warning(
    "IdentityMissing",
    "The host has no `/var/lib/nova/compute_id`, and nova has it under the recorded UUID: \
     nova-compute was not started.",
    "Yes, once nova has no servers on the host.",
    "Wait; or, for a host with servers, put the UUID into the file and redeploy.",
);
pub const IDENTITY_MISMATCH: Reason = Reason::error(
    "IdentityMismatch",
    "`/var/lib/nova/compute_id` has another UUID than the host's compute node in nova: \
     nova-compute was not touched.",
    "No.",
    "Put the UUID in the message into the file, or correct the address, then redeploy.",
);
pub const IDENTITY_NOT_FOUND: Reason = Reason::error(
    "IdentityNotFound",
    "nova-compute refuses to start on a host that it has been on, because it finds no identity.",
    "No.",
    "Redeploy the compute, which restores the identity where nova has no servers on the host.",
);
pub const DUPLICATE_COMPUTE_NODE: Reason = Reason::error(
    "DuplicateComputeNode",
    "nova-compute refuses to start, because nova has a compute node of the host with another UUID.",
    "No.",
    "Put that UUID into `/var/lib/nova/compute_id`, or delete the host's service in nova where it \
     has no servers; then redeploy.",
);
pub const PROVIDER_NAME_TAKEN: Reason = Reason::warning(
    "ProviderNameTaken",
    "Placement has a resource provider of the host's name with another UUID, so nova schedules \
     nothing to the host.",
    "Yes, once that provider is deleted.",
    "Wait where nova's API is used and the host is empty; else delete that provider.",
);
pub const POD_EVICTED: Reason = Reason::warning(
    "PodEvicted",
    "The runner's pod was evicted, preempted or killed, or its worker went away.",
    "Yes.",
    "Nothing.",
);
pub const IMAGE_PULL_FAILED: Reason = Reason::warning(
    "ImagePullFailed",
    "The runner image cannot be pulled.",
    "Yes.",
    "Correct the image or the registry.",
);
pub const INPUT_MISSING: Reason = Reason::warning(
    "InputMissing",
    "A Secret, ConfigMap, key or network that the pod mounts is missing.",
    "Yes.",
    "Create it.",
);
pub const TASK_FAILED: Reason = Reason::error(
    "TaskFailed",
    "A task failed; the message has task, file:line and the first line of what it said.",
    "No.",
    "Mend the cause, then change an input or redeploy.",
);
pub const NO_HOST_MATCHED: Reason = Reason::error(
    "NoHostMatched",
    "No play reached the host.",
    "No.",
    "Check the playbook's `hosts` and the limit, then change an input or redeploy.",
);
pub const INVALID_PLAYBOOK: Reason = Reason::error(
    "InvalidPlaybook",
    "Ansible cannot read the playbook, the inventory or the options.",
    "No.",
    "Correct it: that is a changed input.",
);
pub const INVALID_SPEC: Reason = Reason::error(
    "InvalidSpec",
    "The run cannot become a Job: the operator or the API server refuses what it says.",
    "No.",
    "Correct what the message names: that is a changed input.",
);
pub const DEADLINE_EXCEEDED: Reason = Reason::error(
    "DeadlineExceeded",
    "The run took longer than allowed (two hours unless it says otherwise).",
    "No.",
    "Look at the log, then redeploy.",
);
pub const RESULT_UNKNOWN: Reason = Reason::error(
    "ResultUnknown",
    "The run ended, or was deleted, without a report.",
    "No.",
    "Look at the log, then redeploy.",
);
pub const HOST_KEY_CHECKING_OFF: Reason = Reason::warning(
    "HostKeyCheckingOff",
    "Any machine that answers at the address of a host is taken for it, and is given what the host \
     would be.",
    "No.",
    "Take out what the message names, or keep it knowingly.",
);
pub const ISSUING: Reason = Reason::waiting(
    "Issuing",
    "Certificates are not issued yet; the message names the first one.",
    "When they are issued.",
    "Wait, or look at the Certificate.",
);
pub const CERT_MANAGER_NOT_FOUND: Reason = Reason::warning(
    "CertManagerNotFound",
    "`tlsEnabled` is true, and no operator issues certificates.",
    "Within a minute of cert-manager's installation.",
    "Install cert-manager, or set `tlsEnabled: false`.",
);
pub const ISSUER_NOT_FOUND: Reason = Reason::warning(
    "IssuerNotFound",
    "No Issuer, or several, carry the label that a certificate names.",
    "When exactly one does.",
    "Label one, name another in `tlsCerts`, or set `tlsEnabled: false`.",
);
pub const ISSUER_NOT_PERMITTED: Reason = Reason::warning(
    "IssuerNotPermitted",
    "The Issuer with that label is not meant for hosts.",
    "With the Issuer's next change.",
    "Annotate it with `dataplane.openstack.org/issues-for-hosts: \"true\"`, or name a label that \
     begins with `osp-rootca-issuer-`.",
);
