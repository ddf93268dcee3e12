//! The ansibleee-operator process.

fn main() {}
