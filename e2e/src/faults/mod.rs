//! The faults whose diagnosis is tested: what is done, which object tells of it, and in which words.
//!
//! Plain data, for it is compiled twice: into the tests, and into `cargo xtask codegen`, which makes
//! docs/faults.md of it and of the transcripts that the tests leave.

pub mod cells;
pub mod hosts;
pub mod machines;
pub mod nodes;
pub mod runs;

use std::fmt;

/// All faults, by what they concern.
pub const GROUPS: [(&str, &[Fault]); 6] = [
    ("What a node, a role or a data plane is described by", nodes::FAULTS),
    ("Between a run and its host", hosts::FAULTS),
    ("Machines: what is asked for", machines::ASKED),
    ("Machines: what becomes of them", machines::FATES),
    ("Cells and computes", cells::FAULTS),
    ("Runs made by hand", runs::FAULTS),
];

/// Something that goes wrong, and what a human then reads.
#[derive(Debug)]
pub struct Fault {
    /// A word for it: in the names of its namespace and of its transcript.
    pub name: &'static str,
    /// What is done, as one sentence.
    pub done: &'static str,
    /// The kind of the object that a human describes: one that a human wrote.
    pub kind: &'static str,
    /// Its name.
    pub object: &'static str,
    /// Kind and name of another object that tells the same, if there is one.
    pub also: Option<(&'static str, &'static str)>,
    /// The object concerned, the cause, and the command or edit to do next; `NAMESPACE` stands for
    /// that of the test.
    pub words: [&'static str; 3],
    /// What tools make of the object that is described.
    pub kstatus: Kstatus,
}

/// How an object stands for `helm --wait`, Flux, Argo and others.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kstatus {
    /// It is on its way.
    InProgress,
    /// It waits for a human.
    Failed,
    /// It is what its spec says.
    Current,
    /// It is being deleted.
    Terminating,
}

impl fmt::Display for Kstatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}
