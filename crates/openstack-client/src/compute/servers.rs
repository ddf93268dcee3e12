//! Servers on a host.

use hyper::body::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};

use super::pages::{Entry, Page};
use crate::error::Error;
use crate::footprint::Footprint;
use crate::response::parsed;
use crate::text::{self, footprint};

/// A server, of whatever project.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
pub struct Server {
    /// Its UUID.
    #[serde(deserialize_with = "text::id")]
    pub id: String,
    /// Its name, which its project chooses: one line of at most 255 bytes.
    #[serde(deserialize_with = "text::word")]
    pub name: String,
    /// Its status, as users see it: `ACTIVE`, `SHUTOFF`, `ERROR`.
    #[serde(deserialize_with = "text::word")]
    pub status: String,
    /// What is being done to it, for instance `migrating`; `None` when nothing is.
    #[serde(default, rename = "OS-EXT-STS:task_state")]
    #[serde(deserialize_with = "text::word_or_none")]
    pub task_state: Option<String>,
    /// What it is at rest: `active`, `stopped`, `paused`, `error`.
    #[serde(rename = "OS-EXT-STS:vm_state", deserialize_with = "text::word")]
    pub vm_state: String,
    /// Whether it has a config drive.
    #[serde(default, rename = "config_drive", deserialize_with = "has_word")]
    pub has_config_drive: bool,
}

/// Deserializes whether a word is there: of a config drive nova says `True` or nothing, and takes any
/// word for true itself.
fn has_word<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    Ok(!text::word_or_empty(from)?.is_empty())
}

/// A server of which only the id is read.
#[derive(Deserialize)]
struct ServerId {
    #[serde(deserialize_with = "text::id")]
    id: String,
}

#[derive(Deserialize)]
struct Servers<T> {
    servers: Vec<T>,
    #[serde(default)]
    servers_links: Vec<Link>,
}

#[derive(Deserialize)]
struct Link {
    rel: String,
}

impl Footprint for Server {
    const PLURAL: &'static str = "servers";

    fn footprint(&self) -> usize {
        let texts = [&self.id, &self.name, &self.status, &self.vm_state].into_iter();
        let texts = texts.chain(&self.task_state);
        size_of::<Self>() + texts.map(|it| footprint(it)).sum::<usize>()
    }
}

impl Entry for Server {
    fn id(&self) -> &str {
        &self.id
    }
}

/// The id of a server.
impl Entry for String {
    fn id(&self) -> &str {
        self
    }
}

/// Returns the servers of a page with their states.
pub(crate) fn servers_of(body: &Bytes) -> Result<Page<Server>, Error> {
    page(body, |it: Server| it)
}

/// Returns the ids of the servers of a page.
pub(crate) fn server_ids_of(body: &Bytes) -> Result<Page<String>, Error> {
    page(body, |it: ServerId| it.id)
}

/// Returns a page, which is the last one unless nova links the next one.
fn page<T: DeserializeOwned, E>(body: &Bytes, entry: impl Fn(T) -> E) -> Result<Page<E>, Error> {
    let Servers { servers, servers_links } = parsed::<Servers<T>>(body)?;
    let entries: Vec<E> = servers.into_iter().map(entry).collect();
    let has_next = servers_links.iter().any(|it| it.rel == "next");
    Ok(Page { is_last: entries.is_empty() || !has_next, entries })
}
