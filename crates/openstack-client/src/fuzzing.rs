//! Bodies of the fuzz targets of this crate; see `fuzz/` and docs/development.md.
//!
//! They are compiled only for tests, which run them on the committed corpus, and for the fuzzer.

use api::conditions::printable;
use http::StatusCode;
use hyper::body::Bytes;

use crate::error::{Error, Fault, Service};
use crate::message::MESSAGE_LIMIT;
use crate::placement::Provider;
use crate::text::{is_id, is_segment};
use crate::{Hypervisor, compute, microversion, network, placement};

/// A fuzz target: its name, and the function that takes an input.
pub type Target = (&'static str, fn(&[u8]));

/// The targets of this crate.
pub const TARGETS: &[Target] = &[("nova", nova_answer)];

/// A response of nova, placement or neutron: its status in the first line, then its body, parsed as
/// each kind of response.
pub fn nova_answer(data: &[u8]) {
    let at = data.iter().position(|it| *it == b'\n').unwrap_or(data.len());
    let (line, body) = (&data[..at], data.get(at + 1..).unwrap_or_default());
    let status = std::str::from_utf8(line).ok().and_then(|it| it.parse::<StatusCode>().ok());
    let body = Bytes::copy_from_slice(body);
    let refused = Error::of_response(status.unwrap_or_default(), &body);
    let errors = refused.into_iter().chain(lists_of_nova(&body)).chain(others(&body));
    for error in errors {
        let message = Fault::of(Service::Compute, error).to_string();
        assert!(message.len() <= MESSAGE_LIMIT + 256, "{} bytes", message.len());
        let message = printable(&message);
        assert!(!message.contains(|it: char| it.is_control()), "{message:?}");
    }
}

/// Parses a body as each list of nova, and returns the errors.
fn lists_of_nova(body: &Bytes) -> impl Iterator<Item = Error> {
    let servers = compute::servers_of(body).map(|page| {
        for server in page.entries {
            assert!(is_id(&server.id), "{}", server.id);
            words_are_short([server.name, server.status, server.vm_state]);
            words_are_short(server.task_state);
        }
    });
    let migrations = compute::migrations_of(body).map(|page| {
        for migration in page.entries {
            assert!(is_id(&migration.id) && is_id(&migration.server_id), "{migration:?}");
            words_are_short([migration.status, migration.type_]);
            words_are_short(migration.source.into_iter().chain(migration.dest));
        }
    });
    let services = compute::services_of(body).map(|services| {
        assert!(services.iter().all(|it| it.host.len() <= 255), "{services:?}");
    });
    let hypervisors = compute::hypervisors_of(body).map(|page| {
        let is_short =
            |it: &Hypervisor| it.service.host.len() + it.hypervisor_hostname.len() <= 510;
        assert!(page.entries.iter().all(is_short), "{page:?}");
    });
    let errors = [
        services.err(),
        hypervisors.err(),
        compute::hypervisor_of(body).map(|it| assert!(is_id(&it.id), "{}", it.id)).err(),
        servers.err(),
        migrations.err(),
        compute::aggregates_with(body, "one").map(words_are_short).err(),
    ];
    errors.into_iter().flatten()
}

/// Parses a body as each response of placement and neutron, and as a description of versions.
fn others(body: &Bytes) -> impl Iterator<Item = Error> {
    let agents = network::agents_of(body).map(|agents| {
        for agent in agents {
            assert!(is_segment(&agent.id), "{}", agent.id);
            words_are_short([agent.agent_type, agent.binary]);
        }
    });
    let consumers = placement::consumers_of(body).map(|consumers| {
        assert!(consumers.iter().all(|it| is_id(it)), "{consumers:?}");
    });
    let named = |provider: Provider| {
        assert!(is_id(&provider.uuid), "{}", provider.uuid);
        words_are_short([provider.name]);
    };
    let errors = [
        placement::provider_of(body).map(named).err(),
        placement::provider_in(body).map(|it| it.map(named)).err(),
        consumers.err(),
        placement::allocations_of(body).and_then(|it| it.without("b0")).err(),
        agents.err(),
    ];
    let services = Service::ALL.into_iter().skip(1);
    let versions: Vec<_> = services.filter_map(|it| microversion::check(it, body).err()).collect();
    errors.into_iter().flatten().chain(versions)
}

/// Asserts that what is kept of others' words is one line, and bounded.
fn words_are_short(words: impl IntoIterator<Item = String>) {
    for word in words {
        assert!(word.len() <= 255, "{} bytes", word.len());
        assert!(!word.contains(|it: char| it.is_control()), "{word:?}");
    }
}

#[cfg(test)]
#[path = "../../../fuzz/corpus.rs"]
mod corpus;
