//! Versions and lists of devices.

use super::Core;
use crate::device;
use crate::ffi::{In, Out, Required, Text};
use crate::memory;
use crate::status::{Result, Status, guard};
use libc::c_char;

/// The version of the interface, then that of this library. Programs read the number up to the first
/// `-`, and the parts of it that dots divide.
const BUILD_NUMBER: &str = concat!("2026.4.1-", env!("CARGO_PKG_VERSION"), "-vinelift");
const DESCRIPTION: &str = "Vinelift, with the C API of OpenVINO";

/// `ov_version_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Version {
    build_number: *mut c_char,
    description: *mut c_char,
}

impl Version {
    fn new() -> Result<Version> {
        Ok(Version {
            build_number: memory::copy_text(BUILD_NUMBER)?,
            description: memory::copy_text(DESCRIPTION)?,
        })
    }

    /// # Safety
    /// The texts come from [`Version::new`] and were not freed, or are `NULL`.
    unsafe fn free(&mut self) {
        // SAFETY: the caller's promise; the pointers are forgotten.
        unsafe {
            memory::release(self.build_number);
            memory::release(self.description);
        }
        *self = Version {
            build_number: std::ptr::null_mut(),
            description: std::ptr::null_mut(),
        };
    }
}

/// `ov_core_version_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct DeviceVersion {
    device_name: *mut c_char,
    version: Version,
}

/// `ov_core_version_list_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct DeviceVersions {
    versions: *mut DeviceVersion,
    size: usize,
}

/// `ov_available_devices_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Devices {
    devices: *mut *mut c_char,
    size: usize,
}

/// The version, whose texts are to be freed with `ov_version_free`.
#[unsafe(no_mangle)]
extern "C" fn ov_get_openvino_version(version: Out<'_, Version>) -> Status {
    guard(|| {
        version.required("version")?.write(Version::new()?);
        Ok(())
    })
}

/// Frees the texts of a version.
///
/// # Safety
/// They come from this library and were not freed, or are `NULL`.
#[unsafe(no_mangle)]
unsafe extern "C" fn ov_version_free(version: Option<&mut Version>) {
    if let Some(version) = version {
        // SAFETY: the caller's promise.
        unsafe { version.free() }
    }
}

/// The devices: one.
#[unsafe(no_mangle)]
extern "C" fn ov_core_get_available_devices(
    core: In<'_, Core>,
    devices: Out<'_, Devices>,
) -> Status {
    guard(|| {
        core.required("core")?;
        let devices = devices.required("devices")?;
        let names = [memory::copy_text(device::DEVICE)?];
        devices.write(Devices {
            devices: memory::copy_items(&names)?,
            size: names.len(),
        });
        Ok(())
    })
}

/// Frees a list of devices.
///
/// # Safety
/// It comes from this library and was not freed, or has `NULL` for its array, or is `NULL`.
#[unsafe(no_mangle)]
unsafe extern "C" fn ov_available_devices_free(devices: Option<&mut Devices>) {
    let Some(devices) = devices.filter(|list| !list.devices.is_null()) else {
        return;
    };
    // SAFETY: the caller's promise: the array has `size` texts, all of which come from `memory`. The
    // pointers are forgotten.
    unsafe {
        for k in 0..devices.size {
            memory::release(*devices.devices.add(k));
        }
        memory::release(devices.devices);
    }
    *devices = Devices {
        devices: std::ptr::null_mut(),
        size: 0,
    };
}

/// The version of a device.
#[unsafe(no_mangle)]
extern "C" fn ov_core_get_versions_by_device_name(
    core: In<'_, Core>,
    device_name: Text<'_>,
    versions: Out<'_, DeviceVersions>,
) -> Status {
    guard(|| {
        core.required("core")?;
        let versions = versions.required("versions")?;
        device::check(Some(device_name.required("device_name")?))?;
        let list = [DeviceVersion {
            device_name: memory::copy_text(device::DEVICE)?,
            version: Version::new()?,
        }];
        versions.write(DeviceVersions {
            versions: memory::copy_items(&list)?,
            size: list.len(),
        });
        Ok(())
    })
}

/// Frees a list of versions.
///
/// # Safety
/// It comes from this library and was not freed, or has `NULL` for its array, or is `NULL`.
#[unsafe(no_mangle)]
unsafe extern "C" fn ov_core_versions_free(versions: Option<&mut DeviceVersions>) {
    let Some(list) = versions.filter(|list| !list.versions.is_null()) else {
        return;
    };
    // SAFETY: the caller's promise: the array has `size` elements, whose texts all come from
    // `memory`. The pointers are forgotten.
    unsafe {
        for k in 0..list.size {
            let one = &mut *list.versions.add(k);
            memory::release(one.device_name);
            one.version.free();
        }
        memory::release(list.versions);
    }
    *list = DeviceVersions {
        versions: std::ptr::null_mut(),
        size: 0,
    };
}
