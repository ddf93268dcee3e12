//! The reasons of the condition `Drained`.

api::reasons! {
    pub(crate) mod catalog;

    /// The drain of a compute.
    const COMPUTE;

    DRAINED: good "Drained"
        means "Nova schedules nothing to the host, and it has neither servers nor open migrations.";
    WAITING: waiting "ServersOnHost"
        means "The host still has servers or open migrations; its service is disabled, unless a \
            compute is deleted that is not known to have registered."
        heals "When they are gone."
        step "Migrate or delete the servers; the message has the command that lists them.";
    MIGRATING: waiting "Migrating"
        means "The service is disabled, and the host's servers are being migrated live."
        heals "When they are gone." step "Wait.";
    SERVERS_STUCK: warning "ServersStuck"
        means "Some servers are not migrated live: they do not run, nova does not move them, or a \
            resize or migration of them is to be confirmed or reverted."
        heals "When they are gone; the migration of a running server is tried again."
        step "Start, confirm, migrate or delete them; the message names them and why.";
    DISABLED_BY_NOVA: warning "DisabledByNova"
        means "The host is empty, but nova has disabled its service by itself (a reason that \
            begins with `AUTO:`) and may enable it by itself."
        heals "When nova has enabled it, and the operator has disabled it."
        step "Mend what the reason names on the host, or disable the service in your own words.";
    ENABLING: waiting "EnablingService"
        means "No drain is requested any more, and the service that the operator disabled is being \
            enabled."
        heals "Yes." step "Wait.";
    WAITING_FOR_SERVICE: waiting "WaitingForService"
        means "A deployment with `nova.openstack.org/drain-before` has ended, and the service that \
            the operator disabled is enabled once nova has it as up."
        heals "When nova-compute reports." step "See `ServiceUp`.";
    NOT_READ: unknown "NotRead" means "The servers of the host have not been read yet."
        heals "Yes." step "Wait for the first pass.";
    NOT_REGISTERED: unknown "NotRegistered"
        means "The compute has not registered yet, so nova has nothing to drain."
        heals "Yes." step "See `DeploymentReady`.";
    NOT_DEPLOYED: warning "NovaNotDeployed"
        means "Nova has a service of the host's name, and no deployment of a service of type \
            `nova` is known to have succeeded on the host; the service is left as it is."
        heals "When one has succeeded."
        step "Deploy nova on the host; where `nova.openstack.org/drain-before` holds that, take it \
            off meanwhile.";
    SERVICE_NOT_FOUND: unknown "ServiceNotFound" means "Nova has no service of the host."
        heals "When it registers again." step "See `ServiceUp`.";
    CELL_NOT_ANSWERING: unknown "CellNotAnswering"
        means "The database of the cell does not answer nova's API, which then leaves out the \
            host's servers."
        heals "When it answers." step "Start the database of the cell.";
    CELL_UNKNOWN: unknown "CellUnknown"
        means "The cell of the host is not known, so nova is not asked and nothing is stopped there."
        heals "When the cell is known." step "See `CellMatches` of the compute.";
    NOVA_NOT_ANSWERING: unknown "NovaNotAnswering"
        means "Nova's API refuses or does not answer what a drain needs; the message has the cause."
        heals "When it answers." step "Follow the message.";
    OTHER_IDENTITY: unknown "OtherIdentity"
        means "Nova has the host under another identity than the one that it has registered with, \
            or is not known to be the nova that it has registered in: nothing is changed in nova \
            or stopped on the host."
        heals "When nova has the recorded identity again."
        step "Follow the message: correct the `NovaCell`, or have its computes take what this nova \
            has.";
    NO_API: error "NovaAPINotUsed"
        means "A drain is requested, and the operator does not use nova's API."
        heals "No." step "Set `nova.api.enabled` of the chart to true, or remove the annotation.";
    INVALID: error "DrainInvalid"
        means "An annotation of the drain has no legal value, or the node set still has drain-hosts of a \
            release before; nothing was changed."
        heals "No." step "Follow the message.";

    /// What holds all that is done in nova.
    const NOVA;

    CELL_NOT_ANSWERING; CELL_UNKNOWN; NOVA_NOT_ANSWERING; OTHER_IDENTITY;
}
