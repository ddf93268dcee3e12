//! The program `kubectl-edpm`, which kubectl starts for `kubectl edpm`.

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;

use clap::Parser as _;
use kubectl_edpm::app;
use kubectl_edpm::args::{self, Args};
use kubectl_edpm::color::Paint;
use kubectl_edpm::terminal::Terminal;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => return args::rejected(&error, std::env::args_os()),
    };
    let (mut out, mut err) = (std::io::stdout(), std::io::stderr());
    // no-color.org: any value disables colours, unless it is empty.
    let is_plain = std::env::var_os("NO_COLOR").is_some_and(|it| !it.is_empty());
    let paint = Paint::new(out.is_terminal() && !is_plain);
    let ended = app::run(&args, &mut Terminal { out: &mut out, err: &mut err, paint }).await;
    match ended {
        Ok(code) => code,
        Err(error) if error.is_closed_pipe() => ExitCode::SUCCESS,
        Err(error) => {
            // If standard error is closed too, the message cannot be delivered.
            let _ = writeln!(err, "{error}");
            error.exit_code(&args.command)
        }
    }
}
