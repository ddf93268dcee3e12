//! Operators that are killed, stopped or replaced, and their neighbours that fail: each test has a
//! simulated cluster of its own.

#[path = "../sim/computes.rs"]
mod computes;
mod crashes;
#[path = "../sim/ends.rs"]
mod ends;
mod hostile_answers;
#[path = "../sim/idle.rs"]
mod idle;
#[path = "../sim/journey.rs"]
mod journey;
mod namespaces;
mod nova_api;
mod own;
mod poison;
mod removal;
mod restarts;
mod webhooks;
