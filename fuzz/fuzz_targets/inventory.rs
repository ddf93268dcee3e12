//! Fuzz target `inventory`; what it does stands in `operator_core::fuzzing`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| operator_core::fuzzing::inventories(data));
