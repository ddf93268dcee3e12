//! Fuzz target `audit`; what it does stands in `nova_operator::fuzzing`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| nova_operator::fuzzing::audit_report(data));
