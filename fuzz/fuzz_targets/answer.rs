//! Fuzz target `answer`; what it does stands in `kubectl_edpm::fuzzing`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| kubectl_edpm::fuzzing::answer(data));
