//! The examples run, and print what they should. `cargo test -p vinelift` builds them, as does `cargo build --examples`.

use std::process::Command;

/// The output of the example `name`.
fn printed(name: &str) -> String {
    let own = std::env::current_exe().unwrap();
    let program = own.ancestors().nth(2).unwrap().join("examples").join(name);
    let program = program.with_extension(std::env::consts::EXE_EXTENSION);
    let output = Command::new(&program).output();
    let output = output.unwrap_or_else(|e| panic!("{}: {e}", program.display()));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn classify_image() {
    assert_eq!(printed("classify_image"), "seven, by 100 in 100\n");
}

#[test]
fn text() {
    assert_eq!(
        printed("text"),
        "0..3: \"one\"\n3..3: \"\"\n3..8: \"three\"\n8..12: \"vier\"\n"
    );
}

#[test]
fn state() {
    assert_eq!(
        printed("state"),
        "sums: f32[2] 1.0, 2.0\n\
         sums: f32[2] 11.0, 22.0\n\
         sums: f32[2] 111.0, 222.0\n\
         rows: Some([3, 2])\n\
         after a reset: f32[2] 100.0, 200.0\n\
         as before: f32[2] 211.0, 422.0\n"
    );
}

#[test]
fn threads() {
    let printed = printed("threads");
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines.len(), 6, "{printed}");
    assert!(
        lines[..4]
            .iter()
            .all(|line| line.split(' ').count() == 10 && line == &lines[0])
    );
    assert!(lines[4].ends_with(" at least") && lines[4] == lines[5]);
}

#[test]
fn untrusted_indices() {
    let printed = printed("untrusted_indices");
    let lines: Vec<&str> = printed.lines().collect();
    let is_error = |line: &str| line.contains("is 2147483647, expected -2..=1");
    assert_eq!(lines.len(), 6, "{printed}");
    assert!(is_error(lines[2]) && !is_error(lines[5]), "{printed}");
    assert_eq!(lines[1], "Spec: f32[2, 2] 1.0, 4.0, 1.0, 4.0");
    assert_eq!(lines[5], "Zero: f32[2, 2] 1.0, 4.0, 1.0, 0.0");
}
