//! All tests that may run beside each other in one process: each file is a module of this one program, as every program
//! more is linked for seconds. `cargo test -p vinelift-kernels --test together NAME` runs those that have `NAME` in their path.

mod column_sources;
mod contractions;
mod grouped;
#[cfg(unix)]
mod guard;
mod narrow;
mod padding;
mod peak;
mod problems;
mod row_sources;
mod row_tasks;
mod shares;
mod winograd;
