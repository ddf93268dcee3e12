//! Answers what our reader of oslo.config's format makes of texts and values, a line of JSON for each
//! line of JSON: `tests/oslo` compares the answers with oslo.config's own.
#![allow(clippy::print_stdout, reason = "its answers are its output")]

use std::collections::BTreeMap;
use std::io::{BufRead as _, stdin};

use nova_config::oslo::{self, Release, Text, Type};
use serde::Deserialize;
use serde_json::{Value, json};

/// A question.
#[derive(Deserialize)]
#[serde(untagged)]
enum Question {
    /// The findings on a text, by the options of a release.
    Judge { release: String, text: String },
    /// What is read from a text.
    Read { text: String },
    /// Whether a type takes a value.
    Take { r#type: Type, value: String },
}

fn main() -> anyhow::Result<()> {
    for line in stdin().lock().lines() {
        println!("{}", answer(serde_json::from_str(&line?)?)?);
    }
    Ok(())
}

fn answer(question: Question) -> anyhow::Result<Value> {
    Ok(match question {
        Question::Judge { release, text } => {
            let release = Release::named(&release)
                .ok_or_else(|| anyhow::anyhow!("{release} is no release"))?;
            let text = Text { source: "text", text: &text };
            let found = oslo::warnings(&[text], &[], Some(release), usize::MAX).first;
            let told = |it: oslo::Finding| json!([it.line, it.message]);
            found.into_iter().map(told).collect()
        }
        Question::Read { text } => read(&text),
        Question::Take { r#type, value } => json!(r#type.takes(&value)),
    })
}

fn read(text: &str) -> Value {
    let (entries, errors) = oslo::parse(text);
    if let Some(first) = errors.first() {
        return json!({ "line": first.line, "reason": format!("{:?}", first.reason) });
    }
    let mut sections: BTreeMap<String, BTreeMap<String, Vec<String>>> = BTreeMap::new();
    for it in entries {
        let options = sections.entry(it.section).or_default();
        options.entry(it.key).or_default().push(it.value);
    }
    json!({ "sections": sections })
}
