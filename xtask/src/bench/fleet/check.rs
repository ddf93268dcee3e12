//! `cargo xtask bench --check`: asserts of many hosts no more requests than the baseline has, and no
//! more processor time a host for three times the hosts.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::meter::Phase;
use super::step::Step;
use super::{Fleet, Road, judge, measure, phase_of};
use crate::bench::{self, process::OPERATORS};
use crate::{paths, sh, sim};

const ROADS: [Road; 2] = [Road::Role, Road::NodeSet];
/// How many hosts there are, and with how many those are compared.
const SIZES: [usize; 2] = [100, 300];
const STEPS: [Step; 2] = [Step::First, Step::Restart];
/// How much more processor time a host may take where there are more of them.
const GROWTH: f64 = 1.3;
/// One of so many requests of a kind may be a further one, and a few of each: how requests meet
/// depends on time. A host has at most four writes of a kind, so that one more of each is noticed.
const FURTHER_EVERY: u64 = 5;
const FURTHER: u64 = 8;
/// A status that sums up hosts is written again at least so often while work goes on.
const SUM_EVERY: Duration = Duration::from_secs(1);

/// A road, and what is wrong there.
pub(crate) type Checked = (String, Vec<String>);

/// What was measured on one road, with the sizes of [`SIZES`].
struct Sample {
    road: Road,
    sizes: [Vec<Phase>; 2],
}

/// Measures all roads and compares them with the baseline. The programs are those that the tests
/// compile, unless a directory has others.
pub(crate) fn run(programs: Option<&Path>) -> Result<Vec<Checked>> {
    let path = baseline_path();
    let text = std::fs::read_to_string(&path).with_context(|| {
        format!(
            "no baseline at {}: record it with `cargo xtask bench --check --write`",
            path.display()
        )
    })?;
    let baseline: Value =
        serde_json::from_str(&text).with_context(|| path.display().to_string())?;
    let samples = samples(programs)?;
    Ok(samples.iter().map(|it| (it.road.name(), it.wrong(&baseline))).collect())
}

/// Measures all roads, and writes the baseline anew.
pub(crate) fn write(programs: Option<&Path>) -> Result<()> {
    let samples = samples(programs)?;
    let baseline: Value = samples
        .iter()
        .map(|it| (it.road.name(), it.counts()))
        .collect::<serde_json::Map<_, _>>()
        .into();
    bench::write(&baseline_path(), &baseline)?;
    println!("{} is written.", baseline_path().display());
    for sample in &samples {
        println!(
            "{}: CPU a host {:.2} times of that with fewer",
            sample.road.name(),
            sample.growth()
        );
    }
    Ok(())
}

fn baseline_path() -> PathBuf {
    paths::repo().join("bench/fleet-baseline.json")
}

fn samples(programs: Option<&Path>) -> Result<Vec<Sample>> {
    let programs = match programs {
        Some(folder) => std::path::absolute(folder)?,
        None => sim::compile()?.parent().context("a program is in a directory")?.to_owned(),
    };
    let sample = |road: Road| {
        let [few, many] = SIZES.map(|nodes| {
            // With their role last, all hosts are known at once: batches do not depend on time.
            let fleet = Fleet { road, nodes, nodes_first: road == Road::Role };
            let what = format!("{} hosts of road {}", nodes, road.name());
            sh::step(&what, || {
                let (phases, ended) = measure(fleet, &STEPS, Duration::ZERO, &programs)?;
                ended?;
                judge(fleet, &phases)?;
                Ok(phases)
            })
        });
        Ok(Sample { road, sizes: [few?, many?] })
    };
    ROADS.into_iter().map(sample).collect()
}

impl Sample {
    /// Returns how much processor time a host takes, divided by that of a host among fewer.
    fn growth(&self) -> f64 {
        let [few, many] = self
            .sizes
            .each_ref()
            .map(|it| phase_of(it, Step::First).map_or(0.0, Phase::cpu_seconds));
        many / few / super::report::ratio(SIZES[1] as u64, SIZES[0] as u64)
    }

    /// Returns the counts that are compared, by size and step.
    fn counts(&self) -> Value {
        let steps = |phases: &Vec<Phase>| {
            let step = |it: &Phase| (it.name.clone(), it.requests.as_json());
            Value::from(phases.iter().skip(1).map(step).collect::<serde_json::Map<_, _>>())
        };
        let [few, many] = self.sizes.each_ref().map(steps);
        json!({ SIZES[0].to_string(): few, SIZES[1].to_string(): many })
    }

