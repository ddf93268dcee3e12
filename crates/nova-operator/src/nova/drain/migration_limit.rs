//! How many servers of a drained host migrate at a time.

use std::num::NonZeroUsize;

use nova_config::annotations::MAX_MIGRATIONS;

use crate::group::inherited_annotation::repeated;

/// How many where no annotation says it.
const DEFAULT: NonZeroUsize = NonZeroUsize::new(2).unwrap();
/// The largest number that an annotation may name.
const MOST: usize = 100;

/// Returns how many servers of a host migrate at a time, from an annotation and the object that has
/// it, or without one; an error is the message about an illegal value.
pub fn most_migrations(annotation: Option<(&str, String)>) -> Result<NonZeroUsize, String> {
    let Some((text, origin)) = annotation else { return Ok(DEFAULT) };
    let number = text.parse::<NonZeroUsize>().ok().filter(|it| it.get() <= MOST);
    number.ok_or_else(|| {
        format!(
            "Annotation {MAX_MIGRATIONS} of {origin} is \"{}\", and nothing was changed: set it to \
             a number from 1 to {MOST}, or remove it.",
            repeated(text)
        )
    })
}
