//! Vinelift as a device of OpenVINO: the library that `vinelift-plugin-loader` loads into a process of OpenVINO.
//!
//! The device is written in C++ (`cpp`), against OpenVINO's public headers and our own declarations of the interface
//! between OpenVINO and its devices. It is built where these headers are at hand (`build.rs`). It reaches the engine
//! through a table of functions (`table`), so that this library exports one symbol, which OpenVINO looks for:
//! `create_plugin_engine`.
//!
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

#![cfg_attr(
    not(has_openvino),
    expect(dead_code, reason = "it is called by the C++ side, which is not built")
)]

mod ffi;
mod machine;
mod model;
mod request;
mod table;
mod variables;
mod view;

/// Gives OpenVINO the device.
///
/// It throws where the device cannot be made.
///
/// # Safety
/// `plugin` is the `std::shared_ptr<ov::IPlugin>` that OpenVINO passes to the function of this name.
#[cfg(has_openvino)]
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn create_plugin_engine(plugin: *mut std::ffi::c_void) {
    unsafe extern "C-unwind" {
        fn vinelift_create_plugin(engine: &'static table::Engine, plugin: *mut std::ffi::c_void);
    }
    // SAFETY: the C++ side is built with the same declaration of the table, and its caller's promise is ours.
    unsafe { vinelift_create_plugin(&table::ENGINE, plugin) }
}
