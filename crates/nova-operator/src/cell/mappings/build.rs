//! Builds the Job that reads which hosts nova maps.

use api::nova::{Cell, MappingReading};
use operator_core::plan::Step;

use crate::cell::discovery::build::{CONFIG_FOLDER, Program, job};
use crate::cell::observed::mappings::MAPPINGS_LABEL;
use crate::requested::host_discovery::Settings;

/// How long a Job may take, in seconds; that includes the time until its image is there.
const DEADLINE_SECONDS: i64 = 300;
/// The file whose content becomes the termination message of the container.
const RESULT: &str = "/dev/termination-log";
/// The program of the container.
pub(crate) const SCRIPT: &str = include_str!("list-hosts.sh");

/// Returns the step that creates the Job of a reading.
pub fn mappings_job(cell: &Cell, settings: &Settings, reading: &MappingReading) -> Step {
    let hosts = reading.hosts.iter().map(String::as_str);
    let program = Program {
        name: "list-hosts",
        script: SCRIPT,
        args: [CONFIG_FOLDER, RESULT].into_iter().chain(hosts).collect(),
        labels: &[MAPPINGS_LABEL],
        deadline_seconds: DEADLINE_SECONDS,
        because: "the mappings of hosts that are removed are to be gone",
    };
    job(cell, settings, &reading.job, &program)
}
