//! Sets up logging: text or JSON lines on standard error, never the body of a request or response.

use std::io::IsTerminal as _;

use tracing_subscriber::{EnvFilter, filter::Directive, fmt, prelude::*};

use crate::{
    args::LogFormat,
    error::{Error, Result},
};

/// Libraries whose finer log levels print nothing useful.
const QUIET: [&str; 3] = ["hyper=info", "hyper_util=info", "rustls=info"];
/// Logs a response that it cannot parse as a warning with the whole text, which may be a Secret.
/// The failure itself reaches this crate as an error and is logged.
const SILENT: &str = "kube_client=error";

/// Starts logging; `level` is a level or a list of directives.
pub fn init(format: LogFormat, level: &str) -> Result<()> {
    let layer = match format {
        LogFormat::Text => {
            let colored = std::io::stderr().is_terminal();
            fmt::layer().with_ansi(colored).with_writer(std::io::stderr).boxed()
        }
        LogFormat::Json => {
            fmt::layer().json().flatten_event(true).with_writer(std::io::stderr).boxed()
        }
    };
    tracing_subscriber::registry()
        .with(filter(level)?)
        .with(layer)
        .try_init()
        .map_err(|error| Error::process("logging was set up already", error))
}

fn filter(level: &str) -> Result<EnvFilter> {
    let invalid = |error| Error::process(format!("invalid log level {level:?}"), error);
    let mut filter = EnvFilter::builder().parse(level).map_err(|it| invalid(Box::new(it)))?;
    let libraries = QUIET.iter().filter(|_| is_verbose(level));
    for quiet in libraries.chain([&SILENT]) {
        let directive: Directive = quiet.parse().map_err(|it| invalid(Box::new(it)))?;
        let target = quiet.split('=').next().unwrap_or_default();
        // Only lowers the level: an explicit directive for a library takes precedence.
        if !level.contains(&format!("{target}=")) && level != "off" {
            filter = filter.add_directive(directive);
        }
    }
    Ok(filter)
}

fn is_verbose(level: &str) -> bool {
    let level = level.to_lowercase();
    level.contains("debug") || level.contains("trace")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_that_print_bodies_stay_quiet_when_all_else_is_traced() {
        let text = filter("trace").unwrap().to_string();
        assert!(text.contains("hyper=info") && text.contains("trace"), "{text}");
    }

    #[test]
    fn the_client_that_warns_with_whole_answers_does_not_warn_unless_it_is_asked_to() {
        for level in ["trace", "info", "warn", "info,operator_runtime=debug"] {
            let text = filter(level).unwrap().to_string();
            assert!(text.contains("kube_client=error"), "{level}: {text}");
        }
        assert_eq!(filter("off").unwrap().to_string(), "off");
        assert_eq!(filter("kube_client=warn").unwrap().to_string(), "kube_client=warn");
    }

    #[test]
    fn a_level_that_does_not_exist_is_refused_with_its_text() {
        let error = filter("operator_runtime=loud").unwrap_err();
        assert!(error.to_string().contains("operator_runtime=loud"), "{error}");
    }
}
