//! `vinelift`: the command line.
//!
//! One file per subcommand; what they share is in `options` (arguments), `inputs` (tensors from files),
//! `failure` (exit status) and `plain` (text for a terminal). Results go to stdout, everything else to stderr.
//!
//! Invariants: the process ends with status 0, 1 (with `error: …` on stderr) or 2 (usage), whatever the
//! files hold; a reader that closes the pipe is no error.

mod bench;
mod compare;
mod completions;
mod dump;
mod explore;
mod failure;
mod formats;
mod generate;
mod image_file;
mod info;
mod inputs;
mod jpeg;
mod ops;
mod options;
mod plain;
mod progress;
mod run;
mod save;
mod suggest;
mod test;

use clap::{CommandFactory, Parser, Subcommand};
use failure::Failure;
use plain::{Plain, plain};
use std::io::{self, BufWriter, Write};
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;

/// Runs OpenVINO IR models as native code, and shows every stage on the way there.
#[derive(Parser)]
#[command(name = "vinelift", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Run(run::Args),
    Bench(bench::Args),
    Generate(generate::Args),
    Test(test::Args),
    Dump(dump::Args),
    Explore(explore::Args),
    Info(info::Args),
    Save(save::Args),
    Ops(ops::Args),
    Completions(completions::Args),
}

/// Deep models recurse: more than the system gives the main thread.
const STACK: usize = 64 << 20;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // If stderr cannot be written either, there is nowhere to report it.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    panic::set_hook(Box::new(|panic| {
        report(&format!("internal error: {panic}"))
    }));
    let command = || {
        let mut out = Plain(BufWriter::new(io::stdout().lock()));
        let done = execute(cli.command, &mut out);
        // A command that fails may have printed results before.
        let flushed = out.flush().map_err(Failure::from);
        done.and(flushed)
    };
    // Not on another thread: glibc gets its memory from the system page by page.
    let result = panic::catch_unwind(AssertUnwindSafe(|| stacker::grow(STACK, command)));
    match result {
        // The hook has reported it.
        Err(_) => ExitCode::FAILURE,
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(failure)) if failure.is_closed_pipe() => ExitCode::SUCCESS,
        Ok(Err(failure)) => {
            report(&failure.to_string());
            ExitCode::from(failure.status())
        }
    }
}

fn execute(command: Command, out: &mut dyn Write) -> Result<(), Failure> {
    match command {
        Command::Run(args) => run::run(&args, out),
        Command::Bench(args) => bench::run(&args, out),
        Command::Generate(args) => generate::run(&args, out),
        Command::Test(args) => test::run(&args, out),
        Command::Dump(args) => dump::run(&args, out),
        Command::Explore(args) => explore::run(&args, out),
        Command::Info(args) => info::run(&args, out),
        Command::Save(args) => save::run(&args),
        Command::Ops(args) => ops::run(&args, out),
        Command::Completions(args) => completions::run(&args, &mut Cli::command(), out),
    }
}

/// `error: …` on stderr.
fn report(message: &str) {
    let message = message.strip_prefix("error: ").unwrap_or(message);
    // If stderr cannot be written either, there is nowhere to report it.
    let _ = writeln!(io::stderr(), "error: {}", plain(message));
}
