//! The dataplane-operator process.

use std::process::ExitCode;

use clap::Parser;
use dataplane_operator::args::Args;
use dataplane_operator::operator::run;

#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    let common = args.common.clone();
    operator_runtime::runtime::exit_code(&common, run(args)).await
}
