//! Fuzz target `nova_keystone`; what it does stands in `nova_operator::fuzzing`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| nova_operator::fuzzing::nova_keystone(data));
