//! The reasons on cells.

api::reasons! {
    pub(crate) mod catalog;

    /// Whether the cell can be used.
    const SUMMARY;

    READY: good "Ready" means "Message bus and Keystone answer.";

    /// The Secrets of the cell.
    const INPUTS;

    INPUT_COMPLETE: good "InputComplete" means "Both Secrets are there and complete.";
    SECRET_NOT_FOUND: warning "SecretNotFound" means "A Secret does not exist."
        heals "When it appears." step "Create it; the message has the command.";
    SECRET_INCOMPLETE: warning "SecretIncomplete" means "A key is missing or empty."
        heals "When it is corrected." step "Add the key.";
    INPUT_INVALID: warning "InputInvalid" means "A value cannot be used."
        heals "When it is corrected." step "Correct it; the message names Secret and key.";
    MESSAGE_BUS_SHARED: warning "MessageBusShared"
        means "Another cell of nova has the same message bus: servers of computes that are deployed with \
            the bus of another cell cannot be reached any more."
        heals "When it is corrected; until then nothing is deployed."
        step "Correct `transport_url`, or the name of the Secret; the message names both cells.";

    /// The login at the message bus.
    const MESSAGE_BUS;

    LOGGED_IN: good "LoggedIn" means "Every broker accepts the login.";
    UNREACHABLE: warning "Unreachable" means "No connection, or no answer in time."
        heals "Yes."
        step "Start the server; check host and port in `transport_url` or `spec.keystoneAuthURL`.";
    ACCESS_REFUSED: warning "AccessRefused" means "User or password are wrong."
        heals "Yes." step "Correct `transport_url`.";
    VHOST_MISSING: warning "VhostMissing" means "The virtual host does not exist."
        heals "Yes." step "Correct RabbitMQ or `transport_url`.";
    VHOST_REFUSED: warning "VhostRefused" means "The user may not use the virtual host."
        heals "Yes." step "Correct RabbitMQ or `transport_url`.";
    REFUSED: warning "Refused"
        means "The broker refuses for another reason, given by its code and text."
        heals "Yes." step "As the text says.";
    NOT_AMQP: warning "NotAMQP" means "What answers there is no AMQP broker with passwords."
        heals "Yes." step "Correct `transport_url`.";
    CERTIFICATE_NOT_TRUSTED: warning "CertificateNotTrusted"
        means "The server does not support TLS, or its certificate is not trusted."
        heals "Yes." step "Add its authority to `CABundle` of the cell's Secret.";
    NOT_ASKED: unknown "InputMissing" means "It is asked once every input is there."
        heals "Yes." step "See `InputReady`.";
    ANSWER_PENDING: unknown "AnswerPending"
        means "It is being asked for the first time with these inputs."
        heals "Yes."
        step "Wait: a service that swallows packets counts as silent after some seconds.";

    /// Whether Keystone answers.
    const KEYSTONE;

    ANSWERED: good "Answered" means "Keystone answers.";
    UNREACHABLE; CERTIFICATE_NOT_TRUSTED;
    NOT_KEYSTONE: warning "NotKeystone" means "What answers is no Keystone of version 3."
        heals "Yes." step "Correct `spec.keystoneAuthURL`.";
    INVALID_URL: warning "InvalidURL" means "It is no http or https URL."
        heals "No." step "Correct it.";
    NOT_ASKED; ANSWER_PENDING;

    /// The files that computes share.
    const CONFIG;

    RENDERED: good "Rendered" means "The files are in the named Secret.";
    NOT_NEEDED: good "NotNeeded" means "A cell0 never has computes.";

    /// The credentials with which computes were deployed.
    const COMPUTES;

    UP_TO_DATE: good "UpToDate" means "All computes use the current credentials.";
    NO_COMPUTES: good "NoComputes" means "No compute names the cell.";
    COMPUTES_BEHIND: waiting "ComputesBehind"
        means "Some computes, the first of them named, were last deployed with other credentials, \
            or never."
        heals "With `deploy: true`, as `maxUnavailable` allows."
        step "Wait, or see `UpToDate` of those computes; keep the old credentials valid until \
            then.";
    COMPUTES_UNKNOWN: unknown "InputMissing" means "It is known once every input is there."
        heals "Yes." step "See `InputReady`.";

    /// Whether nova's API answers.
    const NOVA_API;

    NOVA_ANSWERED: good "Answered" means "Nova's API answers.";
    NOVA_NOT_READ: unknown "NotRead" means "Nova's API has not been read yet."
        heals "Yes." step "Wait; see `InputReady` where an input is missing.";
    UNREACHABLE; CERTIFICATE_NOT_TRUSTED; INVALID_URL; NOT_KEYSTONE;
    NOT_NOVA: warning "NotNova"
        means "What answers at the endpoint of the catalog is not nova's API."
        heals "When the endpoint is corrected."
        step "Correct the endpoint of type `compute` in Keystone's catalog.";
    ENDPOINT_NOT_FOUND: warning "EndpointNotFound"
        means "Keystone's catalog has no internal or public endpoint of nova in the region of the \
            cell."
        heals "When the catalog or the region is corrected."
        step "Correct `RegionName` of the cell's Secret, or the catalog.";
    VERSION_NOT_SUPPORTED: warning "VersionNotSupported"
        means "Nova's API does not support microversion 2.69."
        heals "When nova is upgraded." step "Upgrade nova to Stein or newer.";
    CREDENTIALS_REFUSED: warning "CredentialsRefused"
        means "Keystone refuses user or password of the cell."
        heals "When the Secret is corrected; a refused login is repeated every five minutes."
        step "Correct `ServicePassword` of the cell's Secret.";
    TOKEN_REFUSED: warning "TokenRefused"
        means "Nova's API refuses a token that Keystone has just issued."
        heals "When it accepts one."
        step "Look at `[keystone_authtoken]`, the clock and the log of nova's API.";
    ROLE_MISSING: warning "RoleMissing"
        means "The user of the cell lacks the role `admin` in its project."
        heals "When the role is assigned." step "Assign the role with `openstack role add`.";
    NOVA_CONFLICT: warning "NovaConflict" means "Nova's API reports a conflict."
        heals "Yes." step "See the message.";
    NOVA_BUSY: warning "NovaBusy" means "Nova's API, or Keystone, asks to try later."
        heals "Yes." step "Look at the load and the log of the service.";
    REQUEST_REFUSED: warning "RequestRefused" means "Nova's API rejects a request."
        heals "Yes." step "See the message.";
    NOVA_FAILED: warning "NovaFailed"
        means "Nova's API, or Keystone, fails with an HTTP status of 500 or more."
        heals "When it answers." step "Read its log.";
    ANSWER_TOO_LARGE: warning "AnswerTooLarge"
        means "An answer exceeds a limit of docs/limits.md, or the memory that is left for the \
            namespace."
        heals "When it returns less." step "See the message.";

    /// The discovery of hosts.
    const DISCOVERY;

    HOSTS_MAPPED: good "HostsMapped"
        means "Nova's API reports no registered host of the cell as not mapped.";
    HOSTS_DISCOVERED: good "HostsDiscovered"
        means "The first Job has succeeded; nova's API has not reported the hosts as mapped yet.";
    DISCOVERING: waiting "Discovering"
        means "The named Job discovers hosts, or another Job of the cell has to end first."
        heals "Yes." step "Wait; look at the Job's pod where it does not start.";
    DISCOVERY_FAILED: warning "DiscoveryFailed" means "The named Job has failed."
        heals "When a further Job succeeds: it is tried again after 1, 2, 4 … 30 minutes, and at \
            once when an input is corrected."
        step "As the message says; it has the command for the log.";
    HOSTS_STILL_UNMAPPED: warning "HostsStillUnmapped"
        means "Jobs succeed, and nova's API still reports the named hosts as not mapped."
        heals "When nova's API reports the hosts as mapped."
        step "Compare the API database of the Secret with that of nova, and nova's cells with the \
            cell.";
    DISCOVERY_INPUT_MISSING: unknown "InputMissing"
        means "An annotation is missing or invalid, or the Secret that one names does not exist."
        heals "When it is corrected."
        step "Correct it; the message names annotation or Secret, and the legal values.";

    /// The identities that nova has of hosts.
    const IDENTITIES;

    OTHER_IDENTITIES: warning "OtherIdentity"
        means "The nova that the cell names has hosts of computes under other identities than they \
            have registered with, or does not have them; the message has the first five, and both \
            identities of the first one."
        heals "When nova has the recorded identities again."
        step "Correct `spec.keystoneAuthURL` or `RegionName`, or have all computes take what this \
            nova has; the message has the command.";

    /// Whether the conductor answers computes.
    const CONDUCTOR;

    CONDUCTOR_SILENT: warning "ConductorSilent"
        means "No nova-conductor answered the named computes when they asked last."
        heals "When those computes ask again." step "Start the cell's conductor, or read its log.";

    /// What holds a cell that is being deleted.
    const RELEASE;

    CELL_IN_USE: warning "CellInUse"
        means "Computes name the cell; the first five are in the message."
        heals "When they are gone."
        step "Delete the nodes of the computes, take their hosts out of node sets, or let the \
            computes go.";
    SERVERS_IN_CELL: warning "ServersOnHosts"
        means "Hosts of the cell have servers or open migrations; the first five are in the \
            message."
        heals "When they have none."
        step "Migrate or delete the servers; the message has the command that lists them.";
    LEFTOVERS_IN_CELL: warning "LeftoversInNova"
        means "`status.leftovers` of the cell has UUIDs that are still to be deleted in nova and \
            placement; the first five hosts are in the message."
        heals "When they are deleted."
        step "See the message of each entry; or let the cell go, with the command in the message.";
    SERVERS_UNKNOWN: unknown "ServersUnknown"
        means "It is unknown whether hosts of the cell have servers; the message has the cause."
        heals "When nova's API and the database of the cell answer." step "Follow the message.";
}
