//! The program in the README is `tests/readme.rs`, and prints what the sample says.

use std::process::Command;
use vinelift_tests::{repository, succeed};

#[test]
fn its_program_runs() {
    let readme = std::fs::read_to_string(repository().join("README.md")).unwrap();
    let program = std::fs::read_to_string(repository().join("tests/readme.rs")).unwrap();
    let program = program.split_once("\n\n").unwrap().1;
    let block = format!("```rust\n{program}```\n");
    assert!(readme.contains(&block), "the README has another program");
    let mut command = Command::new(env!("CARGO_BIN_EXE_readme"));
    let printed = succeed(command.current_dir(repository()));
    assert_eq!(printed, "f32[2, 2] 1.0, 4.0, 1.0, 2.0\n");
}
