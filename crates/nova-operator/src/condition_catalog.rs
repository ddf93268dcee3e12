//! Every condition and reason that nova-operator writes, as the table in the documentation lists
//! them.

use nova_config::conditions::{
    COMPUTE_CONDITION, COMPUTES_UP_TO_DATE, CONDUCTOR_ANSWERS, CONFIG_CONDITION, INPUT_READY,
    KEYSTONE_READY, MESSAGE_BUS_READY, RELEASED, SERVICE_CONFIG_READY,
};
use operator_core::condition_catalog::{
    ALREADY_EXISTS, ConditionSpec, FORBIDDEN, INVALID, KindConditions, ReasonSpec, Repeats, WRITES,
    condition, summary,
};

mod compute;
mod shared;

use shared::{NOT_RENDERED, SECRET_NOT_OURS, SERVICE_LISTED};

/// The kinds and their conditions, in reading order.
pub const KINDS: &[KindConditions] = &[
    KindConditions { name: "OpenStackDataPlaneNode", conditions: NODE },
    KindConditions { name: "NovaExternalCompute", conditions: compute::CONDITIONS },
    KindConditions { name: "NovaCell", conditions: CELL },
    KindConditions { name: "OpenStackDataPlaneService", conditions: SERVICE },
];

/// The condition on services of type nova: what happens to the files of their data sources.
const SERVICE: &[ConditionSpec] = &[condition(
    CONFIG_CONDITION,
    "Every key of the data sources that humans wrote is used by nova-compute or its play; absent on \
     services of other types. `Ready` of the service does not depend on it.",
    &[
        ReasonSpec::good("KeysUsed", "Every key has its effect."),
        ReasonSpec::bad(
            "KeyIgnored",
            "nova-compute never reads a key: its name does not match `*nova*.conf`, or the play \
             writes a file of that name itself.",
            "When the key is renamed.",
            "Name the key as the message proposes, for example `25-nova-extra.conf`.",
        ),
        ReasonSpec::bad(
            "KeyOverruled",
            "A key is read before the generated files, whose values win.",
            "When the key is renamed.",
            "Name the key as the message proposes, for example `25-nova-extra.conf`.",
        ),
    ],
)];

/// The condition on nodes, so that the object that the user wrote also reports phase 1.
const NODE: &[ConditionSpec] = &[condition(
    COMPUTE_CONDITION,
    "The node's compute is ready; absent where the node has no cell, and without effect on the \
     node's `Ready`.",
    &[
        ReasonSpec::good(
            "Ready",
            "The compute is ready in its cell; nova schedules to it after `discover_hosts`.",
        ),
        ReasonSpec::bad(
            "Deploying",
            "The compute is on its way; its own conditions tell more.",
            "Yes.",
            "Wait, or describe the `NovaExternalCompute`.",
        ),
        ReasonSpec::bad(
            "CellMismatch",
            "The node asks for another cell, or for none, than that of a compute that has run or \
             has a `customServiceConfig`.",
            "No.",
            "Set the annotation back, or let the compute go; the message has the command and \
             tells what is lost.",
        ),
        ReasonSpec::bad("CellZero", "The annotation names a cell0.", "No.", "Name another cell."),
        ReasonSpec::bad(
            "CellNameInvalid",
            "The annotation cannot be the name of a `NovaCell`.",
            "No.",
            "Correct it.",
        ),
        ReasonSpec::bad(
            "ComputeDiffers",
            "A human's compute of the node's name differs from what the node asks for.",
            "No.",
            "Correct the named fields, or delete it.",
        ),
        ReasonSpec::bad(
            "ComputeNotOurs",
            "The compute of the node's name belongs to something else.",
            "No.",
            "Delete it.",
        ),
        ReasonSpec::bad(
            "ComputeTerminating",
            "The compute is being deleted; another one follows if the node has a cell.",
            "Yes.",
            "Wait.",
        ),
        ReasonSpec::bad(
            "LeftInNova",
            "The compute goes or is gone; nova still has its records of the host.",
            "When the compute is gone, or, with a foreign `NovaCell`, with the node or its next \
             compute.",
            "Remove them; the message has the commands.",
        ),
        ReasonSpec::bad(
            "RoleNotFound",
            "The node's role does not exist; its compute stays as it is.",
            "When it appears.",
            "Create it again, or correct `spec.role`.",
        ),
        SERVICE_LISTED,
        FORBIDDEN,
        INVALID,
        ALREADY_EXISTS,
    ],
)
.repeating(Repeats::Kind("NovaExternalCompute"))];

const UNREACHABLE: ReasonSpec = ReasonSpec::bad(
    "Unreachable",
    "No connection, or no answer in time.",
    "Yes.",
    "Start the server; check host and port in `transport_url` or `spec.keystoneAuthURL`.",
);
const CERTIFICATE_NOT_TRUSTED: ReasonSpec = ReasonSpec::bad(
    "CertificateNotTrusted",
    "The server speaks no TLS, or its certificate is not trusted.",
    "Yes.",
    "Add its authority to `CABundle` of the cell's Secret.",
);
const NOT_ASKED: ReasonSpec = ReasonSpec::bad(
    "InputMissing",
    "It is asked once every input is there.",
    "Yes.",
    "See `InputReady`.",
)
.unknown();

