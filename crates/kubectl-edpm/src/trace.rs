//! Where an option of a host comes from, step by step, as far as the cluster knows.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use nova_operator::compute::build::NOVA;

use crate::cluster::Read;
use crate::diff::Options;
use crate::host::{Host, Stage};
use crate::named::Named;
use crate::options::{files, value};
use crate::paint::{Paint, Tone, table};

mod steps;

use steps::{in_secret, is_deployed, job, on_host, process, run, written};

/// Everything that a trace is made from.
pub struct Seen<'a> {
    /// The host.
    pub host: &'a Host<'a>,
    /// Its stage of nova.
    pub stage: &'a Stage<'a>,
    /// What its options are made from.
    pub options: &'a Options<'a>,
    /// The Job of the newest run of service nova, where that run is kept and has one.
    pub job: Option<Read<Job>>,
    /// The pod of that Job.
    pub pod: Option<Read<Pod>>,
}

/// One step of the way.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Stop {
    /// Its name.
    pub name: &'static str,
    /// How far the option has come there.
    pub mark: Mark,
    /// What is there.
    pub lines: Vec<String>,
}

/// How far an option has come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Mark {
    /// It is there.
    Ok,
    /// It is not there yet.
    NotYet,
    /// The cluster does not know.
    Unknown,
}

impl Mark {
    fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::NotYet => "NOT YET",
            Self::Unknown => "unknown",
        }
    }

    fn tone(self) -> Tone {
        match self {
            Self::Ok => Tone::Good,
            Self::NotYet => Tone::Bad,
            Self::Unknown => Tone::Warn,
        }
    }
}

/// The whole text.
pub fn text(seen: &Seen<'_>, asked: (&str, &str), named: &Named, paint: Paint) -> String {
    let stops = stops(seen, named);
    let (section, key) = asked;
    let mut out =
        format!("nova.conf [{section}] {key} on {}\n", paint.text(Tone::Bold, seen.host.name));
    out += &named.note.as_ref().map(|it| format!("note: {it}\n")).unwrap_or_default();
    let mut lines = Vec::new();
    for (idx, stop) in stops.iter().enumerate() {
        let mut begin = vec![
            format!("{}. {}", idx + 1, stop.name),
            paint.text(stop.mark.tone(), stop.mark.word()),
        ];
        for line in &stop.lines {
            begin.push(line.clone());
            lines.push(std::mem::replace(&mut begin, vec![String::new(), String::new()]));
        }
    }
    out += &table(&lines);
    out + &conclusion(&stops, seen, named)
}

fn conclusion(stops: &[Stop], seen: &Seen<'_>, named: &Named) -> String {
    let open = stops.iter().position(|it| it.mark == Mark::NotYet);
    if let Some(at) = open {
        return format!(
            "It stops at step {}, {}: what follows is not deployed yet.\n",
            at + 1,
            stops[at].name
        );
    }
    let rendered = seen.options.secret.found().map(files).unwrap_or_default();
    if seen.options.secret.found().is_none() {
        return "Without the Secret nobody can tell which file sets it.\n".to_owned();
    }
    match named.winner(&rendered) {
        Some((file, entry)) => {
            let from =
                if file.source.is_empty() { String::new() } else { format!(" of {}", file.source) };
            format!(
                "As far as the cluster knows, in force: {} = {}, from {}{from}.\n",
                entry.key,
                value(entry),
                file.name
            )
        }
        None => "No file sets it: as far as the cluster knows, nova's own default is in force.\n"
            .to_owned(),
    }
}

/// The steps from what was written to the process.
pub fn stops(seen: &Seen<'_>, named: &Named) -> Vec<Stop> {
    let rendered = seen.options.secret.found().map(files).unwrap_or_default();
    let winner = named.winner(&rendered);
    let current = seen.host.progress(seen.stage).into_iter().find(|it| it.service == NOVA);
    let is_deployed = is_deployed(seen, winner.map(|(file, _)| file.name.as_str()));
    vec![
        written(seen, named),
        in_secret(seen, named, &rendered),
        run(seen, current.as_ref(), winner.map(|(file, _)| file), is_deployed),
        job(seen, current.as_ref(), is_deployed),
        on_host(seen, winner, current.as_ref(), is_deployed),
        process(named),
    ]
}

#[cfg(test)]
mod tests;
