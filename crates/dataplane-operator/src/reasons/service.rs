//! The reasons on services.

use api::conditions::Reason;

pub(crate) const READY: Reason = Reason::good(
    "Ready",
    "Everything that the service names is there, or nothing lists the service.",
);
pub(crate) const VALID: Reason = Reason::good("Valid", "It can be deployed as it is written.");
pub(crate) const INVALID_SPEC: Reason = Reason::error(
    "InvalidSpec",
    "A field cannot be as it is; the message has its path and the legal way.",
    "When it is corrected.",
    "Correct the field.",
);
pub(crate) const ALL_FOUND: Reason =
    Reason::good("AllFound", "The message names the data sources that are mounted.");
pub(crate) const NOT_USED: Reason = Reason::unknown(
    "NotUsed",
    "Data sources do not exist, and no role, node or node set lists the service.",
    "When the service is listed, or they exist.",
    "Nothing; before you list the service, create what the message names.",
);
pub(crate) const KEYS_CLASH: Reason = Reason::notable(
    "KeysClash",
    "The message names the keys, and whose is mounted.",
    "When the keys differ.",
    "Rename keys, or take a data source off the list.",
);
pub(crate) const KEYS_DIFFER: Reason =
    Reason::absent("KeysDiffer", "No two data sources have a key in common.");
pub(crate) const INCLUDED: Reason =
    Reason::good("Included", "The project's runner image can run it.");
pub(crate) const IN_SERVICE: Reason =
    Reason::good("InService", "The service has its playbook in itself.");
pub(crate) const NOT_INCLUDED: Reason = Reason::absent("NotIncluded", "").described(
    "The project's runner image cannot run it.",
    "No.",
    "Have a runner image that has it, by the chart's value `relatedImages.ansibleEERunner` \
     or the service's `openStackAnsibleEERunnerImage`.",
);
pub(crate) const NOT_KNOWN: Reason = Reason::unknown(
    "NotKnown",
    "Playbook or image are not the project's, so only a run shows whether the image has it.",
    "",
    "",
);
pub(crate) const CONTESTED: Reason = Reason::warning(
    "Contested",
    "Another client changes a default service each time it was restored; hosts get the shipped spec \
     all the same.",
    "When that client stops.",
    "Take the service out of what that client applies, and list a copy under another name.",
);
pub(crate) const WITHOUT_EFFECT: Reason = Reason::notable(
    "WithoutEffect",
    "The message has the path of each field, and what to write instead.",
    "When it is corrected.",
    "Write it differently, or take it out.",
);
pub(crate) const NO_WARNINGS: Reason =
    Reason::absent("NoWarnings", "Everything in the spec has its effect.");
pub(crate) const EXPOSED: Reason = Reason::good(
    "Exposed",
    "The ports are exposed on the addresses of all nodes that were deployed there; \
     those that were not yet are named, and follow.",
);
pub(crate) const ADDRESS_MISSING: Reason = Reason::waiting(
    "AddressMissing",
    "Nodes whose address is no IP address, or not known yet, are left out.",
    "When the address is known.",
    "Set `ansibleHost` of the named nodes to an IP address.",
);
pub(crate) const ADDRESS_NOT_ALLOWED: Reason = Reason::waiting(
    "AddressNotAllowed",
    "Nodes whose address is in none of the chart's `dataplane.serviceNetworks` are left out.",
    "When the list or the address changes.",
    "Ask the administrator to add the network of the hosts to the list.",
);
pub(crate) const NAME_TAKEN: Reason = Reason::error(
    "NameTaken",
    "A Kubernetes Service or EndpointSlice of the name exists and belongs to others.",
    "Within a minute of its end.",
    "Delete it, or name the port differently.",
);
