//! Control logic against one simulated cluster that all of these tests share.

mod host_failures;
mod journey;
mod world;
