//! Builds the function that throws, where there is a compiler for C++; else this crate exports nothing, and says so.

fn main() {
    println!("cargo:rustc-check-cfg=cfg(can_throw)");
    println!("cargo:rerun-if-changed=cpp");
    println!("cargo:rerun-if-changed=build.rs");
    let is_linux = std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux");
    let built = is_linux.then(|| {
        let mut build = cc::Build::new();
        build.cpp(true).std("c++17").file("cpp/refuse.cpp");
        build
            .try_compile("vinelift_refuse")
            .map_err(|error| error.to_string())
    });
    match built {
        Some(Ok(())) => println!("cargo:rustc-cfg=can_throw"),
        Some(Err(why)) => {
            println!("cargo:warning=the loader of the device for OpenVINO is not built: {why}")
        }
        None => println!(
            "cargo:warning=the loader of the device for OpenVINO is not built: it is for Linux"
        ),
    }
}
