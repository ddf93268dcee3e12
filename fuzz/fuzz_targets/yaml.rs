//! Fuzz target `yaml`; what it does stands in `operator_core::fuzzing`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| operator_core::fuzzing::yaml_texts(data));
