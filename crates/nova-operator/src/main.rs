//! The nova-operator process.

fn main() {}
