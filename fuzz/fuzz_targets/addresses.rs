//! Fuzz target `addresses`; what it does stands in `common::fuzzing`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| common::fuzzing::addresses(data));
