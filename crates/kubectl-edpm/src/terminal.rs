//! Where a command writes: what was asked for, and what is said about it.

use std::io::Write;

use crate::color::Paint;

/// Where text goes.
pub struct Terminal<'a> {
    /// What was asked for.
    pub out: &'a mut dyn Write,
    /// What is said about it.
    pub err: &'a mut dyn Write,
    /// Colours of what was asked for.
    pub paint: Paint,
}
