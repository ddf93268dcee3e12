//! Fuzz target `host_keys`; what it does stands in `operator_core::fuzzing`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| operator_core::fuzzing::host_keys(data));
