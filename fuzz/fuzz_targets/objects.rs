//! Fuzz target `objects`; what it does stands in `shell::fuzzing`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| shell::fuzzing::objects(data));