    /// Returns what is more than it may be.
    fn wrong(&self, baseline: &Value) -> Vec<String> {
        let mut wrong = Vec::new();
        for (size, phases) in SIZES.iter().zip(&self.sizes) {
            let of_size = &baseline[self.road.name()][size.to_string()];
            let found = phases.iter().skip(1).flat_map(|it| beyond(&of_size[&it.name], it));
            wrong.extend(found.map(|it| format!("{size} hosts: {it}")));
        }
        let growth = self.growth();
        // Not a number when nothing was measured.
        if growth.is_nan() || growth > GROWTH {
            let [few, many] = SIZES;
            wrong.push(format!(
                "{many} hosts take {growth:.2} times the CPU a host that {few} take; {GROWTH} are due"
            ));
        }
        wrong
    }
}

/// Returns the kinds of requests of which a step has more than the baseline allows; fewer are fine.
fn beyond(baseline: &Value, phase: &Phase) -> Vec<String> {
    let mut wrong = Vec::new();
    for operator in OPERATORS {
        for (kind, n) in phase.requests.of(operator) {
            let recorded = baseline[operator][&kind].as_u64().unwrap_or_default();
            let allowed = recorded + further(&kind, recorded, phase.seconds.unwrap_or_default());
            if n > allowed && !bench::depends_on_time(&kind) {
                let step = &phase.name;
                wrong.push(format!("{step}: {operator}: {n} × {kind}, {allowed} are allowed"));
            }
        }
    }
    wrong
}

/// Returns how many more requests of a kind there may be than in the baseline.
fn further(kind: &str, recorded: u64, seconds: f64) -> u64 {
    let is_sum =
        ROADS.iter().flat_map(|it| it.sums()).any(|it| kind.ends_with(&format!(" {it}/status")));
    let for_time = if is_sum { seconds / SUM_EVERY.as_secs_f64() } else { 0.0 };
    recorded / FURTHER_EVERY + FURTHER + whole(for_time)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few minutes")]
fn whole(seconds: f64) -> u64 {
    seconds.max(0.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::process::Usage;

    fn phases(n_writes: usize, cpu_seconds: f64) -> Vec<Phase> {
        let mut first = Phase::of("first", &vec![("patch", "secrets"); n_writes]);
        let name = "dataplane-operator".to_owned();
        first.processes = vec![Usage { name, pid: 7, rss_mib: 1.0, peak_mib: 1.0, cpu_seconds }];
        vec![Phase::of("start", &[("list", "jobs")]), first]
    }

    fn sample(n_writes: usize, cpu_seconds: f64) -> Sample {
        Sample { road: Road::Role, sizes: [phases(100, 1.0), phases(n_writes, cpu_seconds)] }
    }

    #[test]
    fn requests_may_exceed_the_baseline_by_a_fifth_and_a_few() {
        let baseline = json!({ "role": sample(300, 3.0).counts() });
        assert_eq!(baseline["role"]["300"]["first"]["dataplane-operator"]["patch secrets"], 300);
        assert_eq!(sample(368, 3.0).wrong(&baseline), [""; 0]);
        assert_eq!(sample(1, 3.0).wrong(&baseline), [""; 0], "fewer are fine");
        let expected = "300 hosts: first: dataplane-operator: 369 × patch secrets, 368 are allowed";
        assert_eq!(sample(369, 3.0).wrong(&baseline), [expected]);
        assert_eq!(sample(9, 3.0).wrong(&json!({})).len(), 2, "what is not recorded is too much");
    }

    #[test]
    fn a_host_among_more_may_take_a_little_more_processor_time() {
        let wrong = |cpu_seconds| {
            let sample = sample(300, cpu_seconds);
            sample.wrong(&json!({ "role": sample.counts() }))
        };
        assert_eq!(wrong(3.8), [""; 0]);
        let expected = "300 hosts take 1.33 times the CPU a host that 100 take; 1.3 are due";
        assert_eq!(wrong(4.0), [expected]);
        let nothing = Sample { road: Road::Role, sizes: [phases(1, 0.0), phases(1, 0.0)] };
        assert_eq!(nothing.wrong(&json!({ "role": nothing.counts() })).len(), 1);
    }

    #[test]
    fn statuses_that_sum_up_hosts_may_be_written_each_second() {
        assert_eq!(further("patch openstackdataplaneroles/status", 20, 10.9), 4 + 8 + 10);
        assert_eq!(further("patch openstackdataplanenodes/status", 20, 10.9), 4 + 8);
    }
}
