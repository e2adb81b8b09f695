//! `vinelift completions`: scripts for shells.

use crate::failure::Failure;
use clap_complete::Shell;
use std::io::Write;

/// Print the completions for a shell
#[derive(clap::Args)]
#[command(after_help = "Example:
  vinelift completions bash > ~/.local/share/bash-completion/completions/vinelift")]
pub(crate) struct Args {
    shell: Shell,
}

pub(crate) fn run(
    args: &Args,
    command: &mut clap::Command,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    // It panics if it cannot write, which it always can to memory.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, command, "vinelift", &mut script);
    Ok(out.write_all(&script)?)
}