const CELL: &[ConditionSpec] = &[
    summary(
        "The cell can be used by computes.",
        &[ReasonSpec::good("Ready", "Message bus and Keystone answer.")],
    ),
    condition(
        INPUT_READY,
        "Both Secrets are there and complete.",
        &[
            ReasonSpec::good("InputComplete", "Both Secrets are there and complete."),
            ReasonSpec::bad(
                "SecretNotFound",
                "A Secret does not exist.",
                "When it appears.",
                "Create it; the message has the command.",
            ),
            ReasonSpec::bad(
                "SecretIncomplete",
                "A key is missing or empty.",
                "When it is corrected.",
                "Add the key.",
            ),
            ReasonSpec::bad(
                "InputInvalid",
                "A value cannot be used.",
                "When it is corrected.",
                "Correct it; the message names Secret and key.",
            ),
        ],
    ),
    condition(MESSAGE_BUS_READY, "Every broker of `transport_url` accepts the login.", MESSAGE_BUS),
    condition(
        KEYSTONE_READY,
        "Keystone answers at `spec.keystoneAuthURL`.",
        &[
            ReasonSpec::good("Answered", "Keystone answers."),
            UNREACHABLE,
            CERTIFICATE_NOT_TRUSTED,
            ReasonSpec::bad(
                "NotKeystone",
                "What answers is no Keystone of version 3.",
                "Yes.",
                "Correct `spec.keystoneAuthURL`.",
            ),
            ReasonSpec::bad("InvalidURL", "It is no http or https URL.", "No.", "Correct it."),
            NOT_ASKED,
        ],
    ),
    condition(
        SERVICE_CONFIG_READY,
        "The files that computes of the cell share are rendered, for deployments by node sets; \
         `Ready` ignores it.",
        CELL_CONFIG,
    ),
    condition(
        COMPUTES_UP_TO_DATE,
        "Every compute was last deployed with the cell's present credentials; `Ready` ignores it.",
        CELL_COMPUTES,
    ),
    condition(
        CONDUCTOR_ANSWERS,
        "Never said: the condition is there only while a compute got no answer; `Ready` ignores it.",
        &[ReasonSpec::bad(
            "ConductorSilent",
            "No nova-conductor answered the named computes when they asked last.",
            "When those computes ask again.",
            "Start the cell's conductor, or read its log.",
        )],
    ),
    condition(
        RELEASED,
        "Never said: the condition is there only while the cell is being deleted and has computes.",
        &[ReasonSpec::bad(
            "CellInUse",
            "Computes name the cell; the first five and their count are in the message.",
            "When they are gone.",
            "Delete their nodes, or let the computes go.",
        )],
    ),
    WRITES,
];

const CELL_CONFIG: &[ReasonSpec] = &[
    ReasonSpec::good("Rendered", "The files are in the named Secret."),
    ReasonSpec::good("NotNeeded", "A cell0 never has computes."),
    SECRET_NOT_OURS,
    NOT_RENDERED,
];

const CELL_COMPUTES: &[ReasonSpec] = &[
    ReasonSpec::good("UpToDate", "All computes use the current credentials."),
    ReasonSpec::good("NoComputes", "No compute names the cell."),
    ReasonSpec::bad(
        "ComputesBehind",
        "Some computes, the first of them named, were last deployed with other credentials, or \
         never.",
        "With `deploy: true`, as `maxUnavailable` allows.",
        "Wait, or see `UpToDate` of those computes; keep the old credentials valid until then.",
    ),
    ReasonSpec::bad(
        "InputMissing",
        "It can be told once every input is there.",
        "Yes.",
        "See `InputReady`.",
    )
    .unknown(),
];

const MESSAGE_BUS: &[ReasonSpec] = &[
    ReasonSpec::good("LoggedIn", "Every broker accepts the login."),
    UNREACHABLE,
    ReasonSpec::bad(
        "AccessRefused",
        "User or password are wrong.",
        "Yes.",
        "Correct `transport_url`.",
    ),
    ReasonSpec::bad(
        "VhostMissing",
        "The virtual host does not exist.",
        "Yes.",
        "Correct RabbitMQ or `transport_url`.",
    ),
    ReasonSpec::bad(
        "VhostRefused",
        "The user may not use the virtual host.",
        "Yes.",
        "Correct RabbitMQ or `transport_url`.",
    ),
    ReasonSpec::bad(
        "Refused",
        "The broker refuses for another reason, given by its code and text.",
        "Yes.",
        "As the text says.",
    ),
    ReasonSpec::bad(
        "NotAMQP",
        "What answers there is no AMQP broker with passwords.",
        "Yes.",
        "Correct `transport_url`.",
    ),
    CERTIFICATE_NOT_TRUSTED,
    NOT_ASKED,
];
