//! Parses the output of `kubectl describe`: the conditions and Events of an object.

use anyhow::Result;

use crate::{cluster, run};

/// The conditions and Events of one object, as kubectl prints them.
#[derive(Clone, Debug, Default)]
pub struct Description {
    /// The lines of each condition.
    conditions: Vec<String>,
    events: Vec<Event>,
}

/// An Event without its age.
#[derive(Clone, Debug)]
struct Event {
    type_: String,
    reason: String,
    from: String,
    message: String,
}

impl Description {
    /// Describes an object; the result is empty when it does not exist.
    pub async fn of(namespace: &str, kind: &str, name: &str) -> Result<Self> {
        let kind = kind.to_lowercase();
        match run("kubectl", &["describe", "-n", namespace, &kind, name]).await {
            Ok(text) => Ok(Self::parse(&cluster::with_aliases(&text))),
            Err(error) if format!("{error:#}").contains("(NotFound)") => Ok(Self::default()),
            Err(error) => Err(error),
        }
    }

    fn parse(text: &str) -> Self {
        let lines = || text.lines();
        let of_status = lines().skip_while(|it| *it != "Status:");
        let after = of_status.skip_while(|it| it.trim_end() != "  Conditions:").skip(1);
        let mut conditions: Vec<String> = Vec::new();
        let mut is_open = false;
        // The fields of a condition are sorted, so `Type` is the last one.
        for line in after.take_while(|it| it.starts_with("    ")) {
            if !is_open {
                conditions.push(String::new());
            }
            if let Some(condition) = conditions.last_mut() {
                condition.push_str(line.trim_end());
                condition.push('\n');
            }
            is_open = !line.starts_with("    Type:");
        }
        let mut events: Vec<Event> = Vec::new();
        let table = lines().skip_while(|it| !it.starts_with("Events:")).skip(3);
        for line in table {
            match (Event::parse(line), events.last_mut()) {
                (Some(event), _) => events.push(event),
                // A further line of a message.
                (None, Some(last)) => last.message.push_str(&format!(" {}", line.trim())),
                (None, None) => {}
            }
        }
        Self { conditions, events }
    }

    /// Whether any condition or Event contains a word.
    pub fn mentions(&self, word: &str) -> bool {
        self.conditions.iter().any(|it| it.contains(word))
            || self.events.iter().any(|it| it.message.contains(word))
    }

    /// Whether one condition contains all words, and one Event does too.
    pub fn tells(&self, words: &[String]) -> bool {
        let has_all = |text: &str| words.iter().all(|it| text.contains(it));
        self.conditions.iter().any(|it| has_all(it))
            && self.events.iter().any(|it| has_all(&it.message))
    }

    /// Returns the conditions and Events that contain all words, without `Reconciling` and
    /// `Stalled`, which repeat `Ready` for tools.
    pub fn excerpt(&self, words: &[String]) -> String {
        let has_all = |text: &str| words.iter().all(|it| text.contains(it));
        let repeats = |it: &&String| {
            let type_ = it.lines().last().and_then(|it| it.split_whitespace().last());
            matches!(type_, Some("Reconciling" | "Stalled"))
        };
        let conditions = self.conditions.iter().filter(|it| has_all(it) && !repeats(it));
        let events = self.events.iter().filter(|it| has_all(&it.message));
        let mut text = "Conditions:\n".to_owned();
        text.extend(conditions.map(String::as_str));
        text.push_str("Events:\n");
        for Event { type_, reason, from, message } in events {
            text.push_str(&format!("  {type_}  {reason}  {from}  {message}\n"));
        }
        text
    }
}

impl Event {
    /// Parses a row of kubectl's table: type, reason, age, source and message.
    fn parse(line: &str) -> Option<Self> {
        let mut rest = line.strip_prefix("  ").filter(|it| !it.starts_with(' '))?;
        let mut columns = [""; 4];
        for column in &mut columns {
            let (value, after) = rest.split_once("  ")?;
            (*column, rest) = (value, after.trim_start());
        }
        let [type_, reason, _age, from] = columns.map(str::to_owned);
        Some(Self { type_, reason, from, message: rest.trim_end().to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
Name:         n0
Spec:
  Conditions:
    Type:  none of these
Status:
  Address:  192.0.2.1:22
  Conditions:
    Last Transition Time:  2026-01-01T00:00:00Z
    Message:               Secret key does not exist:  create it.
    Status:                False
    Type:                  Ready
    Last Transition Time:  2026-01-01T00:00:00Z
    Message:               Secret key does not exist:  create it.
    Status:                True
    Type:                  Reconciling
  Deploy:                  false
Events:
  Type     Reason             Age                From                Message
  ----     ------             ----               ----                -------
  Warning  SshSecretNotFound  1s (x2 over 9s)    dataplane-operator  Secret key does not exist:  create it.
  Normal   Ready              3m                 dataplane-operator  first
second
";

    #[test]
    fn conditions_and_events_are_found_and_nothing_else() {
        let found = Description::parse(TEXT);
        assert_eq!(found.conditions.len(), 2, "{found:?}");
        assert_eq!(found.events.len(), 2, "{found:?}");
        assert_eq!(found.events[1].message, "first second");
        assert!(found.mentions("Secret key") && !found.mentions("none of these"));
        let words = ["Secret key", "exist:  create it"].map(str::to_owned);
        assert!(found.tells(&words));
        assert!(!found.tells(&["first".to_owned()]), "no condition says so");
        let excerpt = found.excerpt(&words);
        let expected = "\
Conditions:
    Last Transition Time:  2026-01-01T00:00:00Z
    Message:               Secret key does not exist:  create it.
    Status:                False
    Type:                  Ready
Events:
  Warning  SshSecretNotFound  dataplane-operator  Secret key does not exist:  create it.
";
        assert_eq!(excerpt, expected);
    }

    #[test]
    fn an_object_without_events_has_none() {
        let text =
            TEXT.split_once("Events:").map(|(before, _)| format!("{before}Events:  <none>\n"));
        let found = Description::parse(&text.unwrap_or_default());
        assert_eq!((found.conditions.len(), found.events.len()), (2, 0));
    }
}
