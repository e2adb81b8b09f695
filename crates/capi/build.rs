//! How the library is linked.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        // Programs that link against this file, under whichever name, look for this one.
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libopenvino_c.so");
        // The threads that compile live as long as the process: their code must, too.
        println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
        unwind_without_a_library();
    }
}

/// Links what unwinds the stack into the file, where the compiler for C has it to link, so that the library
/// needs no `libgcc_s.so.1`.
fn unwind_without_a_library() {
    let is_native = env::var("HOST") == env::var("TARGET");
    let is_gnu = env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|env| env == "gnu");
    let Some(folder) = env::var_os("OUT_DIR").map(PathBuf::from) else {
        return;
    };
    let has_parts = || ["libgcc_eh.a", "libgcc.a"].into_iter().all(is_there);
    if !is_native || !is_gnu || !has_parts() {
        return;
    }
    // The linker takes this for the library that Rust asks it for.
    let script = "GROUP ( -lgcc_eh -lgcc )\n";
    if std::fs::write(folder.join("libgcc_s.so"), script).is_ok() {
        println!("cargo:rustc-cdylib-link-arg=-L{}", folder.display());
    }
}

/// Whether the compiler for C finds this file.
fn is_there(file: &str) -> bool {
    let found = Command::new("cc")
        .arg(format!("-print-file-name={file}"))
        .output();
    let path = found.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned());
    path.is_ok_and(|path| Path::new(&path).is_absolute() && Path::new(&path).exists())
}
