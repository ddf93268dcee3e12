//! Faults of cells, and of the computes in them; no host is touched.

use super::{Fault, Kstatus};

/// What the faults of a node have in common.
const OF_NODE: Fault = Fault::of("OpenStackDataPlaneNode", "n0");
/// What those of a cell have in common.
const OF_CELL: Fault = Fault::of("NovaCell", "nova-cell1");

/// The faults.
pub const FAULTS: &[Fault] = &[
    Fault {
        name: "cell-missing",
        done: "A node is annotated with a cell that does not exist.",
        words: [
            "NovaCell nova-cell1",
            "does not exist",
            "create it, or correct annotation nova.openstack.org/cell",
        ],
        ..OF_NODE
    },
    Fault {
        name: "compute-of-others",
        done: "A node is annotated whose name a compute of another owner has.",
        words: [
            "NovaExternalCompute n0",
            "belongs to ConfigMap owner and is left alone",
            "delete it, and the node gets one of its own",
        ],
        ..OF_NODE
    },
    Fault {
        name: "compute-differs",
        done: "A user has written a compute of another cell before the node is annotated.",
        words: [
            "NovaExternalCompute n0",
            "spec.cellName would be \"nova-cell1\"",
            "kubectl delete -n NAMESPACE novaexternalcompute n0",
        ],
        ..OF_NODE
    },
    Fault {
        name: "nova-service-listed",
        done: "A service of type nova is listed for a node that has a cell.",
        words: [
            "OpenStackDataPlaneService own of type nova",
            "writes the same files on the host",
            "take the service off the list",
        ],
        ..OF_NODE
    },
    Fault {
        name: "default-config-missing",
        done: "A role names a ConfigMap of default options that does not exist.",
        words: [
            "ConfigMap defaults, named by annotation nova.openstack.org/default-config",
            "does not exist",
            "create it, or remove the annotation",
        ],
        ..OF_NODE
    },
    Fault {
        name: "default-config-unreadable",
        done: "The default options of a role get a line that oslo.config cannot read.",
        words: [
            "ConfigMap defaults, line 2, column 1",
            "this line has neither '=' nor ':'",
            "write `option = value`",
        ],
        ..OF_NODE
    },
    Fault {
        name: "cell-changed",
        done: "A role is made again with another cell than that of a compute that has run.",
        words: [
            "NovaExternalCompute n0 is in cell nova-cell1",
            "asks for cell nova-cell2",
            "kubectl delete -n NAMESPACE novaexternalcompute n0",
        ],
        ..OF_NODE
    },
    Fault {
        name: "cell-secret-missing",
        done: "The Secret with nova's password is deleted.",
        words: [
            "Secret nova-cell1, named in spec.secret of NovaCell nova-cell1",
            "does not exist",
            "kubectl create secret generic -n NAMESPACE nova-cell1",
        ],
        ..OF_CELL
    },
    Fault {
        name: "cell-secret-without-key",
        done: "The Secret with nova's password loses its key.",
        words: [
            "Secret NAMESPACE/nova-cell1",
            "lacks the key ServicePassword",
            "kubectl -n NAMESPACE patch secret nova-cell1",
        ],
        ..OF_CELL
    },
    Fault {
        name: "transport-url-invalid",
        done: "`transport_url` of a cell is no URL of a message bus.",
        words: [
            "Secret NAMESPACE/nova-cell1-transport",
            "does not begin with rabbit://",
            "write rabbit://USER:PASSWORD@HOST:PORT/VHOST",
        ],
        ..OF_CELL
    },
    Fault {
        name: "broker-refuses-login",
        done: "`transport_url` of a cell gets a wrong password.",
        words: [
            "RabbitMQ at ",
            "refuses the user or password of transport_url",
            "Correct transport_url in Secret nova-cell1-transport",
        ],
        ..OF_CELL
    },
    Fault {
        name: "keystone-silent",
        done: "`keystoneAuthURL` of a cell leads to a port where no server listens.",
        words: [
            "spec.keystoneAuthURL http://127.0.0.1:9 of NovaCell nova-cell1",
            "Keystone cannot be reached",
            "Start Keystone, or correct the URL",
        ],
        ..OF_CELL
    },
    Fault {
        name: "cell-in-use",
        done: "A cell is deleted that a compute is in.",
        words: [
            "NovaCell nova-cell1 goes when no NovaExternalCompute names it any more",
            "1 do: n0",
            "delete their nodes",
        ],
        kstatus: Kstatus::Terminating,
        ..OF_CELL
    },
];
