//! The file that OpenVINO loads for the device `VINELIFT`: it finds the OpenVINO that is in the process, whichever
//! version it is, and loads the device itself (`libvinelift_openvino.so`, of the crate `vinelift-plugin`) on top of it,
//! and the engine that the device calls, which is in our C library (`libopenvino_c.so`, of `vinelift-capi`).
//!
//! The device calls functions of OpenVINO, whose file has another name in each version; so it names none among the
//! libraries that it needs, and this loader makes the functions of the one that is there visible to it. What both take
//! from it has not changed between 2026.1 and 2026.4; other versions are refused.

// Without a compiler for C++ there is no function that throws, and so nothing here.
#![cfg(can_throw)]

mod libraries;

use libc::{RTLD_GLOBAL, RTLD_LOCAL, RTLD_NOLOAD, RTLD_NOW, c_char, c_void};
use libraries::{Library, loaded, own_file, text};
use std::ffi::CStr;
use std::path::{Path, PathBuf};

/// The first version of OpenVINO that the device works with: year and release of it.
const FIRST: (u32, u32) = (2026, 1);
/// The last one.
const LAST: (u32, u32) = (2026, 4);
/// The device, which lies beside this file.
const DEVICE: &str = "libvinelift_openvino.so";
/// The engine, which lies there, too.
const ENGINE: &str = "libopenvino_c.so";

unsafe extern "C-unwind" {
    /// Throws a `std::runtime_error`.
    fn vinelift_refuse(start: *const u8, len: usize) -> !;
}

/// Gives OpenVINO the device, which calls the engine.
type Create = unsafe extern "C-unwind" fn(*const c_void, *mut c_void);
/// Gives the functions of the engine.
type Engine = unsafe extern "C" fn() -> *const c_void;

/// Why there is no device.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
enum Refusal {
    #[error("the VINELIFT device finds no libopenvino in this process")]
    Missing,
    #[error("the VINELIFT device finds two OpenVINOs in this process: {0} and {1}")]
    Two(String, String),
    #[error(
        "this build of the VINELIFT device serves OpenVINO {}.{} to {}.{}, found {found} in {path}",
        FIRST.0, FIRST.1, LAST.0, LAST.1
    )]
    Version { found: String, path: String },
    #[error("the VINELIFT device cannot be loaded: {0}")]
    Load(String),
}

/// Gives OpenVINO the device, or throws why there is none.
///
/// # Safety
/// OpenVINO calls it, with its `std::shared_ptr<ov::IPlugin>`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn create_plugin_engine(plugin: *mut c_void) {
    // The exception must unwind through a frame with nothing to drop, so the text is leaked: once in a process.
    match find() {
        // SAFETY: the device takes the engine beside it, and what this function takes.
        Ok((create, engine)) => unsafe { create(engine, plugin) },
        Err(refusal) => {
            let text: &'static str = String::leak(refusal.to_string());
            // SAFETY: the text stays.
            unsafe { vinelift_refuse(text.as_ptr(), text.len()) }
        }
    }
}

/// The function that makes the device, and the functions of the engine.
fn find() -> Result<(Create, *const c_void), Refusal> {
    let openvino = only(loaded("libopenvino.so"))?;
    let flags = RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL;
    // SAFETY: the file is loaded already.
    let library = unsafe { Library::open(&openvino, flags) }.map_err(Refusal::Load)?;
    let version = version(library);
    if !is_served(&version) {
        return Err(Refusal::Version {
            found: version,
            path: openvino.display().to_string(),
        });
    }
    let own = own_file().and_then(|file| Some(file.parent()?.to_owned()));
    let folder = own.ok_or_else(|| Refusal::Load("its own file cannot be found".to_owned()))?;
    let engine = function(&folder.join(ENGINE), c"vinelift_engine")?;
    let create = function(&folder.join(DEVICE), c"vinelift_create_device")?;
    // SAFETY: these are the types of the functions of these names in our own libraries.
    unsafe {
        let engine = std::mem::transmute::<*mut c_void, Engine>(engine);
        let create = std::mem::transmute::<*mut c_void, Create>(create);
        Ok((create, engine()))
    }
}

/// The function of this name in one of our libraries.
fn function(library: &Path, name: &CStr) -> Result<*mut c_void, Refusal> {
    // SAFETY: our own libraries do nothing unsound while they are loaded.
    let library = unsafe { Library::open(library, RTLD_NOW | RTLD_LOCAL) };
    let found = library.and_then(|library| library.symbol(name));
    found.map_err(Refusal::Load)
}

/// The file of OpenVINO's core library, if there is one in the process and no other.
fn only(found: Vec<PathBuf>) -> Result<PathBuf, Refusal> {
    let shown = |path: &PathBuf| path.display().to_string();
    match &found[..] {
        [] => Err(Refusal::Missing),
        [one] => Ok(one.clone()),
        [one, other, ..] => Err(Refusal::Two(shown(one), shown(other))),
    }
}

/// The result of `ov::get_openvino_version`.
#[repr(C)]
struct Version {
    build_number: *const c_char,
    _description: *const c_char,
}

/// The version of an OpenVINO, such as `2026.4.1-22982-e213a147257`.
fn version(library: Library) -> String {
    let Ok(get) = library.symbol(c"get_openvino_version") else {
        return "an unknown version".to_owned();
    };
    // SAFETY: all versions declare the function so, and its texts stay.
    unsafe {
        let get = std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> Version>(get);
        text(get().build_number)
    }
}

fn is_served(version: &str) -> bool {
    let mut parts = version.split(['.', '-']).map(|part| part.parse::<u32>());
    match (parts.next(), parts.next()) {
        (Some(Ok(year)), Some(Ok(release))) => (FIRST..=LAST).contains(&(year, release)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions() {
        for version in [
            "2026.1.0-21000-abc",
            "2026.4.1-22982-e213a147257-releases/2026/4",
            "2026.3",
        ] {
            assert!(is_served(version), "{version}");
        }
        for version in [
            "2025.4.0-1",
            "2026.0.0",
            "2026.5.0-23000",
            "2027.1.0",
            "custom",
            "",
        ] {
            assert!(!is_served(version), "{version}");
        }
        let refusal = Refusal::Version {
            found: "2025.4.0".to_owned(),
            path: "/lib/libopenvino.so".to_owned(),
        };
        assert_eq!(
            refusal.to_string(),
            "this build of the VINELIFT device serves OpenVINO 2026.1 to 2026.4, found 2025.4.0 in /lib/libopenvino.so"
        );
    }

    #[test]
    fn one_openvino_is_needed() {
        assert_eq!(only(vec![]), Err(Refusal::Missing));
        assert_eq!(only(vec!["a".into()]), Ok("a".into()));
        assert!(matches!(
            only(vec!["a".into(), "b".into()]),
            Err(Refusal::Two(..))
        ));
        assert!(
            loaded("libopenvino.so").is_empty(),
            "a test is no process of OpenVINO"
        );
    }
}
