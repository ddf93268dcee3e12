//! YAML in and out: the only file that names the YAML crate.
