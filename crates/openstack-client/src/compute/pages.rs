//! Lists of nova that are read page by page.

use hyper::body::Bytes;

use crate::client::Client;
use crate::error::{Error, Fault};

/// How many pages are read: more would be a service that never ends its list.
const PAGES: usize = 50;

/// An entry of a list, with the id that is the marker of the page behind it.
pub(crate) trait Entry {
    /// What the list has, for messages.
    const PLURAL: &'static str;

    /// Returns its id, which was checked to fit into a path.
    fn id(&self) -> &str;
}

/// A part of a list.
#[derive(Debug)]
pub(crate) struct Page<T> {
    pub entries: Vec<T>,
    /// Whether nova says that none follows.
    pub is_last: bool,
}

/// Reads a list to its end; `list` is the path with a query.
pub(super) async fn read<T: Entry>(
    client: &Client,
    list: &str,
    of: impl Fn(&Bytes) -> Result<Page<T>, Error>,
) -> Result<Vec<T>, Fault> {
    let mut all: Vec<T> = Vec::new();
    for _ in 0..PAGES {
        let marker = all.last().map(|it| format!("&marker={}", it.id())).unwrap_or_default();
        let page = client.get(&format!("{list}{marker}"), &of).await?;
        all.extend(page.entries);
        if page.is_last {
            return Ok(all);
        }
    }
    let what = format!("more than {PAGES} pages of {}", T::PLURAL);
    Err(client.fault(Error::TooLarge(what)))
}
