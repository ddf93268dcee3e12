//! Host aggregates.

use hyper::body::Bytes;
use serde::Deserialize;

use crate::error::Error;
use crate::response::parsed;
use crate::text;

#[derive(Deserialize)]
struct Aggregates {
    aggregates: Vec<Aggregate>,
}

#[derive(Deserialize)]
struct Aggregate {
    #[serde(deserialize_with = "text::word")]
    name: String,
    hosts: Vec<String>,
}

/// Returns the names of the aggregates of a response that list a host.
pub(crate) fn aggregates_with(body: &Bytes, host: &str) -> Result<Vec<String>, Error> {
    let all = parsed::<Aggregates>(body)?.aggregates;
    let with = all.into_iter().filter(|it| it.hosts.iter().any(|it| it == host));
    Ok(with.map(|it| it.name).collect())
}
