//! The functions that our device of OpenVINO calls, which is written in C++ (`crates/plugin`): a table beyond OpenVINO's C
//! API. The device lies beside this library, so that both share one engine.
//!
//! * `table`: the functions;
//! * `ffi`: what goes between the two languages, and the errors;
//! * `model`: models are read from the text of IR that the C++ side writes of OpenVINO's graph, and from the constants
//!   where they are in memory, and are compiled;
//! * `request`: runs on tensors of the program, which `view` makes tensors of the engine, in place;
//! * `variables`: what is kept from run to run;
//! * `machine`: what is told of the processor.
//!
//! Invariants:
//! * no call ends in a panic; each returns what went wrong, and the C++ side throws it as an exception of OpenVINO;
//! * no exception of C++ passes through Rust: functions of the C++ side that are called from here throw none;
//! * memory of the program is read and written during a run only, but for constants, which are kept by whoever owns
//!   them for as long as the model is in use.

mod ffi;
mod machine;
mod model;
mod request;
mod table;
mod variables;
mod view;

/// The functions. Whoever calls them is of the same version: they may change with each.
#[unsafe(no_mangle)]
extern "C" fn vinelift_engine() -> &'static table::Engine {
    &table::ENGINE
}
