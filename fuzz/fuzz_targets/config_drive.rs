//! Fuzz target `config_drive`; what it does stands in `config_drive::fuzzing`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| config_drive::fuzzing::config_drive(data));
