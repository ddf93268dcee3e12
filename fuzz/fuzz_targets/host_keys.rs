//! Fuzz target `host_keys`; what it does stands in `common::fuzzing`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| common::fuzzing::host_keys(data));
