//! The reasons on cells.

use api::conditions::Reason;

pub(crate) const UNREACHABLE: Reason = Reason::warning(
    "Unreachable",
    "No connection, or no answer in time.",
    "Yes.",
    "Start the server; check host and port in `transport_url` or `spec.keystoneAuthURL`.",
);
pub(crate) const CERTIFICATE_NOT_TRUSTED: Reason = Reason::warning(
    "CertificateNotTrusted",
    "The server does not support TLS, or its certificate is not trusted.",
    "Yes.",
    "Add its authority to `CABundle` of the cell's Secret.",
);
pub(crate) const NOT_ASKED: Reason = Reason::unknown(
    "InputMissing",
    "It is asked once every input is there.",
    "Yes.",
    "See `InputReady`.",
);
pub(crate) const ANSWER_PENDING: Reason = Reason::unknown(
    "AnswerPending",
    "It is being asked for the first time with these inputs.",
    "Yes.",
    "Wait: a service that swallows packets counts as silent after some seconds.",
);
pub(crate) const READY: Reason = Reason::good("Ready", "Message bus and Keystone answer.");
pub(crate) const INPUT_COMPLETE: Reason =
    Reason::good("InputComplete", "Both Secrets are there and complete.");
pub(crate) const SECRET_NOT_FOUND: Reason = Reason::warning(
    "SecretNotFound",
    "A Secret does not exist.",
    "When it appears.",
    "Create it; the message has the command.",
);
pub(crate) const SECRET_INCOMPLETE: Reason = Reason::warning(
    "SecretIncomplete",
    "A key is missing or empty.",
    "When it is corrected.",
    "Add the key.",
);
pub(crate) const INPUT_INVALID: Reason = Reason::warning(
    "InputInvalid",
    "A value cannot be used.",
    "When it is corrected.",
    "Correct it; the message names Secret and key.",
);
pub(crate) const ANSWERED: Reason = Reason::good("Answered", "Keystone answers.");
pub(crate) const NOT_KEYSTONE: Reason = Reason::warning(
    "NotKeystone",
    "What answers is no Keystone of version 3.",
    "Yes.",
    "Correct `spec.keystoneAuthURL`.",
);
pub(crate) const INVALID_URL: Reason =
    Reason::warning("InvalidURL", "It is no http or https URL.", "No.", "Correct it.");
pub(crate) const OTHER_IDENTITIES: Reason = Reason::warning(
    "OtherIdentity",
    "The nova that the cell names has hosts of computes under other identities than they have \
     registered with, or does not have them; the message has the first five, and both identities of the \
     first one.",
    "When nova has the recorded identities again.",
    "Correct `spec.keystoneAuthURL` or `RegionName`, or have all computes take what this nova has; the \
     message has the command.",
);
pub(crate) const CONDUCTOR_SILENT: Reason = Reason::warning(
    "ConductorSilent",
    "No nova-conductor answered the named computes when they asked last.",
    "When those computes ask again.",
    "Start the cell's conductor, or read its log.",
);
pub(crate) const CELL_IN_USE: Reason = Reason::warning(
    "CellInUse",
    "Computes name the cell, or hosts that leave node sets are being removed from nova; the first \
     five are in the message.",
    "When they are gone.",
    "Delete the nodes of the computes, or let these go; see `HostsRemoved` of the node sets.",
);
pub(crate) const SERVERS_IN_CELL: Reason = Reason::warning(
    "ServersOnHosts",
    "Hosts of the cell have servers or open migrations; the first five are in the message.",
    "When they have none.",
    "Migrate or delete the servers; the message has the command that lists them.",
);
pub(crate) const LEFTOVERS_IN_CELL: Reason = Reason::warning(
    "LeftoversInNova",
    "`status.leftovers` of the cell has UUIDs that are still to be deleted in nova and placement; the \
     first five hosts are in the message.",
    "When they are deleted.",
    "See the message of each entry; or let the cell go, with the command in the message.",
);
pub(crate) const SERVERS_UNKNOWN: Reason = Reason::unknown(
    "ServersUnknown",
    "It is unknown whether hosts of the cell have servers; the message has the cause.",
    "When nova's API and the database of the cell answer.",
    "Follow the message.",
);
pub(crate) const RENDERED: Reason = Reason::good("Rendered", "The files are in the named Secret.");
pub(crate) const NOT_NEEDED: Reason = Reason::good("NotNeeded", "A cell0 never has computes.");
pub(crate) const UP_TO_DATE: Reason =
    Reason::good("UpToDate", "All computes use the current credentials.");
