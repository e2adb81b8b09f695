//! The C API as C programs see it: those in `tests/c`, compiled and run.

use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use vinelift_tests::{c_library, succeed};

/// Set to the folder of OpenVINO's own headers, in which there is `openvino/c/openvino.h`, to compile
/// the programs with those, too.
const HEADERS: &str = "VINELIFT_OPENVINO_HEADERS";
/// Set to anything to run the programs under valgrind, which must find nothing wrong.
const VALGRIND: &str = "VINELIFT_VALGRIND";

fn compiler() -> Option<String> {
    let name = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let found = Command::new(&name).arg("--version").output();
    found.is_ok_and(|o| o.status.success()).then_some(name)
}

/// Compiles `tests/c/<name>.c` and runs it.
fn run(name: &str) {
    let Some(compiler) = compiler() else {
        eprintln!("skipped: there is no C compiler");
        return;
    };
    compile_and_run(&compiler, name, None);
    match std::env::var_os(HEADERS) {
        Some(headers) => compile_and_run(&compiler, name, Some(Path::new(&headers))),
        None => eprintln!("skipped with OpenVINO's headers: {HEADERS} is not set"),
    }
}

fn compile_and_run(compiler: &str, name: &str, headers: Option<&Path>) {
    let sources = vinelift_tests::repository().join("tests/c");
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join(name);
    let mut cc = Command::new(compiler);
    cc.args([
        "-std=gnu11",
        "-g",
        "-O1",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-pthread",
    ]);
    if let Some(headers) = headers {
        cc.arg("-DOPENVINO_HEADERS").arg("-I").arg(headers);
    }
    cc.arg(sources.join(name).with_extension("c"));
    cc.arg("-o").arg(&program).arg(c_library());
    cc.arg(format!(
        "-Wl,-rpath,{}",
        c_library().parent().unwrap().display()
    ));
    succeed(&mut cc);
    let (mut run, limit) = match std::env::var_os(VALGRIND) {
        None => (Command::new(&program), Duration::from_secs(120)),
        Some(_) => (under_valgrind(&program), Duration::from_secs(1200)),
    };
    succeed_within(limit, run.arg(folder.path()), folder.path());
}

/// Runs `command`, which must end in time and succeed. What it prints goes through a file in `folder`.
fn succeed_within(limit: Duration, command: &mut Command, folder: &Path) {
    let path = folder.join("printed");
    let file = File::create(&path).unwrap();
    command.stdout(file.try_clone().unwrap()).stderr(file);
    let mut child = command.spawn().unwrap();
    let start = Instant::now();
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break Some(status),
            None if start.elapsed() > limit => break None,
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    if status.is_none() {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let printed = std::fs::read(&path).unwrap();
    let printed = String::from_utf8_lossy(&printed);
    let status = status.unwrap_or_else(|| panic!("{command:?}: not done in {limit:?}\n{printed}"));
    assert!(status.success(), "{command:?}: {status}\n{printed}");
}

/// Errors are reads and writes of memory that is not the program's, values that were never set, and memory
/// that nothing points at any more.
fn under_valgrind(program: &Path) -> Command {
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--quiet", "--error-exitcode=99", "--leak-check=full"]);
    valgrind.args([
        "--errors-for-leak-kinds=definite",
        "--show-leak-kinds=definite",
    ]);
    // Code is made anew where other code was.
    valgrind.args(["--smc-check=all-non-file", "--fair-sched=yes"]);
    valgrind.arg(program);
    valgrind
}

#[test]
fn types() {
    run("types");
}

#[test]
fn keys() {
    run("keys");
}

#[test]
fn nulls() {
    run("nulls");
}

#[test]
fn core() {
    run("core");
}

#[test]
fn model() {
    run("model");
}

#[test]
fn request() {
    run("request");
}

/// The functions beyond OpenVINO's C API, which begin with `vinelift_`.
#[test]
fn own() {
    run("own");
}

#[test]
fn threads() {
    run("async");
}

#[test]
fn hostile() {
    run("hostile");
}

#[test]
fn rewritten_indices() {
    run("rewritten_indices");
}

#[test]
fn freed() {
    run("freed");
}

#[test]
fn reentrant() {
    run("reentrant");
}

#[test]
fn small_stack() {
    run("small_stack");
}

#[test]
fn scarce() {
    run("scarce");
}

#[test]
fn forked() {
    run("forked");
}

#[test]
fn ports() {
    run("ports");
}

#[test]
fn preprocess() {
    run("preprocess");
}

/// Each program is run by a test.
#[test]
fn every_program_is_a_test() {
    let here = include_str!("c_api.rs");
    for program in vinelift_tests::files(&vinelift_tests::repository().join("tests/c"), "c") {
        let name = program.file_stem().unwrap().to_str().unwrap();
        assert!(
            here.contains(&format!("run(\"{name}\")")),
            "{name}.c is not run"
        );
    }
}
