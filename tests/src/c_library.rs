//! The C library, for tests of programs that load it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// `libopenvino_c.so`, built as the running test is.
///
/// It is asked for with the libraries of all packages and with a test, as then dependencies have the features that they have
/// in `cargo test --workspace`: what that has built is not built again.
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
        cargo.args(["build", "--workspace", "--lib", "--test", "module_circles"]);
        cargo.args([
            "--exclude",
            "vinelift-plugin",
            "--exclude",
            "vinelift-plugin-loader",
        ]);
        cargo.args(["--profile", profile]);
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
