//! Every condition that nova-operator writes, and every reason, as the docs' table tells them.

use operator_core::condition_catalog::{
    ALREADY_EXISTS, Aspect, FORBIDDEN, INVALID, Kind, Repeats, WRITES, Word, aspect, summary,
};

use nova_config::conditions::{
    COMPUTE_CONDITION, COMPUTES_UP_TO_DATE, CONDUCTOR_ANSWERS, CONFIG_CONDITION, INPUT_READY,
    KEYSTONE_READY, MESSAGE_BUS_READY, RELEASED, SERVICE_CONFIG_READY,
};

mod compute;
mod shared;

use shared::{NOT_RENDERED, SECRET_NOT_OURS, SERVICE_LISTED};

/// The kinds and their conditions, in the order in which a human reads them.
pub const KINDS: &[Kind] = &[
    Kind { name: "OpenStackDataPlaneNode", conditions: NODE },
    Kind { name: "NovaExternalCompute", conditions: compute::CONDITIONS },
    Kind { name: "NovaCell", conditions: CELL },
    Kind { name: "OpenStackDataPlaneService", conditions: SERVICE },
];

/// One condition on the services of nova's type, for what the play does with their files is nova's.
const SERVICE: &[Aspect] = &[aspect(
    CONFIG_CONDITION,
    "Every key of the data sources that humans wrote is used by nova-compute or its play; absent on \
     services of other types. `Ready` of the service does not depend on it.",
    &[
        Word::good("KeysUsed", "Every key has its effect."),
        Word::bad(
            "KeyIgnored",
            "nova-compute never reads a key: its name does not match `*nova*.conf`, or the play \
             writes a file of that name itself.",
            "When the key is renamed.",
            "Name the key as the message proposes, for example `25-nova-extra.conf`.",
        ),
        Word::bad(
            "KeyOverruled",
            "A key is read before the generated files, whose values win.",
            "When the key is renamed.",
            "Name the key as the message proposes, for example `25-nova-extra.conf`.",
        ),
    ],
)];

