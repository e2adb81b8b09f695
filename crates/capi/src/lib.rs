//! OpenVINO's C API, version 2026.4, over Vinelift: a library that programs load in place of
//! `libopenvino_c.so`.
//!
//! There is one file per C header, with the functions of that header. They share:
//! * `status`: what a function returns. Each runs in a guard that turns errors and panics into a
//!   status and keeps their message for the thread (`ov_get_last_err_msg`);
//! * `ffi`: what a function takes. Pointers of a caller have types that know whether they may be
//!   `NULL`, so that most functions need no `unsafe` of their own;
//! * `memory`: what a caller gets and later frees;
//! * `buffer`: the memory of tensors, which several handles share; `job`: a run of a request, on the
//!   caller's thread or one of the `workers`; `settings`: properties; `device`: which devices there are.
//!
//! Invariants:
//! * no call ends in a panic, whatever is passed for a pointer that may be `NULL`, and whatever is in
//!   the texts, numbers and files;
//! * each handle owns what it needs: handles can be freed in any order, each exactly once;
//! * what is allocated for a caller comes from `malloc`, as C's own strings do;
//! * what this library cannot do ends in a status and a message that says so; a property that is
//!   taken and has no effect is told to the log callback.
//!
//! Of the caller it expects what every C library does: pointers that are not `NULL` are of the right
//! kind and not freed yet, texts end in NUL, arrays are as long as they are said to be, and the
//! memory of a tensor is not written while a run reads it.
//!
//! Nine functions take a variable number of arguments. A function cannot be defined that way in
//! stable Rust, so they are defined with a fixed number, of which they read only as many as the
//! caller says there are. That is the same thing to the machine where variable arguments are passed
//! as others are: x86-64 with the System V convention, and 64-bit ARM but Apple's.

// Elsewhere there is nothing in this crate: variable arguments are passed in another way.
#![cfg(not(any(windows, all(target_vendor = "apple", target_arch = "aarch64"))))]

mod buffer;
mod common;
mod compiled_model;
mod core;
mod device;
mod dimension;
mod ffi;
mod infer_request;
mod job;
mod layout;
mod memory;
mod model;
mod node;
mod partial_shape;
mod prepostprocess;
mod property;
mod rank;
mod remote_context;
mod settings;
mod shape;
mod stack;
mod status;
mod tensor;
mod util;
mod workers;
