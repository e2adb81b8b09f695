//! How the library is linked.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        // Programs that link against this file, under whichever name, look for this one.
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libopenvino_c.so");
        // The threads that compile live as long as the process: their code must, too.
        println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