pub(crate) const NO_COMPUTES: Reason = Reason::good("NoComputes", "No compute names the cell.");
pub(crate) const COMPUTES_BEHIND: Reason = Reason::waiting(
    "ComputesBehind",
    "Some computes, the first of them named, were last deployed with other credentials, or \
     never.",
    "With `deploy: true`, as `maxUnavailable` allows.",
    "Wait, or see `UpToDate` of those computes; keep the old credentials valid until then.",
);
pub(crate) const COMPUTES_UNKNOWN: Reason = Reason::unknown(
    "InputMissing",
    "It is known once every input is there.",
    "Yes.",
    "See `InputReady`.",
);
pub(crate) const LOGGED_IN: Reason = Reason::good("LoggedIn", "Every broker accepts the login.");
pub(crate) const ACCESS_REFUSED: Reason = Reason::warning(
    "AccessRefused",
    "User or password are wrong.",
    "Yes.",
    "Correct `transport_url`.",
);
pub(crate) const VHOST_MISSING: Reason = Reason::warning(
    "VhostMissing",
    "The virtual host does not exist.",
    "Yes.",
    "Correct RabbitMQ or `transport_url`.",
);
pub(crate) const VHOST_REFUSED: Reason = Reason::warning(
    "VhostRefused",
    "The user may not use the virtual host.",
    "Yes.",
    "Correct RabbitMQ or `transport_url`.",
);
pub(crate) const REFUSED: Reason = Reason::warning(
    "Refused",
    "The broker refuses for another reason, given by its code and text.",
    "Yes.",
    "As the text says.",
);
pub(crate) const NOT_AMQP: Reason = Reason::warning(
    "NotAMQP",
    "What answers there is no AMQP broker with passwords.",
    "Yes.",
    "Correct `transport_url`.",
);
pub(crate) const NOVA_ANSWERED: Reason = Reason::good("Answered", "Nova's API answers.");
pub(crate) const NOVA_NOT_READ: Reason = Reason::unknown(
    "NotRead",
    "Nova's API has not been read yet.",
    "Yes.",
    "Wait; see `InputReady` where an input is missing.",
);
pub(crate) const NOT_NOVA: Reason = Reason::warning(
    "NotNova",
    "What answers at the endpoint of the catalog is not nova's API.",
    "When the endpoint is corrected.",
    "Correct the endpoint of type `compute` in Keystone's catalog.",
);
pub(crate) const ANSWER_TOO_LARGE: Reason = Reason::warning(
    "AnswerTooLarge",
    "An answer exceeds a limit of docs/limits.md, or the memory that is left for the namespace.",
    "When it returns less.",
    "See the message.",
);
pub(crate) const ENDPOINT_NOT_FOUND: Reason = Reason::warning(
    "EndpointNotFound",
    "Keystone's catalog has no internal or public endpoint of nova in the region of the cell.",
    "When the catalog or the region is corrected.",
    "Correct `RegionName` of the cell's Secret, or the catalog.",
);
pub(crate) const VERSION_NOT_SUPPORTED: Reason = Reason::warning(
    "VersionNotSupported",
    "Nova's API does not support microversion 2.69.",
    "When nova is upgraded.",
    "Upgrade nova to Stein or newer.",
);
pub(crate) const CREDENTIALS_REFUSED: Reason = Reason::warning(
    "CredentialsRefused",
    "Keystone refuses user or password of the cell.",
    "When the Secret is corrected; a refused login is repeated every five minutes.",
    "Correct `ServicePassword` of the cell's Secret.",
);
pub(crate) const TOKEN_REFUSED: Reason = Reason::warning(
    "TokenRefused",
    "Nova's API refuses a token that Keystone has just issued.",
    "When it accepts one.",
    "Look at `[keystone_authtoken]`, the clock and the log of nova's API.",
);
pub(crate) const ROLE_MISSING: Reason = Reason::warning(
    "RoleMissing",
    "The user of the cell lacks the role `admin` in its project.",
    "When the role is assigned.",
    "Assign the role with `openstack role add`.",
);
pub(crate) const NOVA_CONFLICT: Reason =
    Reason::warning("NovaConflict", "Nova's API reports a conflict.", "Yes.", "See the message.");
pub(crate) const NOVA_BUSY: Reason = Reason::warning(
    "NovaBusy",
    "Nova's API, or Keystone, asks to try later.",
    "Yes.",
    "Look at the load and the log of the service.",
);
pub(crate) const REQUEST_REFUSED: Reason =
    Reason::warning("RequestRefused", "Nova's API rejects a request.", "Yes.", "See the message.");
pub(crate) const NOVA_FAILED: Reason = Reason::warning(
    "NovaFailed",
    "Nova's API, or Keystone, fails with an HTTP status of 500 or more.",
    "When it answers.",
    "Read its log.",
);
pub(crate) const HOSTS_MAPPED: Reason =
    Reason::good("HostsMapped", "Nova's API reports no registered host of the cell as not mapped.");
pub(crate) const HOSTS_DISCOVERED: Reason = Reason::good(
    "HostsDiscovered",
    "The first Job has succeeded; nova's API has not reported the hosts as mapped yet.",
);
pub(crate) const DISCOVERING: Reason = Reason::waiting(
    "Discovering",
    "The named Job discovers hosts, or another Job of the cell has to end first.",
    "Yes.",
    "Wait; look at the Job's pod where it does not start.",
);
pub(crate) const DISCOVERY_FAILED: Reason = Reason::warning(
    "DiscoveryFailed",
    "The named Job has failed.",
    "When a further Job succeeds: it is tried again after 1, 2, 4 … 30 minutes, and at once when \
     an input is corrected.",
    "As the message says; it has the command for the log.",
);
pub(crate) const HOSTS_STILL_UNMAPPED: Reason = Reason::warning(
    "HostsStillUnmapped",
    "Jobs succeed, and nova's API still reports the named hosts as not mapped.",
    "When nova's API reports the hosts as mapped.",
    "Compare the API database of the Secret with that of nova, and nova's cells with the cell.",
);
pub(crate) const DISCOVERY_INPUT_MISSING: Reason = Reason::unknown(
    "InputMissing",
    "An annotation is missing or invalid, or the Secret that one names does not exist.",
    "When it is corrected.",
    "Correct it; the message names annotation or Secret, and the legal values.",
);
