//! `cargo xtask`: the project's own commands, one module each.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool prints")]

use std::process::ExitCode;

use clap::Parser;

mod bare_metal;
mod bench;
#[cfg(test)]
mod changelog;
mod chart;
#[cfg(test)]
mod chart_options;
mod cluster;
mod codegen;
mod controlplane;
mod demo;
#[cfg(test)]
mod functions;
mod fuzz;
mod guests;
mod hosts;
mod images;
mod journey;
mod lab;
mod lines;
mod machines;
#[cfg(test)]
mod modules;
mod mutants;
mod packages;
mod paths;
mod plans;
#[cfg(test)]
mod plays;
mod proof;
mod release;
#[cfg(test)]
mod security;
mod sh;
mod sim;
mod sources;
mod test;
#[cfg(test)]
mod tidy;
mod upgrade;
#[cfg(test)]
mod words;
mod yaml;

/// The project's own commands.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Command {
    /// Measure what the operators cost, and assert the limits.
    Bench(bench::Args),
    /// Write the files that are generated from the code.
    Codegen(codegen::Args),
    /// Build the images and push them to a registry.
    Images(images::Args),
    /// Start the OpenStack control plane in the lab, and wait until each part answers.
    ControlPlane,
    /// Show the main job: two hosts, two cells, nova-compute with the user's configuration.
    Demo(demo::Args),
    /// Give random inputs to the parsers of what comes from outside.
    Fuzz(fuzz::Args),
    /// Show how a snippet of nova's configuration reaches a running nova-compute, step by step.
    Journey(journey::Args),
    /// A real Kubernetes on this machine.
    Lab(lab::Args),
    /// Count the lines of each crate, and those of its tests.
    Lines(lines::Args),
    /// See whether the tests catch the changes of the code that the docs name.
    Mutants(mutants::Args),
    /// See whether the operators decide in each test what they decided before a rebuild.
    Plans(plans::Args),
    /// Run the scenarios that are too long for each run of the tests, and write when each was seen.
    Proof(proof::Args),
    /// A simulated cluster: a real API server and the operators, without kubelet and hosts.
    Sim(sim::Args),
    /// Run the project's tests, whole or in parts.
    Test(test::Args),
}

fn main() -> ExitCode {
    let result = match Command::parse() {
        Command::Bench(args) => bench::main(&args),
        Command::Codegen(args) => codegen::main(&args),
        Command::Images(args) => images::main(&args),
        Command::ControlPlane => controlplane::main(),
        Command::Demo(args) => demo::main(&args),
        Command::Fuzz(args) => fuzz::main(&args),
        Command::Journey(args) => journey::main(&args),
        Command::Lab(args) => lab::main(&args),
        Command::Lines(args) => lines::main(&args),
        Command::Mutants(args) => mutants::main(&args),
        Command::Plans(args) => plans::main(&args),
        Command::Proof(args) => proof::main(&args),
        Command::Sim(args) => sim::main(&args),
        Command::Test(args) if test::main(&args) => Ok(()),
        Command::Test(_) => return ExitCode::FAILURE,
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let causes: Vec<String> = error.chain().map(ToString::to_string).collect();
            eprintln!("error: {}", causes.join("\n  because: "));
            ExitCode::FAILURE
        }
    }
}
