//! Command-line arguments with kubectl's conventions: flags, their short forms, and the exit codes
//! of wrong usage.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

/// Text below the help of the program: the first commands to try.
const FIRST: &str = "\
Begin with:
  kubectl edpm -n openstack status                     how far all hosts are
  kubectl edpm -n openstack explain --short NODE       what one waits for, down to the cause
kubectl takes flags only behind the plugin's name. NODE is the name of an OpenStackDataPlaneNode, or of a host of a node set.";

/// Text below the help of `trace`: examples and exit codes.
const OPTIONS: &str = "\
Examples:
  kubectl edpm trace nova.conf libvirt cpu_models --node edpm-compute-0
  kubectl edpm trace nova.conf debug --node edpm-compute-0 --ask
Ends with 0 where the option is in force as far as was asked, with 1 where it is not or that is unknown, with 2 on an error.";

/// Hosts outside the cluster: how far they are, what they wait for, where their options come from.
#[derive(Debug, Parser)]
#[command(name = "kubectl-edpm", bin_name = "kubectl edpm", version, after_help = FIRST)]
pub struct Args {
    /// Which cluster.
    #[command(flatten)]
    pub access: Access,
    /// What is asked.
    #[command(subcommand)]
    pub command: Command,
}

/// Which cluster and namespace are meant, as kubectl has it.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Access {
    /// The namespace; that of the context when absent.
    #[arg(short, long, global = true, value_name = "NAME")]
    pub namespace: Option<String>,
    /// The context of the kubeconfig; its current one when absent.
    #[arg(long, global = true, value_name = "NAME")]
    pub context: Option<String>,
    /// The kubeconfig file; those of KUBECONFIG or ~/.kube/config when absent.
    #[arg(long, global = true, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
}

/// What is asked.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// How far each node is: role, phase, service, readiness.
    Status(Status),
    /// What a node waits for: node, role, services, runs, compute, cell, each with its conditions.
    Explain {
        /// The node.
        #[arg(value_name = "NODE")]
        node: String,
        /// Only what waits for what, down to the cause.
        #[arg(long)]
        short: bool,
    },
    /// The Ansible output that touched a node: of the run that is under way, else of the last one.
    Logs(Logs),
    /// What a deployment would change on a node; nothing runs, and secret values are masked.
    ///
    /// Ends with 1 where it would change something, with more than 1 where that cannot be determined.
    Diff {
        /// The node.
        #[arg(value_name = "NODE")]
        node: String,
    },
    /// Where an option of nova.conf comes from, step by step, and how far it has come.
    #[command(
        override_usage = "kubectl edpm trace --node NODE [--ask] nova.conf [SECTION] OPTION",
        after_help = OPTIONS
    )]
    Trace(Trace),
    /// Asks for another attempt of what failed, by the annotation that the messages name.
    Retry {
        /// A node, or a run, which stands for the nodes that failed in it.
        #[arg(value_name = "NODE|RUN")]
        name: String,
        /// Also of what has not failed.
        #[arg(long)]
        force: bool,
    },
    /// Writes what a shell needs to complete `kubectl-edpm`.
    Completion {
        /// The shell.
        #[arg(value_parser = shells())]
        shell: Shell,
    },
    /// Tells kubectl's completion what can follow.
    #[command(name = "__complete", hide = true)]
    Complete {
        /// The words so far, the last one unfinished.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
}

/// Takes those of the shells that kubectl completes in too.
fn shells() -> impl TypedValueParser<Value = Shell> {
    PossibleValuesParser::new(["bash", "zsh", "fish"]).try_map(|it| it.parse::<Shell>())
}

/// What `logs` shows.
#[derive(Debug, clap::Args)]
pub struct Logs {
    /// The node.
    #[arg(value_name = "NODE")]
    pub node: String,
    /// Only runs of this service.
    #[arg(long, value_name = "SERVICE")]
    pub service: Option<String>,
    /// Goes on until the run ends.
    #[arg(short, long)]
    pub follow: bool,
}

