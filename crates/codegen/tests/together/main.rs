//! All tests that may run beside each other in one process: each file is a module of this one program, as every program
//! more is linked for seconds. `cargo test -p vinelift-codegen --test together NAME` runs those that have `NAME` in their path.

#[path = "../common/mod.rs"]
mod common;

mod arithmetic;
mod code;
mod division;
mod fold_bounds;
mod folds_random;
mod gathers;
mod halves;
mod indices;
mod interleave;
mod lane_points;
mod masks;
mod memory;
mod narrowing;
mod parts;
mod random;
mod rare;
mod spills;
mod symbols;
mod symbols_random;
mod transpose;
mod windows;