/// One condition on the node, so that the object that the human wrote tells about phase 1 too.
const NODE: &[Aspect] = &[aspect(
    COMPUTE_CONDITION,
    "The node's compute is ready; absent where the node has no cell, and without effect on the \
     node's `Ready`.",
    &[
        Word::good(
            "Ready",
            "The compute is ready in its cell; nova schedules to it after `discover_hosts`.",
        ),
        Word::bad(
            "Deploying",
            "The compute is on its way; its own conditions tell more.",
            "Yes.",
            "Wait, or describe the `NovaExternalCompute`.",
        ),
        Word::bad(
            "CellMismatch",
            "The node asks for another cell, or for none, than that of a compute that has run or \
             has a `customServiceConfig`.",
            "No.",
            "Set the annotation back, or let the compute go; the message has the command and \
             tells what is lost.",
        ),
        Word::bad("CellZero", "The annotation names a cell0.", "No.", "Name another cell."),
        Word::bad(
            "CellNameInvalid",
            "The annotation cannot be the name of a `NovaCell`.",
            "No.",
            "Correct it.",
        ),
        Word::bad(
            "ComputeDiffers",
            "A human's compute of the node's name differs from what the node asks for.",
            "No.",
            "Correct the named fields, or delete it.",
        ),
        Word::bad(
            "ComputeNotOurs",
            "The compute of the node's name belongs to something else.",
            "No.",
            "Delete it.",
        ),
        Word::bad(
            "ComputeTerminating",
            "The compute is being deleted; another one follows if the node has a cell.",
            "Yes.",
            "Wait.",
        ),
        Word::bad(
            "LeftInNova",
            "The compute goes or is gone; nova still has its records of the host.",
            "When the compute is gone, or, with a foreign `NovaCell`, with the node or its next \
             compute.",
            "Remove them; the message has the commands.",
        ),
        Word::bad(
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

const UNREACHABLE: Word = Word::bad(
    "Unreachable",
    "No connection, or no answer in time.",
    "Yes.",
    "Start the server; check host and port in `transport_url` or `spec.keystoneAuthURL`.",
);
const CERTIFICATE_NOT_TRUSTED: Word = Word::bad(
    "CertificateNotTrusted",
    "The server speaks no TLS, or its certificate is not trusted.",
    "Yes.",
    "Add its authority to `CABundle` of the cell's Secret.",
);
const NOT_ASKED: Word = Word::bad(
    "InputMissing",
    "It is asked once every input is there.",
    "Yes.",
    "See `InputReady`.",
)
.unknown();

const CELL: &[Aspect] = &[
    summary(
        "The cell can be used by computes.",
        &[Word::good("Ready", "Message bus and Keystone answer.")],
    ),
    aspect(
        INPUT_READY,
        "Both Secrets are there and complete.",
        &[
            Word::good("InputComplete", "Both Secrets are there and complete."),
            Word::bad(
                "SecretNotFound",
                "A Secret does not exist.",
                "When it appears.",
                "Create it; the message has the command.",
            ),
            Word::bad(
                "SecretIncomplete",
                "A key is missing or empty.",
                "When it is corrected.",
                "Add the key.",
            ),
            Word::bad(
                "InputInvalid",
                "A value cannot be used.",
                "When it is corrected.",
                "Correct it; the message names Secret and key.",
            ),
        ],
    ),
    aspect(MESSAGE_BUS_READY, "Every broker of `transport_url` accepts the login.", MESSAGE_BUS),
    aspect(
        KEYSTONE_READY,
        "Keystone answers at `spec.keystoneAuthURL`.",
        &[
            Word::good("Answered", "Keystone answers."),
            UNREACHABLE,
            CERTIFICATE_NOT_TRUSTED,
            Word::bad(
                "NotKeystone",
                "What answers is no Keystone of version 3.",
                "Yes.",
                "Correct `spec.keystoneAuthURL`.",
            ),
            Word::bad("InvalidURL", "It is no http or https URL.", "No.", "Correct it."),
            NOT_ASKED,
        ],
    ),
    aspect(
        SERVICE_CONFIG_READY,
        "The files that computes of the cell share are rendered, for deployments by node sets; \
         `Ready` ignores it.",
        CELL_CONFIG,
    ),
    aspect(
        COMPUTES_UP_TO_DATE,
        "Every compute was last deployed with the cell's present credentials; `Ready` ignores it.",
        CELL_COMPUTES,
    ),
    aspect(
        CONDUCTOR_ANSWERS,
        "Never said: the condition is there only while a compute got no answer; `Ready` ignores it.",
        &[Word::bad(
            "ConductorSilent",
            "No nova-conductor answered the named computes when they asked last.",
            "When those computes ask again.",
            "Start the cell's conductor, or read its log.",
        )],
    ),
    aspect(
        RELEASED,
        "Never said: the condition is there only while the cell is being deleted and has computes.",
        &[Word::bad(
            "CellInUse",
            "Computes name the cell; the first five and their count are in the message.",
            "When they are gone.",
            "Delete their nodes, or let the computes go.",
        )],
    ),
    WRITES,
];

const CELL_CONFIG: &[Word] = &[
    Word::good("Rendered", "The files are in the named Secret."),
    Word::good("NotNeeded", "A cell0 never has computes."),
    SECRET_NOT_OURS,
    NOT_RENDERED,
];

const CELL_COMPUTES: &[Word] = &[
    Word::good("UpToDate", "All computes use the current credentials."),
    Word::good("NoComputes", "No compute names the cell."),
    Word::bad(
        "ComputesBehind",
        "Some computes, the first of them named, were last deployed with other credentials, or \
         never.",
        "With `deploy: true`, as `maxUnavailable` allows.",
        "Wait, or see `UpToDate` of those computes; keep the old credentials valid until then.",
    ),
    Word::bad(
        "InputMissing",
        "It can be told once every input is there.",
        "Yes.",
        "See `InputReady`.",
    )
    .unknown(),
];

const MESSAGE_BUS: &[Word] = &[
    Word::good("LoggedIn", "Every broker accepts the login."),
    UNREACHABLE,
    Word::bad("AccessRefused", "User or password are wrong.", "Yes.", "Correct `transport_url`."),
    Word::bad(
        "VhostMissing",
        "The virtual host does not exist.",
        "Yes.",
        "Correct RabbitMQ or `transport_url`.",
    ),
    Word::bad(
        "VhostRefused",
        "The user may not use the virtual host.",
        "Yes.",
        "Correct RabbitMQ or `transport_url`.",
    ),
    Word::bad(
        "Refused",
        "The broker refuses for another reason, given by its code and text.",
        "Yes.",
        "As the text says.",
    ),
    Word::bad(
        "NotAMQP",
        "What answers there is no AMQP broker with passwords.",
        "Yes.",
        "Correct `transport_url`.",
    ),
    CERTIFICATE_NOT_TRUSTED,
    NOT_ASKED,
];
