//! Simulates an operator that crashes before or after any of its calls, for tests: the final state
//! must not depend on the crash.

use std::fmt::Debug;

/// The point of a crash: at which call, and whether the call takes effect.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Death {
    /// The number of the call, from 0.
    pub call: usize,
    /// Whether the call takes effect before the crash.
    pub is_after: bool,
}

/// The operator crashed.
#[derive(Debug)]
pub struct Died;

/// Counts the calls of an operator that crashes at most once.
#[derive(Debug, Default)]
pub struct Life {
    /// The point of the crash, if any.
    pub death: Option<Death>,
    /// The number of calls so far.
    pub n_calls: usize,
}

impl Life {
    /// Runs a call; returns an error at the point of the crash.
    pub fn call(&mut self, write: impl FnOnce()) -> Result<(), Died> {
        self.begin()?;
        write();
        self.end()
    }

    /// Begins a call; returns an error if the crash is before it.
    pub fn begin(&mut self) -> Result<(), Died> {
        self.n_calls += 1;
        self.goes_on(false)
    }

    /// Ends the last call, which has taken effect; returns an error if the crash is after it.
    pub fn end(&self) -> Result<(), Died> {
        self.goes_on(true)
    }

    fn goes_on(&self, is_after: bool) -> Result<(), Died> {
        let now = Death { call: self.n_calls - 1, is_after };
        if self.death == Some(now) { Err(Died) } else { Ok(()) }
    }
}

/// Asserts that a sequence of `n_calls` calls ends in `expected`, wherever a crash interrupts it.
///
/// # Panics
///
/// When an end differs.
pub fn ends_alike<T: Debug + PartialEq>(expected: &T, n_calls: usize, end: impl Fn(Death) -> T) {
    for call in 0..n_calls {
        for is_after in [false, true] {
            let found = end(Death { call, is_after });
            assert_eq!(&found, expected, "call {call}, after it: {is_after}");
        }
    }
}
