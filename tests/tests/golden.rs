//! Every `.run` file at every level, and the nest of each.

use libtest_mimic::{Arguments, Trial};
use std::path::{Path, PathBuf};
use vinelift::{Core, Level};
use vinelift_tests::{Run, compare_golden, files, repository};

fn main() {
    let arguments = Arguments::from_args();
    let golden = repository().join("tests/golden");
    let mut trials = Vec::new();
    for path in files(&golden, "run") {
        let name = path
            .with_extension("")
            .strip_prefix(&golden)
            .unwrap_or(&path)
            .display()
            .to_string();
        for level in Level::ALL {
            let path = path.clone();
            trials.push(Trial::test(format!("{name} {}", level.name()), move || {
                let (core, run, model) = load(&path)?;
                Ok(run.check(&core, &model, level)?)
            }));
        }
        let nest = path.with_extension("nest");
        trials.push(Trial::test(format!("{name} nest"), move || {
            let (core, run, model) = load(&path)?;
            match run.nest(&core, &model) {
                Ok(text) => Ok(compare_golden(&nest, &text)?),
                // A model that is refused has no nest.
                Err(error) => {
                    run.refuses(error)?;
                    match nest.exists() {
                        true => Err(format!("{} is of a refused model", nest.display()).into()),
                        false => Ok(()),
                    }
                }
            }
        }));
    }
    libtest_mimic::run(&arguments, trials).exit();
}

fn load(run: &Path) -> Result<(Core, Run, PathBuf), String> {
    let text = std::fs::read_to_string(run).map_err(|e| e.to_string())?;
    let parsed = Run::parse(&text).map_err(|e| format!("{}: {e}", run.display()))?;
    let golden = repository().join("tests/golden");
    let relative = run.strip_prefix(&golden).map_err(|e| e.to_string())?;
    let model = repository()
        .join("ir-samples")
        .join(relative)
        .with_extension("xml");
    Ok((Core::new().map_err(|e| e.to_string())?, parsed, model))
}
