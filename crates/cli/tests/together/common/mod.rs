//! Running the program, and files for it.
#![allow(dead_code, reason = "no test file needs all of it")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

pub(crate) const GATHER: &str = vinelift::doc::GATHER;

pub(crate) fn vinelift(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vinelift"));
    command.args(arguments);
    command
}

/// Status, stdout, stderr.
pub(crate) fn run(arguments: &[&str]) -> (i32, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = vinelift(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().unwrap_or(-1), text(stdout), text(stderr))
}

/// A directory with `model.xml`, and its path as text.
pub(crate) fn model(xml: &str) -> (TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model.xml");
    fs::write(&path, xml).unwrap();
    let path = path.display().to_string();
    (dir, path)
}

/// An `.npy` file of little-endian values.
pub(crate) fn npy(path: &Path, descr: &str, shape: &str, values: &[[u8; 4]]) {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}");
    let header = format!("{header:117}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.bytes());
    bytes.extend(values.as_flattened());
    fs::write(path, bytes).unwrap();
}

pub(crate) fn floats(path: &Path, shape: &str, values: &[f32]) {
    npy(
        path,
        "<f4",
        shape,
        &values.iter().map(|x| x.to_le_bytes()).collect::<Vec<_>>(),
    );
}

pub(crate) fn ints(path: &Path, shape: &str, values: &[i32]) {
    npy(
        path,
        "<i4",
        shape,
        &values.iter().map(|x| x.to_le_bytes()).collect::<Vec<_>>(),
    );
}
