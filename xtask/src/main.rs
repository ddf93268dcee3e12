//! `cargo xtask`: the project's own commands, each in a module of its own.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool prints")]

use clap::Parser;

mod codegen;
mod lab;
mod paths;
mod sh;

/// The project's own commands.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Command {
    /// Write the files that are generated from the code.
    Codegen(codegen::Args),
    /// A real Kubernetes on this machine.
    Lab(lab::Args),
}

fn main() -> anyhow::Result<()> {
    match Command::parse() {
        Command::Codegen(args) => codegen::main(&args),
        Command::Lab(args) => lab::main(&args),
    }
}
