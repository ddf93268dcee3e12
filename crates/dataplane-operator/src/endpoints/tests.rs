//! Tests: how the ports of a service are exposed, case by case.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::conditions::find;
use api::dataplane::{Node, Service};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Service as CoreService;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::ResourceExt;
use operator_core::condition_catalog::undeclared;
use operator_core::hash;
use operator_core::plan::{Step, Write};
use operator_core::rejected_write::RejectedWrite;
use serde_json::{Value, json};
use testkit::golden::recorded;
use testkit::objects::named;

use super::build::ExposedAddresses;
use super::observed::Observed;
use crate::condition_catalog::KINDS;
use crate::default_services::DefaultServices;
use crate::reasons;
use crate::service;
use crate::service::decide::decide;

/// A node that was deployed at that address.
fn node(name: &str, address: Option<&str>) -> Arc<Node> {
    node_of(name, address, address)
}

/// A node whose status reports one address, and that was deployed at the other.
fn node_of(name: &str, address: Option<&str>, deployed: Option<&str>) -> Arc<Node> {
    let deployed = deployed.map(|it| it.rsplit_once(':').unwrap());
    let inputs = deployed.map(|(host, port)| {
        let port: i32 = port.parse().unwrap();
        json!({
            "ansibleHost": hash::short(&json!(host)), "ansiblePort": hash::short(&json!(port)),
            "service exporter": "h",
        })
    });
    let object = json!({
        "spec": {},
        "status": {
            "address": address,
            "services": [{
                "name": "exporter", "state": "Running", "hash": "h", "attempt": 0,
                "since": "2026-01-01T00:00:00Z", "deployedHash": deployed.map(|_| "h"),
            }],
            "deployedInputs": inputs.unwrap_or_else(|| json!({})),
        },
    });
    Arc::new(named("ns", name, object))
}

fn service(ports: &Value) -> Arc<Service> {
    let spec = json!({ "playbook": "a.b.c", "services": ports });
    let metadata = json!({ "uid": "u", "generation": 1 });
    Arc::new(named("ns", "exporter", json!({ "metadata": metadata, "spec": spec })))
}

/// The objects as the API server would hold them.
struct World {
    seen: Observed,
}

impl World {
    fn new(count: u32) -> Self {
        let seen = Observed {
            service: service(&json!([{ "name": "metrics", "port": 9100 }])),
            addresses: ExposedAddresses::default(),
            exposed: Vec::new(),
            slices: Vec::new(),
            taken: BTreeSet::new(),
        };
        let mut world = Self { seen };
        world.nodes(count);
        world
    }

    fn nodes(&mut self, count: u32) {
        let address = |it: u32| format!("{}:22", std::net::Ipv4Addr::from(0x0a00_0001 + it));
        let nodes: Vec<Arc<Node>> =
            (0..count).map(|it| node(&format!("n{it}"), Some(&address(it)))).collect();
        self.seen.addresses = ExposedAddresses::of(&nodes, &[]);
    }

    /// Runs one pass and returns the writes.
    fn pass(&mut self) -> Vec<String> {
        let plan = recorded(decide(&self.service(), None, Timestamp::UNIX_EPOCH));
        plan.steps.iter().map(|it| self.take(it)).collect()
    }

    /// Returns the full observation of the service.
    fn service(&self) -> service::Observed {
        service::Observed {
            namespace: "ns".into(),
            name: "exporter".into(),
            service: Some(Arc::clone(&self.seen.service)),
            defaults: DefaultServices::default(),
            sources: BTreeMap::new(),
            is_listed: true,
            ports: Some(self.seen.clone()),
        }
    }

    fn take(&mut self, step: &Step) -> String {
        let (kind, name) = (step.target.kind.kind.as_str(), step.target.name.as_str());
        match (&step.write, kind) {
            (Write::Apply { object, .. }, "Service") => {
                self.seen.exposed.retain(|it| it.name_any() != name);
                let object: CoreService = serde_json::from_value(object.clone()).unwrap();
                self.seen.exposed.push(Arc::new(object));
            }
            (Write::Apply { object, .. }, "EndpointSlice") => {
                self.seen.slices.retain(|it| it.name_any() != name);
                let object: EndpointSlice = serde_json::from_value(object.clone()).unwrap();
                self.seen.slices.push(Arc::new(object));
            }
            (Write::Delete { .. }, _) => {
                self.seen.exposed.retain(|it| kind != "Service" || it.name_any() != name);
                self.seen.slices.retain(|it| kind != "EndpointSlice" || it.name_any() != name);
                return format!("delete {kind} {name}");
            }
            (Write::Status { status, .. }, _) => {
                assert_eq!(undeclared(KINDS, "OpenStackDataPlaneService", status), [""; 0]);
                let service = Arc::make_mut(&mut self.seen.service);
                service.status = Some(serde_json::from_value(status.clone()).unwrap());
                return "status".into();
            }
            (write, _) => panic!("{write:?}"),
        }
        format!("apply {kind} {name}")
    }

