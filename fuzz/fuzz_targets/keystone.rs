//! Fuzz target `keystone`; what it does stands in `ironic_client::fuzzing`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ironic_client::fuzzing::keystone_answer(data));