/// What `trace` follows.
#[derive(Debug, clap::Args)]
pub struct Trace {
    /// nova.conf, or the one of its files that is to set it; the section, which is `[DEFAULT]` when left out; the option.
    #[arg(value_names = ["FILE", "[SECTION] OPTION"], num_args = 2..=3, required = true)]
    pub option: Vec<String>,
    /// The node.
    #[arg(long, value_name = "NODE")]
    pub node: String,
    /// Also asks the running nova-compute and the files that it loaded, by a run that only reads.
    #[arg(long)]
    pub ask: bool,
    /// A file of yours that the option begins in: whether the cluster has its value is reported too.
    #[arg(long, value_name = "FILE")]
    pub snippet: Option<PathBuf>,
    /// Manifests that kustomize generated: whether they have the option is reported too.
    #[arg(long, value_name = "FILE")]
    pub generated: Option<PathBuf>,
}

/// What `status` shows.
#[derive(Debug, clap::Args)]
pub struct Status {
    /// Only these nodes; all when absent.
    #[arg(value_name = "NODE")]
    pub nodes: Vec<String>,
    /// Nodes of all namespaces.
    #[arg(short = 'A', long)]
    pub all_namespaces: bool,
    /// Goes on, with a line for each change.
    #[arg(short, long)]
    pub watch: bool,
    /// How it is shown; a table when absent.
    #[arg(short, long, value_enum)]
    pub output: Option<Output>,
}

/// How a status is shown.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum Output {
    /// JSON.
    Json,
    /// YAML.
    Yaml,
    /// A table with address, cell, run and message.
    Wide,
}

/// Prints why the arguments were rejected, or the text of `--help` and `--version`, and returns the
/// exit code.
///
/// kubectl exits with 1 where clap would exit with 2. `diff` and `trace` reserve 1 for their result
/// and exit with 2.
pub fn rejected(error: &clap::Error, words: impl IntoIterator<Item = OsString>) -> ExitCode {
    if !error.use_stderr() {
        // A closed pipe is not a failure of `--help`.
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    let text = error.render().to_string();
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let _ = write!(std::io::stdout(), "{text}");
        return ExitCode::SUCCESS;
    }
    let _ = write!(std::io::stderr(), "{text}");
    let judges = words.into_iter().any(|it| it == "diff" || it == "trace");
    if judges { ExitCode::from(2) } else { ExitCode::FAILURE }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_arguments_do_not_contradict_each_other() {
        Args::command().debug_assert();
    }

    #[test]
    fn wrong_words_of_a_command_that_judges_are_no_judgement() {
        for (words, code) in [
            (&["kubectl-edpm", "trace", "nova.conf"][..], 2),
            (&["kubectl-edpm", "diff"], 2),
            (&["kubectl-edpm", "explain"], 1),
        ] {
            let error = Args::try_parse_from(words).unwrap_err();
            let words = words.iter().map(OsString::from);
            assert_eq!(rejected(&error, words), ExitCode::from(code), "{error}");
        }
    }

    #[test]
    fn the_help_says_where_to_begin_and_that_the_section_may_be_left_out() {
        let help = Args::command().render_help().to_string();
        assert!(help.contains("kubectl edpm -n openstack explain --short NODE"), "{help}");
        let mut all = Args::command();
        let trace = all.find_subcommand_mut("trace").unwrap().render_help().to_string();
        assert!(trace.contains("<FILE> <[SECTION] OPTION>"), "{trace}");
        assert!(!trace.contains("[OPTION]..."), "{trace}");
        assert!(trace.contains("Ends with 0 where the option is in force"), "{trace}");
    }

    #[test]
    fn flags_are_taken_before_and_after_the_command() {
        for words in [
            &["kubectl-edpm", "-n", "openstack", "status", "-w", "-o", "wide"][..],
            &["kubectl-edpm", "status", "--namespace=openstack", "-wowide"],
        ] {
            let args = Args::try_parse_from(words).unwrap();
            assert_eq!(args.access.namespace.as_deref(), Some("openstack"), "{words:?}");
            let Command::Status(status) = args.command else { panic!("{words:?}") };
            assert!(status.watch && status.output == Some(Output::Wide), "{words:?}");
        }
    }
}
