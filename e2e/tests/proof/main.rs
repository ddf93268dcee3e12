//! Tests on the demo's hosts that take too long for each run of the tests: `cargo xtask proof` runs
//! them.

mod refuted;
