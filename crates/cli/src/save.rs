//! `vinelift save`: writes a model again.

use crate::failure::Failure;
use crate::options::ModelArgs;
use std::path::PathBuf;
use vinelift::Core;

/// Read a model and write it again as IR version 11
#[derive(clap::Args)]
#[command(after_help = "Example:
  vinelift save model.xml copy.xml    (writes copy.xml and copy.bin)")]
pub(crate) struct Args {
    #[command(flatten)]
    model: ModelArgs,
    /// The .xml file to write; the constants go to the .bin file beside it
    #[arg(value_name = "OUT.xml")]
    out: PathBuf,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    if args
        .out
        .extension()
        .is_none_or(|extension| extension != "xml")
    {
        return Err(Failure::Usage(format!(
            "`{}` must end in .xml",
            args.out.display()
        )));
    }
    args.model.read(&Core::new()?)?.save(&args.out)?;
    Ok(())
}
