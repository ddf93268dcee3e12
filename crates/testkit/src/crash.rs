//! An operator that dies before or after any of its calls, for tests: whatever it does then, it must end as one that lived.

use std::fmt::Debug;

/// Where one who asks dies: at which of its writes, and whether the write is acted upon.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Death {
    /// The number of the write, from 0.
    pub call: usize,
    /// Whether it is acted upon.
    pub is_after: bool,
}

/// It died.
#[derive(Debug)]
pub struct Died;

/// The writes of one who dies once at most.
#[derive(Debug, Default)]
pub struct Life {
    /// Where it dies.
    pub death: Option<Death>,
    /// How many writes there were.
    pub n_calls: usize,
}

impl Life {
    /// One write.
    pub fn call(&mut self, write: impl FnOnce()) -> Result<(), Died> {
        self.begin()?;
        write();
        self.end()
    }

    /// A call begins.
    pub fn begin(&mut self) -> Result<(), Died> {
        self.n_calls += 1;
        self.goes_on(false)
    }

    /// The call that began last was acted upon.
    pub fn end(&self) -> Result<(), Died> {
        self.goes_on(true)
    }

    fn goes_on(&self, is_after: bool) -> Result<(), Died> {
        let now = Death { call: self.n_calls - 1, is_after };
        if self.death == Some(now) { Err(Died) } else { Ok(()) }
    }
}

/// That a story with so many calls ends as expected wherever it is interrupted by a death.
pub fn ends_alike<T: Debug + PartialEq>(expected: &T, n_calls: usize, end: impl Fn(Death) -> T) {
    for call in 0..n_calls {
        for is_after in [false, true] {
            let found = end(Death { call, is_after });
            assert_eq!(&found, expected, "call {call}, after it: {is_after}");
        }
    }
}
