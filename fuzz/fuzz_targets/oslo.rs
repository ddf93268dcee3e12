//! Fuzz target `oslo`; what it does stands in `nova_operator::fuzzing`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| nova_operator::fuzzing::oslo_text(data));
