//! Fuzz target `summary`; what it does stands in `ansibleee_operator::fuzzing`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ansibleee_operator::fuzzing::summary(data));