    fn set_ports(&mut self, ports: &Value) {
        let status = self.seen.service.status.clone();
        self.seen.service = service(ports);
        Arc::make_mut(&mut self.seen.service).status = status;
    }

    fn reason(&self, type_: &str) -> Option<String> {
        let status = self.seen.service.status.as_ref()?;
        find(&status.conditions, type_).map(|it| it.reason.clone())
    }

    fn sizes(&self) -> Vec<usize> {
        self.seen.slices.iter().map(|it| it.endpoints.len()).collect()
    }
}

#[test]
fn a_port_is_exposed_on_all_nodes_and_nothing_is_written_twice() {
    let mut world = World::new(2);
    assert_eq!(world.pass(), ["apply Service metrics", "apply EndpointSlice metrics-0", "status"]);
    let slice = serde_json::to_value(&*world.seen.slices[0]).unwrap();
    assert_eq!(slice["addressType"], "IPv4");
    assert_eq!(slice["endpoints"][1]["addresses"], json!(["10.0.0.2"]));
    assert_eq!(slice["ports"][0]["port"], 9100);
    assert_eq!(slice["metadata"]["labels"]["kubernetes.io/service-name"], "metrics");
    let exposed = serde_json::to_value(&*world.seen.exposed[0]).unwrap();
    // Both use the same port name, by which the proxy matches them.
    assert_eq!(exposed["spec"]["ports"][0]["name"], slice["ports"][0]["name"]);
    assert_eq!(exposed["spec"]["selector"], Value::Null);
    for object in [&exposed, &slice] {
        assert_eq!(object["metadata"]["ownerReferences"][0]["name"], "exporter");
    }
    assert_eq!(world.reason("Ready").as_deref(), Some("Ready"));
    assert_eq!(world.pass(), [""; 0]);
}

#[test]
fn a_slice_has_at_most_a_hundred_addresses_and_goes_when_it_is_empty() {
    let mut world = World::new(250);
    world.pass();
    assert_eq!(world.sizes(), [100, 100, 50]);
    world.nodes(120);
    let writes = world.pass();
    assert_eq!(writes[..2], ["apply EndpointSlice metrics-1", "delete EndpointSlice metrics-2"]);
    assert_eq!(world.sizes(), [100, 20]);
    world.nodes(0);
    world.pass();
    assert_eq!(world.sizes(), [0; 0]);
    assert_eq!(world.seen.exposed.len(), 1);
}

#[test]
fn a_changed_port_is_written_and_a_removed_one_goes_with_its_conditions() {
    let mut world = World::new(1);
    world.pass();
    world.set_ports(&json!([{ "name": "metrics", "port": 9200, "protocol": "https" }]));
    let writes = world.pass();
    assert_eq!(writes, ["apply Service metrics", "apply EndpointSlice metrics-0"]);
    world.set_ports(&json!([]));
    let writes = world.pass();
    assert_eq!(writes, ["delete EndpointSlice metrics-0", "delete Service metrics", "status"]);
    assert_eq!(world.reason("EndpointsReady"), None);
    assert_eq!(world.pass(), [""; 0]);
}

#[test]
fn what_is_edited_by_hand_is_written_again() {
    let mut world = World::new(2);
    world.pass();
    Arc::make_mut(&mut world.seen.slices[0]).endpoints.pop();
    assert_eq!(world.pass(), ["apply EndpointSlice metrics-0"]);
    let exposed = Arc::make_mut(&mut world.seen.exposed[0]);
    exposed.spec.as_mut().unwrap().ports.as_mut().unwrap()[0].port = 1;
    assert_eq!(world.pass(), ["apply Service metrics"]);
}

#[test]
fn nodes_without_an_ip_address_are_left_out_and_named() {
    let mut world = World::new(0);
    let addresses = ["192.0.2.1:22", "fd00::7:2022", "n2.example.org:22", "127.0.0.1:22"];
    let mut nodes: Vec<Arc<Node>> =
        addresses.iter().enumerate().map(|(idx, it)| node(&format!("n{idx}"), Some(it))).collect();
    nodes.push(node("n4", None));
    world.seen.addresses = ExposedAddresses::of(&nodes, &[]);
    world.pass();
    let types: Vec<&str> = world.seen.slices.iter().map(|it| it.address_type.as_str()).collect();
    assert_eq!(types, ["IPv4", "IPv6"]);
    assert_eq!(world.seen.slices[1].endpoints[0].addresses, ["fd00::7"]);
    let status = world.seen.service.status.as_ref().unwrap();
    let told = find(&status.conditions, "EndpointsReady").unwrap();
    assert_eq!(told.reason, "AddressMissing");
    assert!(told.message.contains("OpenStackDataPlaneNode n2, n3, n4."), "{}", told.message);
    nodes.push(node_of("n5", Some("192.0.2.5:22"), None));
    world.seen.addresses = ExposedAddresses::of(&nodes, &[]);
    world.pass();
    let status = world.seen.service.status.as_ref().unwrap();
    let told = &find(&status.conditions, "EndpointsReady").unwrap().message;
    assert!(told.contains("n4. OpenStackDataPlaneNode n5: exposed once"), "{told}");
}

