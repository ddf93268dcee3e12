//! Fuzz target `review`; what it does stands in `shell::fuzzing`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| shell::fuzzing::review(data));
