//! Pages of nova's lists.

use serde_json::{Value, json};

use super::rejection::refused;
use crate::answer::{Answer, Query};

/// The largest number of entries in one page: nova's default of `max_limit`.
const LARGEST: usize = 1000;

/// A page of a list.
#[derive(Debug)]
pub(crate) struct Page {
    entries: Vec<Value>,
    /// The query of the next page, or `None` when this one has fewer entries than were requested.
    next: Option<String>,
}

impl Page {
    /// Cuts a page of all entries, each with its id; those that are `None` are left out after the
    /// page was cut. The error is the rejection of an unknown marker.
    pub(crate) fn of(all: Vec<(String, Option<Value>)>, query: &Query<'_>) -> Result<Self, Answer> {
        let asked = query.get("limit").and_then(|it| it.parse().ok()).unwrap_or(LARGEST);
        let limit = asked.min(LARGEST);
        let begin = match query.get("marker") {
            None => 0,
            Some(marker) => {
                let unknown = || refused(400, &format!("marker [{marker}] not found"));
                all.iter().position(|(id, _)| id == marker).ok_or_else(unknown)? + 1
            }
        };
        let shown: Vec<(String, Value)> = all
            .into_iter()
            .skip(begin)
            .take(limit)
            .filter_map(|(id, entry)| Some((id, entry?)))
            .collect();
        let last = shown.last().filter(|_| shown.len() == limit).map(|(id, _)| id.clone());
        let others: Vec<&str> =
            query.0.split('&').filter(|it| !it.starts_with("marker=")).collect();
        let next = last.map(|it| format!("{}&marker={it}", others.join("&")));
        Ok(Self { entries: shown.into_iter().map(|(_, entry)| entry).collect(), next })
    }

    /// Returns the response with the entries under `name`; `url` is that of the list.
    pub(crate) fn listed(self, name: &str, url: &str) -> Value {
        let mut body = json!({ name: self.entries });
        if let Some(query) = self.next {
            let link = json!({ "rel": "next", "href": format!("{url}?{query}") });
            body[format!("{name}_links")] = json!([link]);
        }
        body
    }
}
