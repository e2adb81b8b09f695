//! Builds the C++ side, where a compiler for it and OpenVINO's public headers are at hand; else this crate has no device in
//! it, and says so.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of an installed OpenVINO, which has `include` in it: that of the Python package `openvino`.
const FOLDER: &str = "OPENVINO_DIR";
const SOURCES: [&str; 12] = [
    "attributes",
    "blob",
    "compiled",
    "executor",
    "ir",
    "plugin",
    "profiling",
    "request",
    "settings",
    "state",
    "tensors",
    "weights",
];

fn main() {
    println!("cargo:rustc-check-cfg=cfg(has_openvino)");
    println!("cargo:rerun-if-env-changed={FOLDER}");
    println!("cargo:rerun-if-env-changed=PATH");
    println!("cargo:rerun-if-changed=cpp");
    println!("cargo:rerun-if-changed=build.rs");
    match build() {
        Ok(()) => println!("cargo:rustc-cfg=has_openvino"),
        Err(why) => println!("cargo:warning=the device for OpenVINO is not built: {why}"),
    }
}

fn build() -> Result<(), String> {
    if env::var("CARGO_CFG_TARGET_OS").as_deref() != Ok("linux")
        || env::var("CARGO_CFG_TARGET_ENV").as_deref() != Ok("gnu")
    {
        return Err("it is for Linux with the GNU C library".to_owned());
    }
    let include = include()?;
    let mut build = cc::Build::new();
    build
        .cpp(true)
        .std("c++17")
        .define("_GLIBCXX_USE_CXX11_ABI", "1")
        .flag("-fvisibility=hidden")
        .flag("-isystem")
        .flag(&include)
        .files(SOURCES.map(|name| format!("cpp/{name}.cpp")));
    let made = build.try_compile("vinelift_device");
    made.map_err(|error| format!("the C++ side cannot be compiled: {error}"))?;
    // Threads of the device live as long as the process: their code must, too.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    Ok(())
}

/// The folder of the public headers: below the folder that was named, or in the Python package.
fn include() -> Result<PathBuf, String> {
    let has_headers = |folder: &Path| folder.join("openvino/openvino.hpp").exists();
    if let Some(folder) = env::var_os(FOLDER).filter(|folder| !folder.is_empty()) {
        let include = Path::new(&folder).join("include");
        return match has_headers(&include) {
            true => Ok(include),
            false => Err(format!(
                "{FOLDER} is `{}`, where there is no include/openvino/openvino.hpp",
                Path::new(&folder).display()
            )),
        };
    }
    let program = "import openvino, os; print(os.path.dirname(openvino.__file__))";
    let output = Command::new("python3").args(["-c", program]).output();
    let output = output.ok().filter(|output| output.status.success());
    let folder = output.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned());
    let include = folder.map(|folder| Path::new(&folder).join("include"));
    include
        .filter(|include| has_headers(include))
        .ok_or_else(|| {
            format!("python3 has no package `openvino`, and {FOLDER} names no folder of one")
        })
}
