//! The commands of the README give the output that it shows.

use std::path::Path;
use std::process::Command;

const START: &str = "cargo run --release -p vinelift-cli -- ";

#[test]
fn commands_give_the_output_shown() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = std::fs::read_to_string(repository.join("README.md")).unwrap();
    let blocks: Vec<&str> = readme.split("```").skip(1).step_by(2).collect();
    let mut checked = 0;
    for pair in blocks.windows(2) {
        let (Some(arguments), output) = (pair[0].trim().strip_prefix(START), pair[1]) else {
            continue;
        };
        let run = Command::new(env!("CARGO_BIN_EXE_vinelift"))
            .args(arguments.split(' '))
            .current_dir(&repository)
            .output()
            .unwrap();
        let stdout = String::from_utf8(run.stdout).unwrap();
        assert_eq!(stdout.trim(), output.trim(), "{arguments}");
        checked += 1;
    }
    assert_eq!(checked, 3);
}
