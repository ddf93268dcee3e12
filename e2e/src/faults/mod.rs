//! The faults whose diagnosis is tested: the cause, the object that reports it, and the words.
//!
//! The module is plain data, because it is compiled twice: into the tests, and into `cargo xtask
//! codegen`, which generates docs/faults.md from it and from the transcripts of the tests.

pub mod cells;
pub mod guests;
pub mod hosts;
pub mod machines;
pub mod nodes;
pub mod nova;
pub mod runs;

use std::fmt;

/// All faults, grouped by what they affect.
pub const GROUPS: [(&str, &[Fault]); 9] = [
    ("What a node, a role or a data plane is described by", nodes::FAULTS),
    ("Between a run and its host", hosts::FAULTS),
    ("Machines: what is asked for", machines::ASKED),
    ("Machines: what becomes of them", machines::FATES),
    ("Cells and computes", cells::FAULTS),
    ("Nova's API", nova::API),
    ("What nova reports of hosts, their drain and their removal", nova::HOSTS),
    ("Runs made by hand", runs::FAULTS),
    ("Networks of guests", guests::FAULTS),
];

/// A fault, and what the user reads about it.
#[derive(Debug)]
pub struct Fault {
    /// A short name, used in the names of its namespace and transcript.
    pub name: &'static str,
    /// The cause, as one sentence.
    pub done: &'static str,
    /// The kind of the object that the user describes, which is one that a user wrote.
    pub kind: &'static str,
    /// Its name.
    pub object: &'static str,
    /// Kind and name of another object that reports the same, if any.
    pub also: Option<(&'static str, &'static str)>,
    /// The affected object, the cause, and the next command or edit; `NAMESPACE` stands for the
    /// test's namespace.
    pub words: [&'static str; 3],
    /// The status that tools compute for the described object.
    pub kstatus: Kstatus,
}

impl Fault {
    /// What the faults of an object have in common that is being reconciled.
    const fn of(kind: &'static str, object: &'static str) -> Self {
        let (words, kstatus) = ([""; 3], Kstatus::InProgress);
        Self { name: "", done: "", kind, object, also: None, words, kstatus }
    }
}

/// The status of an object for `helm --wait`, Flux, Argo CD and others.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kstatus {
    /// It is being reconciled.
    InProgress,
    /// It needs action by the user.
    Failed,
    /// It matches its spec.
    Current,
    /// It is being deleted.
    Terminating,
}

impl fmt::Display for Kstatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}
