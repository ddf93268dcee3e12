//! The API server, Kubernetes' Job controller and the users of the simulation.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use operator_core::plan::{Step, Target, Write};
use operator_core::shares::reserve;
use serde_json::{Value, json};

use super::leader::Leader;
use super::{Dice, HOSTS, Story, Tale, beginning};
use crate::objects::{HOSTS as ADDRESSES, JOB_NAME, RUN};

/// Kind, namespace and name.
pub(super) type Id = (String, String, String);

/// The response to a rejected write.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Refused {
    /// The object has changed since it was read.
    Conflict,
    /// The object does not exist.
    Gone,
    /// Another object has the name.
    Exists,
}

/// All objects, and all their changes.
pub(super) struct World {
    pub(super) story: Story,
    pub(super) now: Timestamp,
    objects: BTreeMap<Id, Value>,
    /// Every change in order; `None` for a deletion.
    pub(super) log: Vec<(Id, Option<Value>)>,
    tale: Tale,
    /// The newest leader that has admitted a run.
    newest: usize,
    /// How many Jobs were ever created for a run.
    jobs: BTreeMap<Id, usize>,
}

impl World {
    pub(super) fn new(story: Story) -> Self {
        Self {
            story,
            now: beginning(),
            objects: BTreeMap::new(),
            log: Vec::new(),
            tale: Tale::default(),
            newest: 0,
            jobs: BTreeMap::new(),
        }
    }

    pub(super) fn tick(&mut self) {
        self.now += SignedDuration::from_secs(1);
    }

    pub(super) fn tale(self) -> Tale {
        self.tale
    }

    pub(super) fn get(&self, id: &Id) -> Option<&Value> {
        self.objects.get(id)
    }

    /// All objects of a kind.
    pub(super) fn all(&self, kind: &str) -> impl Iterator<Item = (&Id, &Value)> {
        self.objects.iter().filter(move |(id, _)| id.0 == kind)
    }

    fn put(&mut self, id: Id, mut object: Value) {
        object["metadata"]["resourceVersion"] = json!((self.log.len() + 1).to_string());
        self.log.push((id.clone(), Some(object.clone())));
        self.objects.insert(id, object);
    }

    fn remove(&mut self, id: &Id) {
        if self.objects.remove(id).is_some() {
            self.log.push((id.clone(), None));
        }
    }

    // -- users --------------------------------------------------------------

    pub(super) fn make_run(&mut self, number: usize, dice: &mut Dice) {
        let (name, namespace) = (format!("r{number:02}"), ["one", "two"][dice.below(2)]);
        let hosts: BTreeSet<usize> = (0..=dice.below(3)).map(|_| dice.below(HOSTS)).collect();
        let mut host = |it: usize| {
            let [one, other] = spellings(it);
            let address = if dice.one_in(2) { one } else { other };
            json!({ "name": format!("h{it}"), "address": address })
        };
        let hosts: Vec<Value> = hosts.into_iter().map(&mut host).collect();
        // Kubernetes' times have seconds, so several are of one age, and their UIDs decide.
        let age = self.now.as_second() / 8 * 8;
        let object = json!({
            "apiVersion": "ansibleee.openstack.org/v1beta1",
            "kind": "OpenStackAnsibleEE",
            "metadata": {
                "name": name,
                "namespace": namespace,
                "uid": format!("{:03}-{name}", dice.below(1000)),
                "generation": 1,
                "creationTimestamp": Timestamp::from_second(age).unwrap().to_string(),
            },
            "spec": { "playbook": "a.yml", "inputHash": name, "hosts": hosts },
        });
        self.put(("OpenStackAnsibleEE".into(), namespace.into(), name), object);
    }

    /// Creates a deleted run again under its name.
    pub(super) fn make_again(&mut self, id: &Id) {
        let is_it = |it: &&(Id, Option<Value>)| it.0 == *id && it.1.is_some();
        let first = self.log.iter().find(is_it).and_then(|it| it.1.clone());
        let mut object = first.expect("it was there");
        object["metadata"]["uid"] = json!(format!("again-{}", id.2));
        self.put(id.clone(), object);
    }

