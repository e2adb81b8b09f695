//! All tests that may run beside each other in one process: each file is a module of this one program, as every program
//! more is linked for seconds. `cargo test -p vinelift-cli --test together NAME` runs those that have `NAME` in their path.

mod cli;
mod common;
mod dump;
mod explore;
mod files;
mod generate;
#[cfg(target_os = "linux")]
mod limits;
mod readme;
