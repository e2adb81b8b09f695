//! Programs that were made for OpenVINO use the C library in its place.
//!
//! Each is a Cargo project of its own, since it is built of what others have published; its folder is
//! below the target folder, so that it is built once. That takes minutes, so they are run only when asked for:
//! `cargo test -p vinelift-tests --test clients -- --ignored`. Where the registry of packages cannot be reached, or a
//! checkout is not given, tests are skipped, and the last lines say why.

#[cfg(target_os = "linux")]
mod programs;

fn main() {
    #[cfg(target_os = "linux")]
    programs::main();
}
