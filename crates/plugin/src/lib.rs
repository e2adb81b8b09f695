//! Vinelift as a device of OpenVINO: the library that `vinelift-plugin-loader` loads into a process of OpenVINO.
//!
//! The device is written in C++ (`cpp`), against OpenVINO's public headers and our own declarations of the interface
//! between OpenVINO and its devices. It is built where these headers are at hand (`build.rs`). The engine is in the C
//! library (`plugin` of `vinelift-capi`): the device gets a table of its functions.

#[cfg(has_openvino)]
use std::ffi::c_void;

/// Gives OpenVINO the device.
///
/// It throws where the device cannot be made.
///
/// # Safety
/// `engine` is what `vinelift_engine` of the C library of the same version returns, and stays; `plugin` is the
/// `std::shared_ptr<ov::IPlugin>` that OpenVINO passes to `create_plugin_engine`.
#[cfg(has_openvino)]
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn vinelift_create_device(engine: *const c_void, plugin: *mut c_void) {
    unsafe extern "C-unwind" {
        fn vinelift_create_plugin(engine: *const c_void, plugin: *mut c_void);
    }
    // SAFETY: the caller's promise; the C++ side is built with the same declaration of the table.
    unsafe { vinelift_create_plugin(engine, plugin) }
}
