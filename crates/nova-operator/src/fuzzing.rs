//! Bodies of the fuzz targets of this crate; see `fuzz/` and docs/development.md.
//!
//! They are compiled only for the fuzzer and for tests, which run them on the committed corpus.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use api::conditions::printable;
use api::nova::{ExternalCompute, ExternalComputeSpec};
use futures::FutureExt as _;
use jiff::{SignedDuration, Timestamp};
use kube::core::DynamicObject;
use kube::core::admission::AdmissionReview;
use nova_config::oslo::{self, Entry, LIST_LIMIT, Release, Text};
use nova_config::release::Chosen;
use nova_config::transport_url::{Broker, TransportUrl};
use operator_runtime::webhook::Request;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::admission::caches::AdmissionCaches;
use crate::admission::cell::{of_node, of_role};
use crate::admission::{defaulted, validate_compute};
use crate::cell::probe::HostOutcome;
use crate::cell::probe::amqp::login::login;
use crate::cell::probe::keystone::{is_version_3, version_url};
use crate::compute::audit::condition::Audited;
use crate::compute::audit::report;
use crate::compute::audit::report::LastAudit;
use crate::compute::audit::request::{AuditPolicy, AuditRequest};
use crate::images::Images;
use crate::shared_caches::SharedCaches;

/// A fuzz target: its name, and the function that runs it on an input.
pub type Target = (&'static str, fn(&[u8]));

/// The targets of this crate.
pub const TARGETS: &[Target] = &[
    ("admission", admission),
    ("amqp", amqp),
    ("audit", audit_report),
    ("nova_keystone", nova_keystone),
    ("oslo", oslo_text),
    ("transport_url", transport_url),
];

/// Maximum size in bytes of a message about an option: names are truncated, and the rest is ours.
const MESSAGE: usize = 2048;

/// Maximum number of options to evaluate in one input.
const JUDGED: usize = 16;

/// Reads what an audit reports of a host, and makes the condition from it.
pub fn audit_report(data: &[u8]) {
    let verdict = report::read(&String::from_utf8_lossy(data), "n0");
    let compute = ExternalCompute::new("n0", ExternalComputeSpec::default());
    let policy = AuditPolicy { interval: SignedDuration::from_hours(1), repairs: false };
    let (uid, name, created) = (String::new(), String::new(), Timestamp::UNIX_EPOCH);
    let last = LastAudit { uid, name, created, is_after_deployment: false, verdict };
    let request = AuditRequest::Audit(policy);
    let audited = Audited { request, last: Some(last), playbooks: Vec::new() };
    let condition = audited
        .condition(&compute, "kubectl", Timestamp::UNIX_EPOCH)
        .expect("audits are requested");
    assert!(condition.message.len() <= MESSAGE);
    assert_eq!(printable(&condition.message), condition.message);
    assert!(!condition.message.contains('\n'));
}

/// Parses the options of a compute, renders and parses them again, and evaluates them.
pub fn oslo_text(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (entries, errors) = oslo::parse(&text);
    let n_read = entries.len() + errors.len();
    let n_lines = text.split(['\n', '\r']).count();
    assert!(n_read <= n_lines, "more than there is");
    // Behind a whitespace character other than these two, what looks like a header or a comment is
    // a name.
    let is_writable = |it: &Entry| !it.key.starts_with(['[', '#', ';']);
    let entries: Vec<Entry> = entries.into_iter().filter(is_writable).collect();
    let again = oslo::parse(&oslo::render(&entries));
    assert_eq!(again.1, [], "what is written cannot be read");
    let plain = |it: &[Entry]| {
        let plain = |it: &Entry| (it.section.clone(), it.key.clone(), it.value.clone());
        it.iter().map(plain).collect::<Vec<_>>()
    };
    assert_eq!(plain(&again.0), plain(&entries), "no round trip");
    let faults = oslo::faults(&text);
    assert_eq!(faults.first.len() + faults.n_more, errors.len());
    assert!(faults.first.len() <= LIST_LIMIT);
    faults.first.iter().for_each(|it| fit(&it.message));
    let texts = [Text { source: oslo::FIELD, text: &text }];
    // Each unknown option is compared with all options of a release: use one release and few
    // options.
    let releases: Vec<Option<Release>> = Release::all().map(Some).chain([None]).collect();
    let release = releases.get(text.len() % releases.len()).copied().flatten();
    if entries.len() > JUDGED {
        return;
    }
    let conditions = oslo::warnings(&texts, &[], release, LIST_LIMIT);
    assert_eq!(
        oslo::warnings(&texts, &[], release, LIST_LIMIT),
        conditions,
        "two answers to one question"
    );
    assert!(conditions.first.len() == LIST_LIMIT || conditions.n_more == 0);
    assert!(conditions.first.len() <= LIST_LIMIT);
    conditions.first.iter().for_each(|it| fit(&it.message));
}

/// Asserts that a message is short, and that its condition holds no control characters.
fn fit(message: &str) {
    assert!(message.len() <= MESSAGE, "{} bytes", message.len());
    let shown = printable(message);
    assert!(!shown.contains(|it: char| it != '\n' && it.is_control()), "{shown:?}");
}

/// Parses the `transport_url` of a cell's Secret.
pub fn transport_url(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let parsed = TransportUrl::parse(&text);
    assert_eq!(TransportUrl::parse(&text), parsed, "two answers to one question");
    match parsed {
        Ok(url) => {
            assert!(!url.brokers.is_empty() && (1..=255).contains(&url.virtual_host.len()));
            for broker in &url.brokers {
                assert!(!broker.host.is_empty() && broker.port > 0);
                assert!(!broker.user.is_empty() || text.contains('%'), "no user logs in");
                assert_eq!(format!("{broker:?}"), format!("Broker({})", broker.address()));
            }
        }
        Err(fault) => {
            let is_whole = text.len() > 40 && fault.to_string().contains(&*text);
            assert!(!is_whole, "the URL is reported");
        }
    }
}

/// Runs a login against the bytes that a server sends.
pub fn amqp(data: &[u8]) {
    let broker =
        Broker { host: "h".into(), port: 5672, user: "nova".into(), password: "hunter2".into() };
    let outcome = |data| {
        let mut stream = Server { sends: data, n_heard: 0 };
        // The login never has to wait: the server has already sent everything.
        let login = login(&mut stream, &broker, "cell1").now_or_never();
        (login, stream.n_heard)
    };
    let (login, n_heard) = outcome(data);
    assert_eq!(outcome(data).0, login, "two answers to one question");
    assert!(n_heard < 1024, "{n_heard} bytes are sent");
    let Some(login) = login else { return assert!(data.is_empty(), "it hangs") };
    let message = HostOutcome { address: broker.address(), login }.to_string();
    assert!(message.len() <= 1024, "{} bytes", message.len());
    assert!(!printable(&message).contains("hunter2"), "a password is reported");
}

/// A server that has already sent its bytes and reads everything from the client.
struct Server<'a> {
    sends: &'a [u8],
    n_heard: usize,
}