    /// Deletes a run in any state; its Job is deleted at once, its pods later.
    pub(super) fn delete_some_run(&mut self, dice: &mut Dice) -> bool {
        let runs: Vec<Id> = self.all("OpenStackAnsibleEE").map(|it| it.0.clone()).collect();
        if runs.is_empty() {
            return false;
        }
        let run = runs[dice.below(runs.len())].clone();
        self.remove(&run);
        let is_its = |it: &Value| it["metadata"]["annotations"][RUN] == run.2.as_str();
        let jobs: Vec<Id> = self
            .all("Job")
            .filter(|it| it.0.1 == run.1 && is_its(it.1))
            .map(|it| it.0.clone())
            .collect();
        let pods: Vec<Id> = self
            .all("Pod")
            .filter(|it| it.0.1 == run.1 && is_its(it.1))
            .map(|it| it.0.clone())
            .collect();
        for job in &jobs {
            self.remove(job);
        }
        for pod in pods {
            let mut object = self.objects[&pod].clone();
            object["metadata"]["deletionTimestamp"] = json!(self.now.to_string());
            self.put(pod, object);
        }
        true
    }

    // -- the API server -----------------------------------------------------

    /// Executes a write as the API server would, and returns the object afterwards.
    pub(super) fn write(&mut self, step: &Step, by: &Leader) -> Result<(Id, Value), Refused> {
        let id = id_of(&step.target);
        let there = self.objects.get(&id).cloned();
        match (&step.write, there) {
            (Write::Status { status, resource_version, .. }, Some(mut object)) => {
                // A write without a version gets no conflict.
                let there = object["metadata"]["resourceVersion"].as_str();
                if resource_version.as_deref().is_some_and(|it| there != Some(it)) {
                    return Err(Refused::Conflict);
                }
                let was_in = is_in(&object);
                object["status"] = status.clone();
                if !was_in && is_in(&object) {
                    self.check_admission(&id, &object, by);
                }
                self.put(id.clone(), object);
            }
            (Write::Create { object, identity }, Some(there)) => {
                if object.pointer(identity) != there.pointer(identity) {
                    return Err(Refused::Exists);
                }
            }
            (Write::Create { object, .. }, None) => {
                let mut object = object.clone();
                object["metadata"]["uid"] = json!(format!("{}-{}", id.2, self.log.len()));
                object["metadata"]["creationTimestamp"] = json!(self.now.to_string());
                if id.0 == "Job" {
                    let run = object["metadata"]["annotations"][RUN].as_str().unwrap().to_owned();
                    let of = ("OpenStackAnsibleEE".to_owned(), id.1.clone(), run);
                    *self.jobs.entry(of).or_default() += 1;
                }
                self.put(id.clone(), object);
            }
            (Write::Status { .. } | Write::Delete { .. }, None) => return Err(Refused::Gone),
            (_, _) => panic!("not foreseen: {step:?}"),
        }
        Ok((id.clone(), self.objects[&id].clone()))
    }

    /// A write of a leader that has been replaced meanwhile.
    pub(super) fn late_write(&mut self, old: &Leader, step: &Step) {
        if is_admission(step) && self.write(step, old) == Err(Refused::Conflict) {
            self.tale.fenced += 1;
        }
    }

    // -- Kubernetes' own controllers ----------------------------------------

    /// One Job or pod makes one step of progress.
    pub(super) fn go_on(&mut self, dice: &mut Dice) {
        let is_open = |it: &Value| it["status"]["conditions"].as_array().is_none_or(Vec::is_empty);
        let jobs = self.all("Job").filter(|it| is_open(it.1));
        let leaving =
            self.all("Pod").filter(|it| it.1["metadata"]["deletionTimestamp"].is_string());
        let ids: Vec<Id> = jobs.chain(leaving).map(|it| it.0.clone()).collect();
        if ids.is_empty() {
            return;
        }
        let id = ids[dice.below(ids.len())].clone();
        if id.0 == "Pod" {
            self.remove(&id);
            return;
        }
        let mut job = self.objects[&id].clone();
        let pod_id: Id = ("Pod".into(), id.1.clone(), format!("{}-pod", id.2));
        let Some(mut pod) = self.objects.get(&pod_id).cloned() else {
            if job["status"]["startTime"].is_string() {
                self.put(pod_id.clone(), pod_of(&job, &pod_id));
            } else {
                job["status"] = json!({ "startTime": self.now.to_string() });
                self.put(id, job);
            }
            return;
        };
        let phase = pod["status"]["phase"].as_str().unwrap().to_owned();
        match phase.as_str() {
            "Pending" => {
                pod["status"] = running();
                self.put(pod_id, pod);
            }
            "Running" if dice.one_in(2) => {
                pod["status"] = ended(&job, dice.one_in(4));
                self.put(pod_id, pod);
            }
            "Running" => {}
            _ => {
                let type_ = if phase == "Succeeded" { "Complete" } else { "Failed" };
                let time = self.now.to_string();
                job["status"]["conditions"] =
                    json!([{ "type": type_, "status": "True", "lastTransitionTime": time }]);
                self.put(id, job);
            }
        }
    }

