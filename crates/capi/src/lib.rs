//! OpenVINO's C API, version 2026.4, over Vinelift: a library that programs load in place of
//! `libopenvino_c.so`.
//!
//! There is one file per C header, with the functions of that header. They share:
//! * `status`: what a function returns. Each runs in a guard that turns errors and panics into a
//!   status and keeps their message for the thread (`ov_get_last_err_msg`);
//! * `ffi`: what a function takes. Pointers of a caller have types that know whether they may be
//!   `NULL`, so that most functions need no `unsafe` of their own;
//! * `variadic`: what a function takes whose arguments vary in number;
//! * `memory`: what a caller gets and later frees;
//! * `buffer`: the memory of tensors, which several handles share; `job`: the runs of a request, on the
//!   caller's thread or one of the library's, each with the tensors of the `engine`;
//! * `own`: functions that OpenVINO's C API has not, for our Python package; `plugin`: those for our device of OpenVINO;
//! * `settings`: properties; `device`: which devices there are.
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
//! Six functions look at variable arguments (`variadic`): where they are is known for x86-64 with the System V
//! convention, and for 64-bit ARM but Apple's.

// Elsewhere there is nothing in this crate.
#![cfg(all(
    not(windows),
    any(
        target_arch = "x86_64",
        all(target_arch = "aarch64", not(target_vendor = "apple"))
    )
))]

mod buffer;
mod common;
mod compiled_model;
mod core;
mod device;
mod dimension;
mod engine;
mod ffi;
mod infer_request;
mod job;
mod last_error;
mod layout;
mod memory;
mod model;
mod model_ports;
mod node;
mod own;
mod partial_shape;
mod plugin;
mod port_choice;
mod prepostprocess;
mod profiling;
mod property;
mod rank;
mod remote_context;
mod settings;
mod shape;
mod status;
mod tensor;
mod util;
mod variadic;