impl AsyncRead for Server<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let (now, later) = self.sends.split_at(self.sends.len().min(buffer.remaining()));
        buffer.put_slice(now);
        self.sends = later;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Server<'_> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.n_heard += bytes.len();
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Parses the `keystoneAuthURL` in the first line, and the response in the rest of the input.
pub fn nova_keystone(data: &[u8]) {
    let at = data.iter().position(|it| *it == b'\n').unwrap_or(data.len());
    let text = String::from_utf8_lossy(&data[..at]);
    // A fragment is dropped, together with everything behind it.
    if let Some(url) = version_url(&text).filter(|_| !text.contains('#')) {
        assert_eq!(version_url(&url.to_string()), Some(url), "another URL at the second look");
    }
    let _ = is_version_3(data.get(at + 1..).unwrap_or_default());
}

/// Answers an admission review of an object that this operator's webhooks validate.
pub fn admission(data: &[u8]) {
    let Ok(review) = serde_json::from_slice::<AdmissionReview<DynamicObject>>(data) else { return };
    let Ok(request): Result<Request, _> = review.try_into() else { return };
    let images = Images {
        nova_compute: "a/compute:1".into(),
        nova_libvirt: "a/libvirt:1".into(),
        ansible_ee: "a/runner:1".into(),
    };
    let chosen = [Chosen::Release(Release::newest()), Chosen::Unknown("zed".into())];
    for chosen in chosen.iter().map(Some).chain([None]) {
        let known = AdmissionCaches::default();
        let unsynced = [of_node(&request, &known), of_role(&request, &known)];
        known.lead(SharedCaches::default());
        let reported = [of_node(&request, &known), of_role(&request, &known)];
        let of_compute =
            [defaulted(&request, &images), validate_compute(&request, |_| chosen.cloned())];
        for decision in unsynced.into_iter().chain(reported).chain(of_compute) {
            assert!(decision.allowed || !decision.message.is_empty(), "refused without a word");
            let reported = decision.warnings.iter().chain([&decision.message]);
            let n_bytes: usize = reported.clone().map(String::len).sum();
            assert!(n_bytes <= 64 * 1024, "{n_bytes} bytes are reported");
            let is_odd = |it: char| it != '\n' && it.is_control();
            assert!(
                !reported.clone().any(|it| it.contains(is_odd)),
                "a terminal obeys it: {decision:?}"
            );
        }
    }
}

#[cfg(test)]
#[path = "../../../fuzz/corpus.rs"]
mod corpus;
