//! `status`: one row per host, as a table, JSON or YAML.

use api::conditions::{ConditionStatus, READY};
use jiff::Timestamp;
use kube::ResourceExt;
use nova_config::conditions::{CONFIGURATION_IN_SYNC, DRAINED, SERVICE_UP};
use serde::Serialize;

use crate::args::{Output, Status};
use crate::color::{Paint, Tone, table};
use crate::host::Host;
use crate::object_meta::created;
use crate::snapshot::Snapshot;
use crate::words::age;

/// The status of one host.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// The namespace of the host.
    pub namespace: String,
    /// The name of the host.
    pub node: String,
    /// The role of the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The node set of the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_set: Option<String>,
    /// The current phase: `Prepare`, `Nova`, `Deploy`, or `Done`.
    pub phase: String,
    /// The service that is in progress or has failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// The state of that service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Whether node and compute are ready.
    pub ready: ConditionStatus,
    /// The reason of `Ready` in the first stage that is not ready, else in the last stage.
    pub reason: String,
    /// The message of that condition.
    pub message: String,
    /// Whether node and compute were last deployed with the current inputs.
    pub up_to_date: ConditionStatus,
    /// The address for Ansible.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The cell of its compute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cell: Option<String>,
    /// The run that is in progress or has failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// What else holds of the host: its deletion, a drain, a disabled service, an audit that found
    /// differences; the reasons of their conditions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// When the node was created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<Timestamp>,
    #[serde(skip)]
    tone: Option<Tone>,
}

/// Returns the rows of the named hosts, or of all hosts when no name is given.
pub fn rows(snapshot: &Snapshot, names: &[String]) -> Vec<Row> {
    let is_asked = |it: &&Host<'_>| names.is_empty() || names.iter().any(|name| it.is_called(name));
    snapshot.hosts().iter().filter(is_asked).map(row).collect()
}

fn row(host: &Host<'_>) -> Row {
    let open = host.open_stage();
    // A host that is deployed again stays ready while a service is in progress.
    let at_work = host.stages.iter().find(|it| host.at_work(it).is_some());
    let telling = open.or_else(|| host.stages.last());
    let ready = telling.and_then(|it| it.condition(READY));
    let current = open.or(at_work).and_then(|it| host.current(it));
    let name = |it: &crate::host::Progress<'_>| it.run.map(ResourceExt::name_any);
    Row {
        namespace: host.namespace.to_owned(),
        node: host.name.to_owned(),
        role: host.node.spec.role.clone(),
        node_set: host.node.node_set().map(str::to_owned),
        phase: open.or(at_work).map_or_else(|| "Done".to_owned(), |it| it.phase.to_string()),
        service: current.as_ref().map(|it| it.service.to_owned()),
        state: current.as_ref().map(|it| it.state.to_string()),
        ready: host.truth(READY),
        reason: ready.map_or_else(|| "NotSeen".to_owned(), |it| it.reason.clone()),
        message: ready.map_or_else(
            || "No operator has reconciled it yet.".to_owned(),
            |it| it.message.clone(),
        ),
        up_to_date: host.up_to_date(),
        address: host.node.status.as_ref().and_then(|it| it.address.clone()),
        cell: host.compute.map(|it| it.spec.cell_name.clone()).filter(|it| !it.is_empty()),
        run: current.as_ref().and_then(name),
        notes: notes(host),
        created: created(host.node),
        tone: ready.map(Tone::of),
    }
}

/// Returns what holds of a host besides its readiness.
fn notes(host: &Host<'_>) -> Vec<String> {
    let of = |type_| host.stages.iter().find_map(|it| it.condition(type_));
    let drained = of(DRAINED).filter(|it| it.status != ConditionStatus::Unknown);
    // A drained host's service is disabled.
    let disabled = of(SERVICE_UP).filter(|it| drained.is_none() && it.reason == "ServiceDisabled");
    let differs = of(CONFIGURATION_IN_SYNC).filter(|it| it.status == ConditionStatus::False);
    let is_deleting = host.node.is_leaving()
        || host.compute.is_some_and(|it| it.metadata.deletion_timestamp.is_some());
    let deleting = is_deleting.then(|| "Deleting".to_owned());
    let reasons = [drained, disabled, differs].into_iter().flatten().map(|it| it.reason.clone());
    deleting.into_iter().chain(reasons).collect()
}

/// The layout of the table.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The arguments of the command.
    pub asked: &'a Status,
    /// The colours.
    pub paint: Paint,
    /// The current time, for ages.
    pub now: Timestamp,
}

impl View<'_> {
    fn is_wide(self) -> bool {
        self.asked.output == Some(Output::Wide)
    }
}

/// Returns the table: the header, then exactly one line per row.
pub fn lines(rows: &[Row], view: View<'_>) -> Vec<String> {
    let mut header =
        vec!["GROUP", "NODE", "PHASE", "SERVICE", "READY", "REASON", "UPTODATE", "NOTES", "AGE"];
    if view.asked.all_namespaces {
        header.insert(0, "NAMESPACE");
    }
    if view.is_wide() {
        header.extend(["ADDRESS", "CELL", "RUN", "MESSAGE"]);
    }
    let mut cells = vec![header.into_iter().map(str::to_owned).collect()];
    cells.extend(rows.iter().map(|it| it.cells(view)));
    table(&cells).lines().map(str::to_owned).collect()
}

