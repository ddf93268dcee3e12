//! Fuzz target `admission`; what it does stands in `nova_operator::fuzzing`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| nova_operator::fuzzing::admission(data));
