//! Errors of the commands, with kubectl's messages and exit codes.

use std::error::Error as StdError;
use std::io;
use std::process::ExitCode;

use kube::config::KubeconfigError;
use kube::core::Status;

use crate::args::Command;

/// An error of a command.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An error with the plugin's own message.
    #[error("error: {0}")]
    Told(String),
    /// An error response of the API server.
    #[error("Error from server ({}): {}", reason(.0), .0.message)]
    Server(Box<Status>),
    /// The server, as `host:port`, refused the connection.
    #[error(
        "The connection to the server {0} was refused - did you specify the right host or port?"
    )]
    Refused(String),
    /// The API server cannot be reached for another reason.
    #[error("Unable to connect to the server: {0}")]
    Connection(String),
    /// The output could not be written.
    #[error("error: {0}")]
    Output(#[from] io::Error),
}

/// The result of a command.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Creates an error with the plugin's own message.
    pub fn message(text: impl Into<String>) -> Self {
        Self::Told(text.into())
    }

    /// Returns the server's `NotFound` error for a node.
    pub fn no_such_node(name: &str) -> Self {
        let kind = "openstackdataplanenodes.dataplane.openstack.org";
        let text = format!("{kind} \"{name}\" not found");
        Self::Server(Status::failure(&text, "NotFound").with_code(404).boxed())
    }

    /// Converts an error of the client; `server` is the `host:port` that it connected to.
    pub fn of_client(error: &kube::Error, server: &str) -> Self {
        if let kube::Error::Api(status) = error {
            return Self::Server(status.clone());
        }
        let causes = causes(error);
        let is_refused = |it: &io::Error| it.kind() == io::ErrorKind::ConnectionRefused;
        if causes.iter().filter_map(|it| it.downcast_ref()).any(is_refused) {
            return Self::Refused(server.to_owned());
        }
        Self::Connection(root_cause(error))
    }

    /// Converts an error of reading the kubeconfig, with kubectl's messages.
    pub fn of_kubeconfig(error: &KubeconfigError) -> Self {
        if let KubeconfigError::LoadContext(name) = error {
            return Self::message(format!("context \"{name}\" does not exist"));
        }
        if let KubeconfigError::ReadConfig(cause, path) = error
            && cause.kind() == io::ErrorKind::NotFound
        {
            return Self::message(format!("stat {}: no such file or directory", path.display()));
        }
        Self::message(format!("kubeconfig: {error}"))
    }

    /// Whether the server has no such object or no such kind (404).
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Server(status) if status.code == 404)
    }

    /// Whether the reader of the output closed the pipe, which is not a failure.
    pub fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::Output(it) if it.kind() == io::ErrorKind::BrokenPipe)
    }

    /// Returns the exit code. `diff` and `trace` reserve 1 for their result and fail with 2.
    pub fn exit_code(&self, command: &Command) -> ExitCode {
        let judges = matches!(command, Command::Diff { .. } | Command::Trace(_));
        if judges { ExitCode::from(2) } else { ExitCode::FAILURE }
    }
}

/// Returns the reason of a response, `Unknown` if it is empty.
fn reason(status: &Status) -> &str {
    if status.reason.is_empty() { "Unknown" } else { &status.reason }
}

/// Returns the text of the last source of an error.
pub(crate) fn root_cause(error: &(dyn StdError + 'static)) -> String {
    causes(error).last().map(ToString::to_string).unwrap_or_default()
}

/// Returns an error followed by its sources, the root cause last.
fn causes<'a>(error: &'a (dyn StdError + 'static)) -> Vec<&'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |&it| it.source()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_of_the_server_reads_as_kubectls() {
        let text = "openstackdataplanenodes.dataplane.openstack.org \"x\" not found";
        let status = Status::failure(text, "NotFound").with_code(404).boxed();
        let error = Error::of_client(&kube::Error::Api(status), "h:1");
        assert_eq!(error.to_string(), format!("Error from server (NotFound): {text}"));
        assert!(error.is_not_found());
    }

    #[test]
    fn a_server_that_does_not_listen_is_named() {
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        let error = Error::of_client(&kube::Error::Service(refused.into()), "127.0.0.1:6443");
        let text = error.to_string();
        assert!(text.starts_with("The connection to the server 127.0.0.1:6443 was refused"));
    }

    #[test]
    fn a_context_and_a_file_that_are_not_there_are_told_as_kubectl_does() {
        let error = Error::of_kubeconfig(&KubeconfigError::LoadContext("prod".into()));
        assert_eq!(error.to_string(), "error: context \"prod\" does not exist");
        let missing = io::Error::from(io::ErrorKind::NotFound);
        let error = Error::of_kubeconfig(&KubeconfigError::ReadConfig(missing, "/no/file".into()));
        assert_eq!(error.to_string(), "error: stat /no/file: no such file or directory");
    }
}
