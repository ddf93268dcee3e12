//! The output streams of a command.

use std::io::Write;

use crate::color::Paint;

/// The output streams of a command.
pub struct Terminal<'a> {
    /// Standard output: the result.
    pub out: &'a mut dyn Write,
    /// Standard error: messages about the result.
    pub err: &'a mut dyn Write,
    /// The colours of standard output.
    pub paint: Paint,
}
