//! Runs the tests in `python`, which use the device through OpenVINO's Python package: with the Python that
//! `VINELIFT_PYTHON` names, or with `python3`. Where that has not what the tests need they are skipped, and the reason is
//! printed.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Fails if a package that the tests need is missing, and prints which.
const NEEDS: &str = "
import sys
try:
    import numpy, pytest
    from openvino import get_version
    version = get_version()
    if not (2026, 1) <= tuple(int(part) for part in version.split('-')[0].split('.')[:2]) <= (2026, 4):
        sys.exit(f'it has OpenVINO {version}, expected 2026.1 to 2026.4')
except ImportError as error:
    sys.exit(str(error))
";

#[test]
fn programs_of_python() {
    if !cfg!(has_openvino) {
        return skip("the device is not built, for want of OpenVINO's headers");
    }
    let python = std::env::var("VINELIFT_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    match Command::new(&python).args(["-c", NEEDS]).output() {
        Ok(output) if output.status.success() => {}
        Ok(output) => {
            let why = String::from_utf8_lossy(&output.stderr);
            return skip(&format!("{python}: {}", why.trim()));
        }
        Err(error) => return skip(&format!("{python}: {error}")),
    }
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python");
    let status = Command::new(&python)
        .args(["-m", "pytest", "-q", "-p", "no:cacheprovider"])
        .arg(tests)
        .env("VINELIFT_DEVICE", device())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .status();
    assert!(status.unwrap().success());
}

#[expect(clippy::print_stdout, reason = "that is what tells who runs the tests")]
fn skip(why: &str) {
    println!("skipped: {why}");
}

/// The file that OpenVINO loads, with those beside it that it loads, built as this test is.
fn device() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let folder = own.ancestors().nth(2).unwrap();
    let profile = match folder.file_name().and_then(|name| name.to_str()) {
        Some("debug") => "dev",
        Some(other) => other,
        None => panic!("{}: not in a folder of a profile", own.display()),
    };
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let mut build = Command::new(cargo);
    build.args(["build", "--profile", profile]);
    for package in ["vinelift-plugin-loader", "vinelift-plugin", "vinelift-capi"] {
        build.args(["--package", package]);
    }
    build.arg("--target-dir").arg(folder.parent().unwrap());
    build.current_dir(env!("CARGO_MANIFEST_DIR"));
    assert!(build.status().unwrap().success());
    folder.join("libvinelift_openvino_plugin.so")
}
