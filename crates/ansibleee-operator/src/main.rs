//! The ansibleee-operator process.

use std::process::ExitCode;

use ansibleee_operator::args::Args;
use ansibleee_operator::operator;
use clap::Parser;

#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    let common = args.common.clone();
    operator_runtime::runtime::exit_code(&common, operator::run(args)).await
}
