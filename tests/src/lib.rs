//! Golden tests: a model of `ir-samples` with inputs and the outputs that it must give.
//!
//! `golden/<operator>/<case>.run` belongs to `ir-samples/<operator>/<case>.xml`:
//!
//! ```text
//! # where the expected values come from, which is outside of this project
//! close 1e-5
//! index-policy zero
//! input data: f32[2, 2] = 1, 2, 3, 4
//! input indices: i32[1] = 0
//! output 0: f32[1, 2] = 1, 2
//! ```
//!
//! Values are exact unless `close` gives a relative tolerance. Instead of outputs, `error` gives the
//! message with which the run must end. A line `step` begins another inference of the same request, with
//! inputs and outputs of its own. `<case>.nest` beside it is the nest of the model.

pub mod big_graphs;
mod c_library;
mod cache;
mod graph;
mod hostile;
mod levels;
mod random;
mod run;
mod values;

pub use c_library::{c_library, cargo, succeed};
pub use cache::growing_cache;
pub use graph::{Graph, Mark, Value};
pub use hostile::tensor;
pub use levels::{different_bits, outputs, outputs_with, same};
pub use random::Random;
pub use run::{Expected, Run};
pub use values::{difference, parse_tensor};

use std::path::{Path, PathBuf};

/// The folder of the repository.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The files below `folder` that end in `.extension`, sorted.
pub fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|e| e == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The step by which a test goes through many cases of a kind: it leaves some out, unless the variable `VINELIFT_ALL_CASES` is
/// set.
pub fn step(step: usize) -> usize {
    match std::env::var_os("VINELIFT_ALL_CASES") {
        Some(_) => 1,
        None => step,
    }
}

/// Compares `text` with the file at `path`, or writes it there if `BLESS` is set.
pub fn compare_golden(path: &Path, text: &str) -> Result<(), String> {
    if std::env::var_os("BLESS").is_some() {
        return std::fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()));
    }
    let known = std::fs::read_to_string(path).unwrap_or_default();
    if known == text {
        return Ok(());
    }
    let diff = similar::TextDiff::from_lines(&known, text);
    let diff = diff.unified_diff().header("golden", "now").to_string();
    Err(format!(
        "{} differs:\n{diff}\nto accept it: BLESS=1 cargo test -p vinelift-tests",
        path.display()
    ))
}
