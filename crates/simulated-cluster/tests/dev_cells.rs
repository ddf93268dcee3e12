//! Development of tests of cells and computes.
#![allow(dead_code, reason = "only a part of the helpers is used here")]

#[path = "sim/computes.rs"]
mod computes;
#[path = "sim/ends.rs"]
mod ends;
#[path = "sim/journey.rs"]
mod journey;
#[path = "sim/kubectl_edpm.rs"]
mod kubectl_edpm;
#[path = "sim/main_job.rs"]
mod main_job;
#[path = "sim/neighbours_honest.rs"]
mod neighbours_honest;
#[path = "sim/removal.rs"]
mod removal;
#[path = "sim/world.rs"]
mod world;
