//! The C library, for tests of programs that load it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// `libopenvino_c.so`, built as the running test is.
pub fn c_library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let own = std::env::current_exe().unwrap();
        let folder = own.ancestors().nth(2).unwrap();
        let profile = match folder.file_name().unwrap().to_str().unwrap() {
            "debug" => "dev",
            other => other,
        };
        let mut cargo = cargo();
        cargo.args(["build", "--package", "vinelift-capi", "--profile", profile]);
        cargo.arg("--target-dir").arg(folder.parent().unwrap());
        cargo.current_dir(crate::repository());
        succeed(&mut cargo);
        folder.join("libopenvino_c.so")
    })
}

/// The `cargo` that runs the tests.
pub fn cargo() -> Command {
    Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()))
}

/// Runs `command`, which must succeed, and returns what it printed.
pub fn succeed(command: &mut Command) -> String {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().unwrap();
    let printed = String::from_utf8_lossy(&stdout);
    assert!(
        status.success(),
        "{command:?}: {status}\n{printed}{}",
        String::from_utf8_lossy(&stderr)
    );
    printed.into_owned()
}