/// Returns the rows as a JSON or YAML document with the key `nodes`.
pub fn document(rows: &[Row], output: Output) -> String {
    #[derive(Serialize)]
    struct Document<'a> {
        nodes: &'a [Row],
    }
    let document = Document { nodes: rows };
    match output {
        Output::Json | Output::Wide => {
            let text = serde_json::to_string_pretty(&document);
            text.expect("rows are texts") + "\n"
        }
        Output::Yaml => api::yaml::to_string(&document).expect("rows are texts"),
    }
}

impl Row {
    fn cells(&self, view: View<'_>) -> Vec<String> {
        let or_none = |it: &Option<String>| it.clone().unwrap_or_else(|| "<none>".to_owned());
        let paint = view.paint;
        let service = match (&self.service, &self.state) {
            (Some(service), Some(state)) => format!("{service}/{state}"),
            _ => "-".to_owned(),
        };
        let tone = self.tone.unwrap_or(Tone::Warn);
        let phase = match self.phase.as_str() {
            "Done" => paint.text(Tone::Good, "Done"),
            phase => phase.to_owned(),
        };
        let current = match self.up_to_date {
            ConditionStatus::True => Tone::Good,
            ConditionStatus::False => Tone::Warn,
            ConditionStatus::Unknown => Tone::Dim,
        };
        let mut cells = vec![
            or_none(if self.node_set.is_some() { &self.node_set } else { &self.role }),
            self.node.clone(),
            phase,
            service,
            paint.text(tone, truth(self.ready)),
            paint.text(tone, &self.reason),
            paint.text(current, truth(self.up_to_date)),
            if self.notes.is_empty() { "-".to_owned() } else { self.notes.join(",") },
            age(self.created, view.now),
        ];
        if view.asked.all_namespaces {
            cells.insert(0, self.namespace.clone());
        }
        if view.is_wide() {
            cells.extend([or_none(&self.address), or_none(&self.cell), or_none(&self.run)]);
            cells.push(self.message.clone());
        }
        cells
    }
}

/// Returns the status as text.
pub fn truth(truth: ConditionStatus) -> &'static str {
    match truth {
        ConditionStatus::True => "True",
        ConditionStatus::False => "False",
        ConditionStatus::Unknown => "Unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata;

    static ASKED: Status =
        Status { nodes: Vec::new(), all_namespaces: false, watch: false, output: None };

    fn table_of(rows: &[Row]) -> Vec<String> {
        let now = testdata::NOW.parse().unwrap();
        lines(rows, View { asked: &ASKED, paint: Paint::default(), now })
    }

    #[test]
    fn each_host_has_its_phase_and_what_is_going_on() {
        let text = table_of(&rows(&testdata::snapshot(), &[])).join("\n");
        assert_eq!(text, include_str!("../testdata/status.txt").trim_end());
    }

    #[test]
    fn hosts_of_node_sets_have_a_row_each_by_what_holds_there() {
        let snapshot = testdata::node_set();
        let text = table_of(&rows(&snapshot, &[])).join("\n");
        assert_eq!(text, include_str!("../testdata/status-node-set.txt").trim_end());
        for name in ["compute-6", "edpm-compute-6"] {
            let one = rows(&snapshot, &[name.to_owned()]);
            let found = one.iter().map(|it| (it.node.as_str(), it.node_set.as_deref()));
            assert_eq!(found.collect::<Vec<_>>(), [("edpm-compute-6", Some("openstack-edpm"))]);
        }
        let mut snapshot = snapshot;
        snapshot.nodes[1].spec.leaving = Some(true);
        assert_eq!(rows(&snapshot, &["compute-6".to_owned()])[0].notes, ["Deleting"]);
    }

    #[test]
    fn a_drain_a_disabled_service_a_difference_and_a_deletion_are_shown() {
        let mut snapshot = testdata::snapshot();
        let condition = |type_: &str, status: &str, reason: &str| {
            let yaml = format!(
                "{{type: {type_}, status: '{status}', reason: {reason}, message: x, \
                 lastTransitionTime: '2026-11-21T11:00:00Z'}}"
            );
            api::yaml::from_str(&yaml).unwrap()
        };
        let notes =
            |snapshot: &Snapshot| rows(snapshot, &["edpm-compute-0".to_owned()])[0].notes.clone();
        assert!(notes(&snapshot).is_empty());
        let mut add = |it| snapshot.computes[0].status.as_mut().unwrap().conditions.push(it);
        add(condition(SERVICE_UP, "True", "ServiceDisabled"));
        add(condition(CONFIGURATION_IN_SYNC, "False", "OutOfSync"));
        assert_eq!(notes(&snapshot), ["ServiceDisabled", "OutOfSync"]);
        let mut add = |it| snapshot.computes[0].status.as_mut().unwrap().conditions.push(it);
        add(condition(DRAINED, "True", "Drained"));
        let now = testdata::NOW.parse().map(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time);
        snapshot.nodes[0].metadata.deletion_timestamp = Some(now.unwrap());
        assert_eq!(notes(&snapshot), ["Deleting", "Drained", "OutOfSync"]);
        let text = table_of(&rows(&snapshot, &[]))[1].clone();
        assert!(text.contains("Deleting,Drained,OutOfSync"), "{text}");
    }
}
