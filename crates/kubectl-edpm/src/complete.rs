//! Shell completion for kubectl, which runs `kubectl_complete-edpm` with cobra's protocol.

use clap::builder::Str;
use clap::{Arg, Command, FromArgMatches as _};

use crate::args::Access;

/// cobra's directive `ShellCompDirectiveNoFileComp`: offer no file names.
const NO_FILES: &str = ":4";

/// What may replace the word under the cursor.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Next {
    /// One of these words, each with its description.
    Words(Vec<(String, String)>),
    /// The name of a node.
    Node,
}

/// Returns what may replace the last of the words.
pub fn next(command: &Command, words: &[String]) -> Next {
    let Some((last, before)) = words.split_last() else { return Next::Words(vec![]) };
    let (of, n_given) = reached(command, before);
    let flags =
        || of.get_arguments().chain(command.get_arguments().filter(|it| it.is_global_set()));
    if let Some(flag) = before.last().and_then(|it| value_of(flags(), it)) {
        return of_argument(flag);
    }
    if last.starts_with('-') {
        let named = flags().filter_map(|it| Some((format!("--{}", it.get_long()?), help(it))));
        return Next::Words(named.collect());
    }
    if of.has_subcommands() {
        let all = of.get_subcommands().filter(|it| !it.is_hide_set());
        return Next::Words(all.map(|it| (it.get_name().to_owned(), about(it))).collect());
    }
    let mut places = of.get_positionals();
    match places.nth(n_given).or_else(|| of.get_positionals().last()) {
        Some(place) => of_argument(place),
        None => Next::Words(vec![]),
    }
}

/// Renders completions as cobra's output lines, limited to words that start with `last`.
pub fn lines(words: &[(String, String)], last: &str) -> String {
    let chosen = words.iter().filter(|(word, _)| word.starts_with(last));
    let line = |(word, help): &(String, String)| {
        if help.is_empty() { format!("{word}\n") } else { format!("{word}\t{help}\n") }
    };
    chosen.map(line).collect::<Vec<_>>().concat() + NO_FILES + "\n"
}

/// Returns the cluster options among the words typed so far, which need not be a whole command.
pub fn access(command: Command, words: &[String]) -> Access {
    let words = ["kubectl-edpm"].into_iter().chain(words.iter().map(String::as_str));
    let found = command.ignore_errors(true).try_get_matches_from(words);
    found.and_then(|it| Access::from_arg_matches(&it)).unwrap_or_default()
}

/// Returns the subcommand that the words select, and how many of its positional arguments are
/// given.
fn reached<'a>(command: &'a Command, words: &[String]) -> (&'a Command, usize) {
    let (mut of, mut n_given) = (command, 0);
    let mut is_value = false;
    for word in words {
        if std::mem::take(&mut is_value) {
            continue;
        }
        if word.starts_with('-') {
            let globals = command.get_arguments().filter(|it| it.is_global_set());
            is_value = value_of(of.get_arguments().chain(globals), word).is_some();
        } else if let Some(found) = of.find_subcommand(word) {
            of = found;
        } else {
            n_given += 1;
        }
    }
    (of, n_given)
}

/// Returns the flag that the word names, or `None` when it takes no value.
fn value_of<'a>(mut flags: impl Iterator<Item = &'a Arg>, word: &str) -> Option<&'a Arg> {
    let is_named = |it: &&Arg| {
        let long = it.get_long().map(|it| format!("--{it}"));
        let short = it.get_short().map(|it| format!("-{it}"));
        [long, short].iter().flatten().any(|it| it == word)
    };
    flags.find(|it| is_named(it) && it.get_action().takes_values())
}

fn of_argument(argument: &Arg) -> Next {
    let is_node = |it: &str| it.starts_with("NODE");
    let names: Vec<&str> =
        argument.get_value_names().unwrap_or_default().iter().map(Str::as_str).collect();
    if names.first().is_some_and(|it| is_node(it)) {
        return Next::Node;
    }
    if names.first() == Some(&"FILE") && argument.is_positional() {
        return Next::Words(vec![("nova.conf".to_owned(), String::new())]);
    }
    let values = argument.get_possible_values();
    let value = |it: &clap::builder::PossibleValue| {
        let help = it.get_help().map(ToString::to_string);
        (it.get_name().to_owned(), help.unwrap_or_default())
    };
    Next::Words(values.iter().map(value).collect())
}

fn help(argument: &Arg) -> String {
    argument.get_help().map(ToString::to_string).unwrap_or_default()
}

fn about(command: &Command) -> String {
    command.get_about().map(ToString::to_string).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::args::Args;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    fn offered(text: &str) -> Vec<String> {
        match next(&Args::command(), &words(text)) {
            Next::Words(words) => words.into_iter().map(|it| it.0).collect(),
            Next::Node => vec!["<node>".to_owned()],
        }
    }

    #[test]
    fn commands_flags_values_and_nodes_are_offered_in_their_places() {
        let all = ["completion", "diff", "explain", "logs", "retry", "status", "trace"];
        for name in all {
            assert!(offered("").contains(&name.to_owned()), "{name}");
        }
        assert!(!offered("").contains(&"__complete".to_owned()));
        for place in ["explain ", "-n openstack logs e", "trace nova.conf debug --node ", "retry "]
        {
            assert_eq!(offered(place), ["<node>"], "{place}");
        }
        assert_eq!(offered("status -o "), ["json", "yaml", "wide"]);
        assert_eq!(offered("completion "), ["bash", "zsh", "fish"]);
        assert_eq!(offered("trace "), ["nova.conf"]);
        let flags = offered("logs n0 --");
        assert!(flags.contains(&"--follow".into()) && flags.contains(&"--context".into()));
    }

    #[test]
    fn kubectl_is_answered_in_cobras_way() {
        let words =
            [("logs".to_owned(), "Output".to_owned()), ("status".to_owned(), String::new())];
        assert_eq!(lines(&words, "l"), "logs\tOutput\n:4\n");
        assert_eq!(lines(&words, "s"), "status\n:4\n");
    }

    #[test]
    fn the_cluster_is_the_one_that_the_words_name() {
        let access = access(Args::command(), &words("-n openstack --context=prod logs "));
        assert_eq!(access.namespace.as_deref(), Some("openstack"));
        assert_eq!(access.context.as_deref(), Some("prod"));
        let behind = super::access(Args::command(), &words("logs -f --namespace=other --service "));
        assert_eq!(behind.namespace.as_deref(), Some("other"));
    }
}
