//! Lists of nova that are read page by page.

use hyper::body::Bytes;
use operator_runtime::answer_memory::Held;

use crate::client::Client;
use crate::error::{Error, Fault};
use crate::footprint::Footprint;

/// How many pages are read: more would be a service that never ends its list.
const PAGES: usize = 50;
/// Maximum size of all pages of a list in bytes: 20,000 hypervisors have some 60 MB.
const BYTES: usize = 64 * 1024 * 1024;

/// An entry of a list, with the id that is the marker of the page behind it.
pub(crate) trait Entry: Footprint {
    /// Returns its id, which was checked to fit into a path.
    fn id(&self) -> &str;

    /// Whether it is returned.
    fn is_of_interest(&self) -> bool {
        true
    }
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
) -> Result<Held<T>, Fault> {
    let mut all = client.held();
    let (mut n_bytes, mut marker) = (0, String::new());
    let too_large = |what| client.fault(Error::TooLarge(what));
    for _ in 0..PAGES {
        let counted = |body: &Bytes| {
            n_bytes += body.len();
            of(body)
        };
        let Page { mut entries, is_last } = client.get(&format!("{list}{marker}"), counted).await?;
        if n_bytes > BYTES {
            let mib = BYTES >> 20;
            return Err(too_large(format!("more than {mib} MiB of {}", T::PLURAL)));
        }
        if let Some(last) = entries.last() {
            marker = format!("&marker={}", last.id());
        }
        entries.retain(T::is_of_interest);
        client.add(&mut all, entries)?;
        if is_last {
            return Ok(all);
        }
    }
    Err(too_large(format!("more than {PAGES} pages of {}", T::PLURAL)))
}
