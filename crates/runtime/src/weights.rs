//! The bytes of a `.bin` file, mapped into memory.

use crate::Error;
use bytes::Bytes;
use memmap2::Mmap;
use std::fs::File;
use std::path::Path;
use vinelift_xml::Weights;

/// Maps the file at `path`.
pub(crate) fn map(path: &Path) -> Result<Weights, Error> {
    let fail = |source| Error::Io {
        path: path.to_owned(),
        source,
    };
    let file = File::open(path).map_err(fail)?;
    let is_empty = file.metadata().map_err(fail)?.len() == 0;
    if is_empty {
        return Ok(Weights::default());
    }
    // SAFETY: the mapping is private to this process and read only, and bytes are all it is read as,
    // so any contents are valid. As with every mapped file, whoever can write to the file can change
    // the constants while a model runs, and can end the process by cutting the file short; callers
    // that cannot trust the file to stay read it into memory (`Core::read_model_from_memory`).
    let map = unsafe { Mmap::map(&file) }.map_err(fail)?;
    Ok(Weights::new(Bytes::from_owner(map)))
}
