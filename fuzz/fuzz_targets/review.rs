//! Fuzz target `review`; what it does stands in `operator_runtime::fuzzing`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| operator_runtime::fuzzing::review(data));
