//! The dataplane-operator process.

fn main() {}
