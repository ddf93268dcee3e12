//! The message in a service's error response.

use api::conditions::one_line;
use serde_json::Value;

/// How many bytes of a server's message are repeated.
pub(crate) const MESSAGE_LIMIT: usize = 512;
/// How many bytes of an error response are parsed: it is one message.
const LARGEST_ERROR: usize = 64 * 1024;
/// The message of a response that has none.
const NO_MESSAGE: &str = "no reason";

/// Returns a server's message in one line.
///
/// Keystone answers `{"error": {"code", "title", "message"}}`, nova `{"<kind>": {"code",
/// "message"}}`, placement `{"errors": [{"status", "title", "detail"}]}`, neutron
/// `{"NeutronError": {"type", "message", "detail"}}`. A response of any other form comes from
/// another kind of server, and nothing of it is repeated.
pub(crate) fn message(body: &[u8]) -> String {
    let packed: Option<Value> =
        (body.len() <= LARGEST_ERROR).then(|| serde_json::from_slice(body).ok()).flatten();
    let text = packed.as_ref().and_then(text_of).unwrap_or_default();
    let line = one_line(text, MESSAGE_LIMIT);
    if line.is_empty() { NO_MESSAGE.to_owned() } else { line }
}

fn text_of(packed: &Value) -> Option<&str> {
    let fields = packed.as_object().filter(|it| it.len() == 1)?;
    let (kind, error) = fields.iter().next()?;
    match kind.as_str() {
        "errors" => {
            let first = error.get(0)?;
            first.get("status")?.as_u64()?;
            first.get("detail")?.as_str()
        }
        "NeutronError" => {
            error.get("type")?.as_str()?;
            error.get("message")?.as_str()
        }
        _ => {
            error.get("code")?.as_u64()?;
            error.get("message")?.as_str()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_keystone_and_nova_are_found() {
        let keystone =
            br#"{"error": {"code": 403, "title": "Forbidden", "message": "You are not"}}"#;
        assert_eq!(message(keystone), "You are not");
        let nova = br#"{"forbidden": {"code": 403, "message": "Policy doesn't\n allow it"}}"#;
        assert_eq!(message(nova), "Policy doesn't allow it");
    }

    #[test]
    fn messages_of_placement_and_neutron_are_found() {
        let placement = br#"{"errors": [{"status": 409, "title": "Conflict",
            "detail": "There was a conflict.\n\n Provider in use  ", "request_id": "req-1"}]}"#;
        assert_eq!(message(placement), "There was a conflict. Provider in use");
        let neutron = br#"{"NeutronError": {"type": "AgentNotFound",
            "message": "Agent a0 could not be found", "detail": ""}}"#;
        assert_eq!(message(neutron), "Agent a0 could not be found");
    }

    #[test]
    fn nothing_of_another_server_is_repeated() {
        for body in [
            "<html>secret</html>",
            "{}",
            r#"{"a": 1, "b": 2}"#,
            r#"{"a": {"message": "x"}}"#,
            r#"{"errors": []}"#,
            r#"{"errors": [{"detail": "x"}]}"#,
            r#"{"errors": "x"}"#,
            r#"{"errors": [{"status": 404, "detail": 1}]}"#,
            r#"{"NeutronError": "x"}"#,
            r#"{"NeutronError": {"message": "x"}}"#,
        ] {
            assert_eq!(message(body.as_bytes()), NO_MESSAGE);
        }
    }
}
