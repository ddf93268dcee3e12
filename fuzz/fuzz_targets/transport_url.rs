//! Fuzz target `transport_url`; what it does stands in `nova_operator::fuzzing`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| nova_operator::fuzzing::transport_url(data));
