//! The file that OpenVINO loads for the device `VINELIFT`: it finds the OpenVINO that is in the process, whichever
//! version it is, and loads the device itself (`libvinelift_openvino.so`, of the crate `vinelift-plugin`) on top of it,
//! and the engine that the device calls, which is in our C library (`libopenvino_c.so`, of `vinelift-capi`).
//!
//! The device calls functions of OpenVINO, whose file has another name in each version; so it names none among the
//! libraries that it needs, and this loader makes the functions of the one that is there visible to it. What both take
//! from it has not changed between 2026.1 and 2026.4; other versions are refused.

// Without a way to throw, there is nothing in it.
#![cfg(can_throw)]

use libc::{RTLD_GLOBAL, RTLD_LOCAL, RTLD_NOLOAD, RTLD_NOW, c_char, c_int, c_void};
use std::ffi::{CStr, CString, OsStr};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
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
    let openvino = only(libraries())?;
    let library = open(&openvino, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL)?;
    let version = version(library);
    if !is_served(&version) {
        return Err(Refusal::Version {
            found: version,
            path: openvino.display().to_string(),
        });
    }
    let folder = own_folder()?;
    let engine = function(&folder.join(ENGINE), c"vinelift_engine")?;
    let create = function(&folder.join(DEVICE), c"vinelift_create_device")?;
    // SAFETY: these are the types of the functions of these names in our own libraries.
    unsafe {
        let engine = std::mem::transmute::<*mut c_void, Engine>(engine);
        let create = std::mem::transmute::<*mut c_void, Create>(create);
        Ok((create, engine()))
    }
}

/// The function of this name in one of our libraries, which stays open.
fn function(library: &Path, name: &CStr) -> Result<*mut c_void, Refusal> {
    let library = open(library, RTLD_NOW | RTLD_LOCAL)?;
    // SAFETY: the library is open, and the name ends in NUL.
    let found = unsafe { libc::dlsym(library, name.as_ptr()) };
    match found.is_null() {
        false => Ok(found),
        true => Err(Refusal::Load(last_error())),
    }
}

/// The files of OpenVINO's core library that are in this process.
fn libraries() -> Vec<PathBuf> {
    unsafe extern "C" fn look(
        info: *mut libc::dl_phdr_info,
        _: usize,
        found: *mut c_void,
    ) -> c_int {
        // SAFETY: the system gives a description whose name, if it has one, is a text; and what `libraries` passed.
        let (name, found) = unsafe {
            let name = (*info).dlpi_name;
            if name.is_null() {
                return 0;
            }
            (CStr::from_ptr(name), &mut *found.cast::<Vec<PathBuf>>())
        };
        let path = Path::new(OsStr::from_bytes(name.to_bytes()));
        let file = path.file_name().map_or(&[][..], OsStrExt::as_bytes);
        if file.starts_with(b"libopenvino.so") {
            found.push(path.to_owned());
        }
        0
    }
    let mut found = Vec::new();
    // SAFETY: the function takes the list, and does nothing with it afterwards.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut found).cast()) };
    found
}

fn only(found: Vec<PathBuf>) -> Result<PathBuf, Refusal> {
    let text = |path: &PathBuf| path.display().to_string();
    match &found[..] {
        [] => Err(Refusal::Missing),
        [one] => Ok(one.clone()),
        [one, other, ..] => Err(Refusal::Two(text(one), text(other))),
    }
}

/// The result of `ov::get_openvino_version`.
#[repr(C)]
struct Version {
    build_number: *const c_char,
    _description: *const c_char,
}

/// The version of an OpenVINO, such as `2026.4.1-22982-e213a147257`.
fn version(library: *mut c_void) -> String {
    // SAFETY: the library is open, and the name ends in NUL.
    let get = unsafe { libc::dlsym(library, c"get_openvino_version".as_ptr()) };
    if get.is_null() {
        return "an unknown version".to_owned();
    }
    // SAFETY: all versions declare it so, with texts that stay.
    unsafe {
        let get = std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> Version>(get);
        CStr::from_ptr(get().build_number)
            .to_string_lossy()
            .into_owned()
    }
}

fn is_served(version: &str) -> bool {
    let mut parts = version.split(['.', '-']).map(|part| part.parse::<u32>());
    match (parts.next(), parts.next()) {
        (Some(Ok(year)), Some(Ok(release))) => (FIRST..=LAST).contains(&(year, release)),
        _ => false,
    }
}

fn open(path: &Path, flags: c_int) -> Result<*mut c_void, Refusal> {
    let name = CString::new(path.as_os_str().as_bytes());
    let name = name.map_err(|error| Refusal::Load(error.to_string()))?;
    // SAFETY: the name is a text; the file is OpenVINO's, which is loaded already, or our own.
    let library = unsafe { libc::dlopen(name.as_ptr(), flags) };
    match library.is_null() {
        false => Ok(library),
        true => Err(Refusal::Load(last_error())),
    }
}

/// Why the system's loader failed last.
fn last_error() -> String {
    // SAFETY: it returns a text, or null.
    unsafe {
        let text = libc::dlerror();
        match text.is_null() {
            true => "unknown".to_owned(),
            false => CStr::from_ptr(text).to_string_lossy().into_owned(),
        }
    }
}

/// The folder of this file.
fn own_folder() -> Result<PathBuf, Refusal> {
    let fail = || Refusal::Load("its own file cannot be found".to_owned());
    // SAFETY: it is all pointers, for which null is a value.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    let here = own_folder as fn() -> Result<PathBuf, Refusal> as *const c_void;
    // SAFETY: the address is one of this file's, and the description is to be written.
    let found = unsafe { libc::dladdr(here, &mut info) };
    if found == 0 || info.dli_fname.is_null() {
        return Err(fail());
    }
    // SAFETY: it is a text that stays.
    let name = unsafe { CStr::from_ptr(info.dli_fname) }
        .to_bytes()
        .to_vec();
    let path = PathBuf::from(std::ffi::OsString::from_vec(name));
    path.parent().map(Path::to_owned).ok_or_else(fail)
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
        assert!(libraries().is_empty(), "a test is no process of OpenVINO");
    }
}