    // -- invariants -----------------------------------------------------------

    /// Returns the hosts of each run that uses them or may do so at any moment.
    fn busy(&self) -> BTreeMap<(String, String), BTreeSet<String>> {
        let mut busy: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
        for (id, run) in self.all("OpenStackAnsibleEE").filter(|it| is_in(it.1) && !has_ended(it.1))
        {
            busy.entry((id.1.clone(), id.2.clone())).or_default().extend(addresses(run));
        }
        let is_open = |it: &Value| it["status"]["conditions"].as_array().is_none_or(Vec::is_empty);
        let is_live =
            |it: &Value| !["Succeeded", "Failed"].map(Value::from).contains(&it["status"]["phase"]);
        let jobs = self.all("Job").filter(|it| is_open(it.1));
        for (id, object) in jobs.chain(self.all("Pod").filter(|it| is_live(it.1))) {
            let annotations = &object["metadata"]["annotations"];
            let hosts: Vec<String> =
                serde_json::from_str(annotations[ADDRESSES].as_str().unwrap()).unwrap();
            let hosts = hosts.iter().map(|it| host_at(it));
            let run = annotations[RUN].as_str().unwrap().to_owned();
            busy.entry((id.1.clone(), run)).or_default().extend(hosts);
        }
        busy
    }

    /// Checks that no host is shared, no limit exceeded, and no run has two Jobs.
    pub(super) fn check(&mut self) {
        let busy = self.busy();
        let mut held: BTreeMap<&String, &(String, String)> = BTreeMap::new();
        for (run, hosts) in &busy {
            for host in hosts {
                let other = held.insert(host, run);
                assert_eq!(other, None, "{:?}: {run:?} too touches {host}", self.story);
            }
        }
        let limits = self.story.limits;
        assert!(busy.len() <= limits.total + reserve(limits.total), "{:?}: {busy:?}", self.story);
        for namespace in ["one", "two"] {
            let count = busy.keys().filter(|it| it.0 == namespace).count();
            let is_within = limits.per_namespace.is_none_or(|it| count <= it);
            assert!(is_within, "{:?}: {count} in {namespace}", self.story);
        }
        // A deleted run needs nothing any more; its events may arrive in any order.
        let mut made = self.jobs.iter().filter(|(run, _)| self.objects.contains_key(*run));
        assert!(made.all(|(_, jobs)| *jobs == 1), "{:?}: {:?}", self.story, self.jobs);
        self.tale.most_active = self.tale.most_active.max(busy.len());
    }

    /// Checks an admission: it is the run's turn, and no other leader has replaced this one.
    fn check_admission(&mut self, id: &Id, run: &Value, by: &Leader) {
        let story = self.story;
        assert!(by.number >= self.newest, "{story:?}: leader {} lets {id:?} in late", by.number);
        self.newest = by.number;
        let hosts = addresses(run);
        let beside = self.all("OpenStackAnsibleEE").filter(|it| it.0.1 == id.1 && !is_in(it.1));
        for (other_id, other) in beside {
            let is_shared = addresses(other).iter().any(|it| hosts.contains(it));
            let is_passed_over = is_shared && age(other) < age(run) && by.knows(other_id);
            assert!(!is_passed_over, "{story:?}: {id:?} overtakes {other_id:?}");
        }
        self.tale.admissions.push((id.2.clone(), by.number));
    }

