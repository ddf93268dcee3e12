//! Variables by which a user disables the check of hosts' own ssh keys.
//!
//! That is allowed, because some hosts are reached in special ways, and a condition reports it.

use api::conditions::ConditionDraft;
use api::shared::AnyMap;
use serde_json::Value;

use crate::condition_catalog::{self, ConditionSpec};
use crate::reasons;

/// Condition type: the keys of hosts are checked.
pub const HOST_KEYS_CHECKED: &str = "HostKeysChecked";

/// The condition's entry in the catalog.
pub const CONDITION: ConditionSpec = condition_catalog::condition(
    HOST_KEYS_CHECKED,
    "Never said: the condition is absent unless variables turn the check of hosts' own ssh keys off, or, \
     of a run, ssh's arguments or files. `Ready` does not depend on it.",
    &[&[reasons::HOST_KEY_CHECKING_OFF]],
);

/// Variables of Ansible's connection plugins, and the value that disables the check.
const SWITCHES: [(&str, bool); 6] = [
    ("ansible_host_key_checking", false),
    ("ansible_libssh_host_key_auto_add", true),
    ("ansible_libssh_host_key_checking", false),
    ("ansible_paramiko_host_key_auto_add", true),
    ("ansible_paramiko_host_key_checking", false),
    ("ansible_ssh_host_key_checking", false),
];
/// The variables with options of ssh, scp and sftp.
const OPTIONS: [&str; 5] = [
    "ansible_scp_extra_args",
    "ansible_sftp_extra_args",
    "ansible_ssh_args",
    "ansible_ssh_common_args",
    "ansible_ssh_extra_args",
];

/// Returns the condition if any variable disables the check; `place` says where they are set.
pub fn condition<'a>(
    variables: impl IntoIterator<Item = &'a AnyMap>,
    place: &str,
) -> Option<ConditionDraft> {
    let names: std::collections::BTreeSet<&str> = variables
        .into_iter()
        .flatten()
        .filter(|it| is_off(it.0, it.1))
        .map(|it| it.0.as_str())
        .collect();
    if names.is_empty() {
        return None;
    }
    let names = names.into_iter().collect::<Vec<_>>().join(", ");
    let text = format!(
        "Keys of hosts are not checked, for {place} have {names}: any machine that answers at the \
         address of a host is taken for it. Take it out, or keep it knowingly."
    );
    Some(reasons::HOST_KEY_CHECKING_OFF.condition(HOST_KEYS_CHECKED, text))
}

fn is_off(name: &str, value: &Value) -> bool {
    let switch = SWITCHES.iter().find(|it| it.0 == name);
    switch.is_some_and(|it| truth(value) == Some(it.1))
        || OPTIONS.contains(&name) && value.as_str().is_some_and(trusts_anybody)
}

/// Returns the boolean that Ansible reads a value as; `None` when it is not a boolean.
fn truth(value: &Value) -> Option<bool> {
    let text = match value {
        Value::String(text) => text.trim().to_lowercase(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Null | Value::Array(_) | Value::Object(_) => return None,
    };
    match text.as_str() {
        "y" | "yes" | "on" | "1" | "true" | "t" => Some(true),
        "n" | "no" | "off" | "0" | "false" | "f" => Some(false),
        _ => None,
    }
}

/// Returns whether arguments let ssh accept an unknown key.
///
/// Of an option that is given twice ssh uses the first. What is quoted for another program, such as
/// a bastion's ssh, is not an option of this one.
fn trusts_anybody(arguments: &str) -> bool {
    let words = shlex::split(arguments).unwrap_or_default();
    let mut follows_o = false;
    for word in words.iter().map(|it| it.to_lowercase()) {
        let option =
            if std::mem::take(&mut follows_o) { Some(word.as_str()) } else { attached(&word) };
        let Some(option) = option else { continue };
        if option.is_empty() {
            follows_o = true;
        } else if let Some(value) = value_of(option) {
            return ["no", "off", "false", "accept-new"].contains(&value);
        }
    }
    false
}

/// Returns what follows the `o` of an option word, as in `-vo` or `-oName=value`; `None` without
/// it.
fn attached(word: &str) -> Option<&str> {
    let letters = word.strip_prefix('-')?;
    let (before, option) = letters.split_once('o')?;
    before.chars().all(|it| it.is_ascii_alphanumeric()).then_some(option)
}

/// Returns the value of `StrictHostKeyChecking`; `None` when it is another option.
fn value_of(option: &str) -> Option<&str> {
    let is_between = |it: char| it.is_whitespace() || "='\"\\".contains(it);
    let rest = option.trim_start_matches(is_between).strip_prefix("stricthostkeychecking")?;
    Some(rest.trim_matches(is_between))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn names(vars: Value) -> String {
        let vars: AnyMap = serde_json::from_value(vars).unwrap();
        condition([&vars], "vars").map(|it| it.message).unwrap_or_default()
    }

    #[test]
    fn variables_that_turn_the_check_of_host_keys_off_are_named() {
        for (name, value) in [
            ("ansible_host_key_checking", json!(false)),
            ("ansible_host_key_checking", json!("No")),
            ("ansible_ssh_host_key_checking", json!(0)),
            ("ansible_paramiko_host_key_auto_add", json!("yes")),
            ("ansible_ssh_common_args", json!("-J bastion -o StrictHostKeyChecking=no")),
            ("ansible_ssh_common_args", json!("-o 'stricthostkeychecking off'")),
            ("ansible_ssh_extra_args", json!("-oStrictHostKeyChecking=\"accept-new\" -v")),
            ("ansible_ssh_args", json!("-o StrictHostKeyChecking=no -o StrictHostKeyChecking=yes")),
            (
                "ansible_ssh_args",
                json!("-S StrictHostKeyChecking=yes -vo StrictHostKeyChecking=no"),
            ),
        ] {
            let reported = names(json!({ name: value }));
            assert!(
                reported.contains(&format!("vars have {name}: ")),
                "{name} {value}: {reported}"
            );
        }
    }

    #[test]
    fn a_bastion_turns_nothing_off() {
        for (name, value) in [
            ("ansible_host_key_checking", json!(true)),
            ("ansible_host_key_checking", json!("{{ checked }}")),
            ("ansible_ssh_common_args", json!("-o ProxyCommand='ssh -W %h:%p bastion'")),
            ("ansible_ssh_common_args", json!("-o StrictHostKeyChecking=yes -o X=no")),
            ("ansible_ssh_common_args", json!("-o StrictHostKeyChecking=ask")),
            (
                "ansible_ssh_common_args",
                json!(
                    "-o ProxyCommand=\"ssh -o StrictHostKeyChecking=no -W %h:%p bastion\" \
                     -o StrictHostKeyChecking=yes"
                ),
            ),
            ("ansible_ssh_common_args", json!(null)),
            ("note", json!("StrictHostKeyChecking=no")),
        ] {
            assert_eq!(names(json!({ name: value.clone() })), "", "{name} {value}");
        }
    }
}
