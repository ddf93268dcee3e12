//! The reasons on data planes.

api::reasons! {
    pub(crate) mod catalog;

    /// Whether all is ready.
    const SUMMARY;

    ROLES_AND_NODES_READY: good "RolesAndNodesReady"
        means "Each role and node of the maps is ready, in its present form and under its role's.";

    /// The entries of the maps.
    const SETUP;

    APPLIED: good "Applied" means "Each entry is applied.";
    APPLYING: waiting "Applying" means "Some are not yet; many are made in portions."
        heals "Yes." step "Wait.";
    TERMINATING: waiting "Terminating"
        means "Objects of these names are being deleted, and are made again when gone."
        heals "Yes." step "Wait.";
    INVALID_NAME: error "InvalidName" means "A key cannot be the name of an object."
        heals "No." step "Rename it.";
    NOT_OURS: error "NotOurs"
        means "An object of the name belongs to others, or has no owner, and is left alone."
        heals "No."
        step "Take the key out of the map, or hand the object over; the message has the command.";

    /// The roles and nodes.
    const DEPLOYMENT;

    ROLES_AND_NODES_READY;
    NOT_OBSERVED: waiting "NotObserved"
        means "A role or node has changed, and its status does not describe that yet."
        heals "Yes." step "Wait.";
    SETUP_INCOMPLETE: waiting "SetupIncomplete"
        means "A role or node is not there yet, or belongs to others."
        heals "" step "See `SetupReady`.";

    /// Objects that are in the maps no more.
    const ORPHANS;

    NO_ORPHANS: absent "NoOrphans" means "Whatever belongs to it is in its maps.";
    ORPHANS_KEPT: notable "OrphansKept"
        means "The named objects were taken out of the maps and go on as they are."
        heals "No." step "Put the keys back, delete the objects, or set `prune: true`.";
    PRUNING: notable "Pruning"
        means "The named objects are being deleted; a role stays for as long as nodes name it."
        heals "Yes." step "Wait.";
}
