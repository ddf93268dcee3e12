//! Whether a Keystone answers at a URL, probed without credentials.

use http::{Request, StatusCode, Uri, header};
use operator_runtime::http_client::{HttpClient, HttpFault, is_base_url};

use super::deadline::DEADLINE;
use crate::cell::probe::keystone_fault::KeystoneFault;

/// Far above the size of a version document, which has a few hundred bytes.
const LARGEST_ANSWER: usize = 64 * 1024;

/// Requests the document of version 3, as every client of Keystone does first.
///
/// # Guarantees
/// Returns within [`DEADLINE`].
pub async fn keystone_answers(auth_url: &str, http: &HttpClient) -> Result<(), KeystoneFault> {
    let url = version_url(auth_url).ok_or(KeystoneFault::NotUrl)?;
    let request = Request::get(url)
        .header(header::ACCEPT, "application/json")
        .body(Vec::new().into())
        .map_err(|_| KeystoneFault::NotUrl)?;
    let answer = http.send(request, DEADLINE, LARGEST_ANSWER).await.map_err(of_web)?;
    if answer.status() == StatusCode::OK && is_version_3(answer.body()) {
        Ok(())
    } else {
        Err(KeystoneFault::NotKeystone(answer.status().as_u16()))
    }
}

fn of_web(fault: HttpFault) -> KeystoneFault {
    match fault {
        HttpFault::NotUrl => KeystoneFault::NotUrl,
        HttpFault::Unreachable(cause) => KeystoneFault::Unreachable(cause),
        HttpFault::NoMemory(left) => KeystoneFault::Unreachable(left.to_string()),
        HttpFault::Untrusted(cause) => KeystoneFault::Untrusted(cause),
        // A response that is too long or incomplete is not from Keystone.
        HttpFault::Cut(status) | HttpFault::TooLong(status) => KeystoneFault::NotKeystone(status),
    }
}

pub(crate) fn version_url(auth_url: &str) -> Option<Uri> {
    let base = auth_url.trim_end_matches('/');
    let url = if base.ends_with("/v3") { base.to_owned() } else { format!("{base}/v3") };
    if is_base_url(&url) { url.parse().ok() } else { None }
}

pub(crate) fn is_version_3(body: &[u8]) -> bool {
    let Ok(document) = serde_json::from_slice::<serde_json::Value>(body) else { return false };
    document
        .pointer("/version/id")
        .and_then(|it| it.as_str())
        .is_some_and(|it| it.starts_with("v3"))
}

#[cfg(test)]
mod tests {
    use super::{is_version_3, version_url};

    #[track_caller]
    fn check(auth_url: &str, expected: Option<&str>) {
        assert_eq!(version_url(auth_url).map(|it| it.to_string()).as_deref(), expected);
    }

    #[test]
    fn the_version_is_asked_below_the_auth_url() {
        check("http://10.0.0.1:5000", Some("http://10.0.0.1:5000/v3"));
        check("http://10.0.0.1:5000/", Some("http://10.0.0.1:5000/v3"));
        check("https://keystone/v3/", Some("https://keystone/v3"));
        check("https://host/identity", Some("https://host/identity/v3"));
        check("http://[fd00::1]:5000", Some("http://[fd00::1]:5000/v3"));
    }

    #[test]
    fn what_is_no_http_url_is_refused() {
        for text in [
            "",
            "keystone:5000",
            "ftp://h/",
            "http://",
            "http://h/?a=b",
            "http://h/#",
            "http://u:p@h",
            "/v3",
        ] {
            check(text, None);
        }
    }

    #[test]
    fn only_a_document_of_version_3_counts() {
        assert!(is_version_3(br#"{"version": {"id": "v3.14", "status": "stable"}}"#));
        assert!(!is_version_3(br#"{"version": {"id": "v2.0"}}"#));
        assert!(!is_version_3(b"<html>It works!</html>"));
    }
}
