//! The road of a service: the ConfigMaps and Secrets that an `OpenStackDataPlaneService` mounts, and
//! who lists it.

use common::api::dataplane::Service;
use common::conditions::Truth;
use dataplane_operator::group::faults::Named as Source;
use kube::ResourceExt;

use super::carried::reported;
use super::{Mark, Seen, Stop, Way, places, winners};
use crate::cluster::Read;
use crate::host::Step;
use crate::named::Named;
use crate::options::{File, Object, is_read};
use crate::status::UP_TO_DATE;

/// A service of type nova, and what it is given.
#[derive(Clone, Debug)]
pub struct Given {
    /// The service.
    pub service: Service,
    /// Its ConfigMaps and Secrets in their order, each with all its keys.
    pub sources: Vec<(Source, Read<Vec<File>>)>,
    /// Keys of other ConfigMaps of the namespace that set the option, where no source does.
    pub beside: Vec<File>,
}

impl Given {
    /// The files that are known to be given to it.
    pub fn files(&self) -> impl Iterator<Item = &File> {
        self.sources.iter().filter_map(|(_, it)| it.found()).flatten()
    }

    /// What nova-compute would read, in its order; nothing where a source is not known.
    fn read(&self) -> Option<Vec<File>> {
        if self.sources.iter().any(|(_, it)| matches!(it, Read::Refused(_))) {
            return None;
        }
        let mut files: Vec<File> = self.files().filter(|it| is_read(&it.name)).cloned().collect();
        files.sort_by(|a, b| a.name.cmp(&b.name));
        Some(files)
    }
}

pub(super) fn way(seen: &Seen<'_>, given: &Given, named: &Named) -> Way {
    let files = given.read();
    let known = files.as_deref().unwrap_or_default();
    let winner = named.winner(known).map(|(file, _)| file);
    let is_deployed = is_deployed(seen, given, winner);
    let stops =
        vec![written(seen, given, named), service(seen, given, named, known), listed(seen, given)];
    Way { service: given.service.name_any(), stops, files, is_deployed }
}

fn written(seen: &Seen<'_>, given: &Given, named: &Named) -> Stop {
    let (namespace, name) = (seen.host.namespace, given.service.name_any());
    let (mut mark, mut lines) = (Mark::Ok, Vec::new());
    for (source, content) in &given.sources {
        let object = object(source).title(namespace);
        match content {
            Read::Found(_) => {}
            Read::Missing if source.is_optional => {}
            Read::Missing => {
                mark = Mark::NotYet;
                lines.push(format!("{object}, which service {name} needs, does not exist"));
            }
            Read::Refused(why) => {
                mark = if mark == Mark::Ok { Mark::Unknown } else { mark };
                lines.push(format!("{object} cannot be read: {why}"));
            }
        }
    }
    let files: Vec<&File> = given.files().chain(&given.beside).collect();
    for file in &files {
        let place = format!("{}, key {}", file.source, file.name);
        lines.extend(places(&place, &file.entries, named));
    }
    if lines.is_empty() {
        lines.push(format!("nobody has written it: no ConfigMap or Secret of service {name}"));
    }
    let found = files.iter().flat_map(|it| named.entries(&it.entries));
    let found: Vec<String> = found.map(|it| it.value.clone()).collect();
    seen.compared(Stop { name: "written", mark, lines }, &found, named)
}

fn service(seen: &Seen<'_>, given: &Given, named: &Named, files: &[File]) -> Stop {
    let title =
        format!("OpenStackDataPlaneService {}/{}", seen.host.namespace, given.service.name_any());
    let stop = |mark, lines| Stop { name: "service", mark, lines };
    let sets = |it: &&File| !named.entries(&it.entries).is_empty();
    if let Some(file) = given.beside.first() {
        let line = format!("{title} does not name {} in spec.dataSources", file.source);
        return stop(Mark::NotYet, vec![line]);
    }
    let ignored = given.files().find(|it| sets(it) && !is_read(&it.name));
    if let Some(file) = ignored.filter(|_| named.winner(files).is_none()) {
        let line = format!(
            "{title} mounts {}, but nova-compute reads *nova*.conf alone and ignores key {}: name \
             it 25-nova-{}.conf",
            file.source,
            file.name,
            file.name.strip_suffix(".conf").unwrap_or(&file.name)
        );
        return stop(Mark::NotYet, vec![line]);
    }
    let titles: Vec<String> = given.sources.iter().map(|(it, _)| it.title()).collect();
    let mounts = if titles.is_empty() { "nothing".to_owned() } else { titles.join(", ") };
    let mut lines = vec![format!("{title} mounts {mounts}")];
    lines.extend(winners(files, named));
    stop(Mark::Ok, lines)
}

fn listed(seen: &Seen<'_>, given: &Given) -> Stop {
    let name = given.service.name_any();
    let (kind, group) = match &seen.host.group {
        Some(group) => (group.kind, group.name),
        None => (seen.stage.kind, seen.host.name),
    };
    let is_listed = seen.stage.wanted.contains(&name.as_str());
    let (mark, verb) =
        if is_listed { (Mark::Ok, "lists") } else { (Mark::NotYet, "does not list") };
    let line = format!("{kind} {}/{group} {verb} {name} in spec.services", seen.host.namespace);
    Stop { name: "listed", mark, lines: vec![line] }
}

/// What the run says that it was given is the best witness; else the status is believed.
fn is_deployed(seen: &Seen<'_>, given: &Given, winner: Option<&File>) -> bool {
    let name = given.service.name_any();
    let progress = seen.host.progress(seen.stage);
    let Some(of_service) = progress.iter().find(|it| it.service == name) else { return false };
    if of_service.state != Step::Succeeded {
        return false;
    }
    let told = of_service.run.and_then(reported);
    match (told, winner) {
        (Some(told), Some(file)) => told.get(&file.name) == Some(&file.digest),
        _ => seen.stage.truth(UP_TO_DATE) == Truth::True,
    }
}

/// The object that a service names.
pub fn object(source: &Source) -> Object {
    Object { is_secret: source.is_secret, name: source.name.clone() }
}
