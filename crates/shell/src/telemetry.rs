//! Sets up the log: text or JSON lines on standard error, never a request's or an answer's body.

use std::io::IsTerminal as _;

use tracing_subscriber::{EnvFilter, filter::Directive, fmt, prelude::*};

use crate::{
    args::LogFormat,
    error::{Error, Result},
};

/// Libraries whose finer levels print bodies or nothing of use.
const QUIET: [&str; 4] = ["kube_client=info", "hyper=info", "hyper_util=info", "rustls=info"];

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
    for quiet in QUIET {
        let directive: Directive = quiet.parse().map_err(|it| invalid(Box::new(it)))?;
        let target = quiet.split('=').next().unwrap_or_default();
        // Only lowers: whoever asks for less than info of a library gets less.
        if !level.contains(&format!("{target}=")) && is_verbose(level) {
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
        assert!(text.contains("kube_client=info") && text.contains("trace"), "{text}");
        assert_eq!(filter("warn").unwrap().to_string(), "warn");
    }

    #[test]
    fn a_level_that_does_not_exist_is_refused_with_its_text() {
        let error = filter("shell=loud").unwrap_err();
        assert!(error.to_string().contains("shell=loud"), "{error}");
    }
}
