//! Fuzz target `nova`; what it does stands in `openstack_client::fuzzing`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| openstack_client::fuzzing::nova_answer(data));