#[test]
fn an_address_that_no_run_has_reached_is_not_exposed() {
    let mut world = World::new(0);
    let own = node("n0", Some("192.0.2.1:22"));
    // The address of a pod of another namespace, to which a Service would then send its traffic.
    let foreign = |deployed| node_of("n1", Some("10.244.0.7:22"), deployed);
    let told = |world: &World| {
        let status = world.seen.service.status.as_ref().unwrap();
        find(&status.conditions, "EndpointsReady").unwrap().message.clone()
    };
    // Never deployed, and moved there after it was deployed elsewhere.
    for deployed in [None, Some("192.0.2.9:22")] {
        world.seen.addresses = ExposedAddresses::of(&[Arc::clone(&own), foreign(deployed)], &[]);
        world.pass();
        assert_eq!(world.seen.slices[0].endpoints[0].addresses, ["192.0.2.1"]);
        assert_eq!(world.sizes(), [1]);
        let text = "The ports of 1 addresses are exposed. OpenStackDataPlaneNode n1: exposed once a \
                    deployment has succeeded there.";
        assert_eq!(told(&world), text);
        assert_eq!(world.reason("Ready").as_deref(), Some("Ready"));
    }
    // Another ssh port or another spelling is no other address of the service.
    let ports = [("192.0.2.1:2022", "192.0.2.1:22"), ("fd00:0::7:22", "fd00::7:22")];
    let same = ports.map(|(now, then)| node_of("n0", Some(now), Some(then)));
    assert_eq!(ExposedAddresses::of(&same, &[]).count(), 2);
    world.seen.addresses = ExposedAddresses::of(&[own, foreign(Some("10.244.0.7:22"))], &[]);
    world.pass();
    assert_eq!(world.sizes(), [2]);
    assert_eq!(told(&world), "The ports of 2 addresses are exposed.");
}

#[test]
fn an_address_outside_of_the_administrators_networks_is_not_exposed_however_it_is_written() {
    let mut world = World::new(0);
    // A deployment that reaches nothing succeeded at each.
    let addresses = ["192.0.2.1:22", "10.244.0.7:22", "[::ffff:10.244.0.8]:22", "[fd00::7]:22"];
    let nodes: Vec<Arc<Node>> =
        addresses.iter().enumerate().map(|(idx, it)| node(&format!("n{idx}"), Some(it))).collect();
    let networks = ["192.0.2.0/24".parse().unwrap(), "fd00::/64".parse().unwrap()];
    world.seen.addresses = ExposedAddresses::of(&nodes, &networks);
    world.pass();
    let exposed = world.seen.slices.iter().flat_map(|it| &it.endpoints[0].addresses);
    assert_eq!(exposed.collect::<Vec<_>>(), ["192.0.2.1", "fd00::7"]);
    let status = world.seen.service.status.as_ref().unwrap();
    let told = find(&status.conditions, "EndpointsReady").unwrap();
    assert_eq!(told.reason, "AddressNotAllowed");
    let text = "The ports of 2 addresses are exposed. OpenStackDataPlaneNode n1, n2: not exposed, because \
                the chart's dataplane.serviceNetworks has no network with its address; ask the \
                administrator to add it.";
    assert_eq!(told.message, text);
    world.seen.addresses = ExposedAddresses::of(&nodes, &[]);
    world.pass();
    let exposed = world.seen.slices.iter().map(|it| it.endpoints.len()).sum::<usize>();
    assert_eq!(exposed, 4, "no list allows all");
}

#[test]
fn an_object_of_others_is_left_alone_and_named() {
    let mut world = World::new(1);
    world.seen.taken.insert("Service metrics".into());
    assert_eq!(world.pass(), ["apply EndpointSlice metrics-0", "status"]);
    assert_eq!(world.reason("Ready").as_deref(), Some("NameTaken"));
    world.seen.taken.clear();
    assert_eq!(world.pass(), ["apply Service metrics", "status"]);
    assert_eq!(world.reason("Ready").as_deref(), Some("Ready"));
}

#[test]
fn a_refused_write_is_told_once_and_heals() {
    let mut world = World::new(1);
    let step = recorded(decide(&world.service(), None, Timestamp::UNIX_EPOCH)).steps[0].clone();
    let refusal = RejectedWrite::of(&step, &reasons::FORBIDDEN, "exceeded quota: q");
    for writes in [1, 0] {
        let telling = recorded(
            decide(&world.service(), Some(&refusal), Timestamp::UNIX_EPOCH).only_statuses(),
        );
        assert_eq!(telling.steps.len(), writes);
        telling.steps.iter().for_each(|it| drop(world.take(it)));
    }
    assert_eq!(world.reason("Ready").as_deref(), Some("Forbidden"));
    world.pass();
    assert_eq!(world.reason("WritesAccepted"), None);
    assert_eq!(world.reason("Ready").as_deref(), Some("Ready"));
}
