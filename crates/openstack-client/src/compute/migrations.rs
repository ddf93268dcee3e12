//! Migrations of servers from and to a host: live and cold ones, resizes, evacuations.

use hyper::body::Bytes;
use serde::Deserialize;

use super::pages::{Entry, Page};
use crate::error::Error;
use crate::footprint::Footprint;
use crate::response::parsed;
use crate::text::{self, footprint};

/// The statuses of migrations at their end, which are those that nova itself does not count as in
/// progress. `finished` is none of them: a resize is to be confirmed or reverted then.
const FINAL: [&str; 7] =
    ["cancelled", "completed", "confirmed", "done", "error", "failed", "reverted"];

/// A migration of a server.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
pub struct Migration {
    /// Its UUID.
    #[serde(rename = "uuid", deserialize_with = "text::id")]
    pub id: String,
    /// The UUID of its server.
    #[serde(rename = "instance_uuid", deserialize_with = "text::id")]
    pub server_id: String,
    /// How far it is, in nova's words; empty where nova has none.
    #[serde(default, deserialize_with = "text::word_or_empty")]
    pub status: String,
    /// Its kind: `live-migration`, `migration`, `resize` or `evacuation`.
    #[serde(rename = "migration_type", deserialize_with = "text::word")]
    pub type_: String,
    /// The host that the server leaves; `None` where nova has none.
    #[serde(default, rename = "source_compute", deserialize_with = "text::word_or_none")]
    pub source: Option<String>,
    /// The host to which the server goes; `None` while the scheduler has not chosen it.
    #[serde(default, rename = "dest_compute", deserialize_with = "text::word_or_none")]
    pub dest: Option<String>,
}

#[derive(Deserialize)]
struct Migrations {
    migrations: Vec<Migration>,
}

impl Footprint for Migration {
    const PLURAL: &'static str = "migrations";

    fn footprint(&self) -> usize {
        let texts = [&self.id, &self.server_id, &self.status, &self.type_].into_iter();
        let texts = texts.chain(&self.source).chain(&self.dest);
        size_of::<Self>() + texts.map(|it| footprint(it)).sum::<usize>()
    }
}

impl Entry for Migration {
    fn id(&self) -> &str {
        &self.id
    }

    fn is_of_interest(&self) -> bool {
        self.is_open()
    }
}

impl Migration {
    /// Returns whether it is not at its end; an unknown status is none.
    fn is_open(&self) -> bool {
        !FINAL.contains(&self.status.as_str())
    }
}

/// Returns the migrations of a page, open or not.
///
/// Nova leaves out hidden ones after it has cut a page, and links no next page then; so the last
/// page is the first empty one.
pub(crate) fn migrations_of(body: &Bytes) -> Result<Page<Migration>, Error> {
    let entries = parsed::<Migrations>(body)?.migrations;
    Ok(Page { is_last: entries.is_empty(), entries })
}
