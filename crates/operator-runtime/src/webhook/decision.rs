//! The decision on an admission request, as plain data.

use api::conditions::printable;
use serde_json::{Value, json};

/// The decision of an admission handler.
#[derive(Clone, Debug, PartialEq)]
pub struct AdmissionDecision {
    /// Whether the request is allowed.
    pub allowed: bool,
    /// JSON Patch operations on the object; used only by mutating webhooks that allow.
    pub patches: Vec<Value>,
    /// Warnings shown to the requesting user, whether or not the request is allowed.
    pub warnings: Vec<String>,
    /// Why the request was denied.
    pub message: String,
    /// Whether it was denied only because the decision cannot be made at the moment.
    pub is_temporary: bool,
}

impl AdmissionDecision {
    /// Allows the request unchanged.
    pub fn allow() -> Self {
        Self {
            allowed: true,
            patches: vec![],
            warnings: vec![],
            message: String::new(),
            is_temporary: false,
        }
    }

    /// Denies the request; the message should name the object, the cause and the permitted
    /// alternative.
    pub fn deny(message: impl Into<String>) -> Self {
        Self { allowed: false, message: printable(&message.into()), ..Self::allow() }
    }

    /// Denies the request for now; clients that honour `Retry-After` retry by themselves.
    pub fn ask_again(message: impl Into<String>) -> Self {
        Self { is_temporary: true, ..Self::deny(message) }
    }

    /// Allows the request with a patch that turns `before` into `after`.
    pub fn replace(before: &Value, after: &Value) -> Self {
        Self { patches: difference(before, after), ..Self::allow() }
    }

    /// Adds a warning.
    #[must_use]
    pub fn warn(mut self, warning: impl Into<String>) -> Self {
        self.warnings.push(printable(&warning.into()));
        self
    }
}

/// Returns the JSON Patch that turns `before` into `after`; arrays are replaced as a whole.
pub fn difference(before: &Value, after: &Value) -> Vec<Value> {
    let mut patches = Vec::new();
    compare("", before, after, &mut patches);
    patches
}

fn compare(path: &str, before: &Value, after: &Value, patches: &mut Vec<Value>) {
    let (Value::Object(old), Value::Object(new)) = (before, after) else {
        if before != after {
            patches.push(json!({ "op": "replace", "path": path, "value": after }));
        }
        return;
    };
    for key in old.keys().filter(|it| !new.contains_key(*it)) {
        patches.push(json!({ "op": "remove", "path": below(path, key) }));
    }
    for (key, value) in new {
        match old.get(key) {
            Some(previous) => compare(&below(path, key), previous, value, patches),
            None => {
                patches.push(json!({ "op": "add", "path": below(path, key), "value": value }));
            }
        }
    }
}

/// Returns a JSON pointer one level deeper.
fn below(path: &str, key: &str) -> String {
    format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_holds_nothing_that_a_terminal_obeys() {
        let decision = AdmissionDecision::deny("spec.\u{1b}[2Jx is odd").warn("[a\u{202e}b] c\r");
        assert_eq!(decision.message, "spec.[2Jx is odd");
        assert_eq!(decision.warnings, ["[ab] c"]);
    }

    #[test]
    fn only_what_differs_is_patched() {
        let before = json!({ "spec": { "a": 1, "b": [1], "c": { "d": 2 } }, "kind": "X" });
        let after = json!({ "spec": { "a": 1, "b": [2], "c": { "d/e": 3 } }, "kind": "X" });
        let expected = [
            json!({ "op": "replace", "path": "/spec/b", "value": [2] }),
            json!({ "op": "remove", "path": "/spec/c/d" }),
            json!({ "op": "add", "path": "/spec/c/d~1e", "value": 3 }),
        ];
        assert_eq!(difference(&before, &after), expected);
        assert_eq!(difference(&after, &after), Vec::<Value>::new());
    }
}
