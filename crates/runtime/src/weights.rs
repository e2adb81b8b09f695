//! The bytes of a `.bin` file, mapped into memory.

use crate::Error;
use bytes::Bytes;
use memmap2::Mmap;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use vinelift_xml::Weights;

/// A file in memory. What of it was read can leave memory again; it is read from the file when it is needed next.
#[derive(Clone, Debug)]
pub(crate) struct MappedFile(Arc<Mmap>);

impl AsRef<[u8]> for MappedFile {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// Maps the file at `path`; an empty one is in no memory.
pub(crate) fn map(path: &Path) -> Result<(Weights, Option<MappedFile>), Error> {
    let fail = |source| Error::Io {
        path: path.to_owned(),
        source,
    };
    let file = File::open(path).map_err(fail)?;
    let is_empty = file.metadata().map_err(fail)?.len() == 0;
    if is_empty {
        return Ok((Weights::default(), None));
    }
    // SAFETY: the mapping is private to this process and read only, and bytes are all it is read as,
    // so any contents are valid. As with every mapped file, whoever can write to the file can change
    // the constants while a model runs, and can end the process by cutting the file short; callers
    // that cannot trust the file to stay read it into memory (`Core::read_model_from_memory`).
    let map = unsafe { Mmap::map(&file) }.map_err(fail)?;
    let file = MappedFile(Arc::new(map));
    let weights = Weights::new(Bytes::from_owner(file.clone()));
    Ok((weights, Some(file)))
}

impl MappedFile {
    /// Has `bytes` leave memory, if they are of this file: as far as they have whole pages, and the system does that.
    pub(crate) fn release(&self, bytes: &[u8]) {
        #[cfg(target_os = "linux")]
        if let Some((start, length)) = self.whole_pages(bytes) {
            let advice = memmap2::UncheckedAdvice::DontNeed;
            // SAFETY: the mapping is one of a file, and is never written, so what is read of these pages later is what is
            // in the file, as before.
            let released = unsafe { self.0.unchecked_advise_range(advice, start, length) };
            // If the system refuses, they stay.
            drop(released);
        }
        #[cfg(not(target_os = "linux"))]
        let _ = bytes;
    }

    /// The offset of the first page that is all in `bytes`, and the length of all of them; `None` if there is none.
    #[cfg(target_os = "linux")]
    fn whole_pages(&self, bytes: &[u8]) -> Option<(usize, usize)> {
        // A multiple of the page size of every machine whose pages are no larger.
        const PAGE: usize = 1 << 16;
        let first = bytes.as_ptr().addr().checked_sub(self.0.as_ptr().addr())?;
        let end = first
            .checked_add(bytes.len())
            .filter(|end| *end <= self.0.len())?;
        let (start, end) = (first.next_multiple_of(PAGE), end / PAGE * PAGE);
        (start < end).then(|| (start, end - start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_leaves_memory_is_read_again() {
        let path = std::env::temp_dir().join(format!("vinelift-mapped-{}", std::process::id()));
        let contents: Vec<u8> = (0..1_000_000u32).map(|k| ((k * 7) >> 3) as u8).collect();
        std::fs::write(&path, &contents).unwrap();
        let (_, file) = map(&path).unwrap();
        let file = file.unwrap();
        for range in [0..1_000_000, 5..999_999, 70_000..80_000, 3..3] {
            assert!(file.as_ref() == contents);
            file.release(&file.as_ref()[range]);
            assert!(file.as_ref() == contents);
        }
        // Memory of others stays as it is.
        file.release(&contents);
        assert!(
            contents
                .iter()
                .enumerate()
                .all(|(k, b)| *b == ((k as u32 * 7) >> 3) as u8)
        );
        std::fs::remove_file(path).unwrap();
    }
}