    /// Checks that with everything known and the scheduler at rest, a waiting run has a reason.
    pub(super) fn check_that_nobody_waits_in_vain(&self) {
        let busy = self.busy();
        let limits = self.story.limits;
        for (id, run) in self.all("OpenStackAnsibleEE").filter(|it| !is_in(it.1)) {
            let hosts = addresses(run);
            let is_held = busy.values().any(|it| hosts.iter().any(|host| it.contains(host)));
            let is_behind = self.all("OpenStackAnsibleEE").any(|(other_id, other)| {
                other_id.1 == id.1
                    && !is_in(other)
                    && age(other) < age(run)
                    && addresses(other).iter().any(|it| hosts.contains(it))
            });
            let in_namespace = busy.keys().filter(|it| it.0 == id.1).count();
            // The other namespace's runs beyond three quarters of the slots do not count.
            let others = (busy.len() - in_namespace).min(limits.total - reserve(limits.total));
            let is_full = in_namespace + others >= limits.total
                || limits.per_namespace.is_some_and(|it| in_namespace >= it);
            assert!(is_held || is_behind || is_full, "{:?}: {id:?} waits in vain", self.story);
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.all("OpenStackAnsibleEE").all(|it| has_ended(it.1)) && self.busy().is_empty()
    }

    pub(super) fn waiting(&self) -> Vec<&Id> {
        self.all("OpenStackAnsibleEE").filter(|it| !has_ended(it.1)).map(|it| it.0).collect()
    }
}

/// Returns whether a step admits a run.
pub(super) fn is_admission(step: &Step) -> bool {
    matches!(&step.write, Write::Status { status, .. } if status["admission"].is_object())
}

fn id_of(target: &Target) -> Id {
    (target.kind.kind.clone(), target.namespace.clone(), target.name.clone())
}

/// Returns whether a run was admitted; each is admitted once.
fn is_in(run: &Value) -> bool {
    run["status"]["admission"].is_object()
}

fn has_ended(run: &Value) -> bool {
    ["Succeeded", "Failed"].map(Value::from).contains(&run["status"]["JobStatus"])
}

fn addresses(run: &Value) -> BTreeSet<String> {
    let hosts = run["spec"]["hosts"].as_array().unwrap();
    hosts.iter().map(|it| host_at(it["address"].as_str().unwrap())).collect()
}

/// Returns two spellings of a host's address.
fn spellings(host: usize) -> [String; 2] {
    match host % 3 {
        0 => [format!("192.0.2.{host}:22"), format!("[::FFFF:192.0.2.{host}]:22")],
        1 => [format!("n{host}.example.org:22"), format!("N{host}.Example.org.:22")],
        _ => [format!("2001:db8::{host}:22"), format!("[2001:DB8:0:0::{host}]:22")],
    }
}

/// Returns the host at that address.
fn host_at(address: &str) -> String {
    let is_it = |it: &usize| spellings(*it).iter().any(|it| it == address);
    format!("h{}", (0..HOSTS).find(is_it).expect("one of the spellings"))
}

fn age(run: &Value) -> (&str, &str) {
    let text = |it: &'static str| run["metadata"][it].as_str().unwrap();
    (text("creationTimestamp"), text("uid"))
}

fn pod_of(job: &Value, id: &Id) -> Value {
    let mut metadata = job["spec"]["template"]["metadata"].clone();
    metadata["name"] = json!(id.2);
    metadata["namespace"] = json!(id.1);
    metadata["uid"] = json!(id.2);
    metadata["labels"][JOB_NAME] = job["metadata"]["name"].clone();
    json!({ "metadata": metadata, "status": { "phase": "Pending" } })
}

fn running() -> Value {
    let container = json!({ "name": "openstackansibleee", "state": { "running": {} } });
    json!({ "phase": "Running", "containerStatuses": [container] })
}

/// Ends a pod: with a result for each host, or without any.
fn ended(job: &Value, is_killed: bool) -> Value {
    let hosts = job["metadata"]["annotations"][ADDRESSES].as_str().unwrap();
    let hosts: Vec<String> = serde_json::from_str(hosts).unwrap();
    let done = json!({
        "v": 1,
        "hosts": "o".repeat(hosts.len()),
        "changed": vec![0; hosts.len()],
        "failures": [],
    });
    let (phase, code, message) =
        if is_killed { ("Failed", 137, String::new()) } else { ("Succeeded", 0, done.to_string()) };
    let state = json!({ "terminated": { "exitCode": code, "message": message } });
    let container = json!({ "name": "openstackansibleee", "state": state });
    json!({ "phase": phase, "containerStatuses": [container] })
}
