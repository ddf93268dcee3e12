//! Fuzz target `hosts`; what it does stands in `dataplane_operator::fuzzing`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| dataplane_operator::fuzzing::hosts(data));
