//! The dynamic libraries of a process: every call of the system's loader (`dlopen` and its kin) stands here.

use libc::{c_char, c_int, c_void};
use std::ffi::{CStr, CString, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// A library that stays loaded.
#[derive(Clone, Copy)]
pub(crate) struct Library(*mut c_void);

impl Library {
    /// Loads the file at `path`, or finds it if it is loaded: as `dlopen` with these flags.
    ///
    /// # Errors
    /// The system's reason.
    ///
    /// # Safety
    /// The file's initializers run while it is loaded, and must be sound in this process.
    pub(crate) unsafe fn open(path: &Path, flags: c_int) -> Result<Library, String> {
        let name = CString::new(path.as_os_str().as_bytes()).map_err(|error| error.to_string())?;
        // SAFETY: the name ends in NUL, and the caller vouches for the file.
        let library = unsafe { libc::dlopen(name.as_ptr(), flags) };
        match library.is_null() {
            false => Ok(Library(library)),
            true => Err(last_error()),
        }
    }

    /// The address of the function or variable of this name.
    ///
    /// # Errors
    /// The system's reason, if there is none.
    pub(crate) fn symbol(self, name: &CStr) -> Result<*mut c_void, String> {
        // SAFETY: libraries are never closed here, and the name ends in NUL.
        let found = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        match found.is_null() {
            false => Ok(found),
            true => Err(last_error()),
        }
    }
}

/// The loaded libraries whose file names begin with `start`.
pub(crate) fn loaded(start: &'static str) -> Vec<PathBuf> {
    struct Search {
        start: &'static str,
        found: Vec<PathBuf>,
    }
    unsafe extern "C" fn look(
        info: *mut libc::dl_phdr_info,
        _: usize,
        search: *mut c_void,
    ) -> c_int {
        // SAFETY: `dl_iterate_phdr` gives a description, whose name ends in NUL if it has one, and passes on the `Search` below, which
        // nothing else uses meanwhile.
        let (name, search) = unsafe {
            let name = (*info).dlpi_name;
            if name.is_null() {
                return 0;
            }
            (CStr::from_ptr(name), &mut *search.cast::<Search>())
        };
        let path = Path::new(OsStr::from_bytes(name.to_bytes()));
        let file = path.file_name().map_or(&[][..], OsStrExt::as_bytes);
        if file.starts_with(search.start.as_bytes()) {
            search.found.push(path.to_owned());
        }
        0
    }
    let mut search = Search {
        start,
        found: Vec::new(),
    };
    // SAFETY: the function takes a `Search`, which lives until the call returns.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut search).cast()) };
    search.found
}

/// The file that this function is in.
pub(crate) fn own_file() -> Option<PathBuf> {
    // SAFETY: a `Dl_info` is pointers alone, for which null is a value.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    let here = own_file as fn() -> Option<PathBuf> as *const c_void;
    // SAFETY: `dladdr` takes any address, and writes the description.
    let found = unsafe { libc::dladdr(here, &mut info) };
    if found == 0 || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the name ends in NUL, and stays as long as the file is loaded.
    let name = unsafe { CStr::from_ptr(info.dli_fname) };
    Some(PathBuf::from(OsString::from_vec(name.to_bytes().to_vec())))
}

/// A text in C.
///
/// # Safety
/// `text` points to bytes that end in NUL.
pub(crate) unsafe fn text(text: *const c_char) -> String {
    // SAFETY: the caller vouches for it.
    unsafe { CStr::from_ptr(text) }
        .to_string_lossy()
        .into_owned()
}

/// Why the system's loader failed last on this thread.
fn last_error() -> String {
    // SAFETY: `dlerror` returns null, or a text that stays until the next call of the loader on this thread.
    unsafe {
        let error = libc::dlerror();
        match error.is_null() {
            true => "unknown".to_owned(),
            false => text(error),
        }
    }
}
