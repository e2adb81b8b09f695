//! Tensors as files, whose format depends on the element type.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use crate::{ElementType, FileError, PartialShape, Tensor, read_npy, read_npy_cast, write_npy};
#[cfg(feature = "json")]
use crate::{read_json, write_json};

impl Tensor {
    /// Reads a file that holds a tensor of this type and shape: `.json` for strings, else `.npy`.
    ///
    /// See [`read_npy`], and `read_json`, which needs the feature `json`.
    pub fn read_file(
        path: impl AsRef<Path>,
        element_type: ElementType,
        shape: &PartialShape,
    ) -> Result<Tensor, FileError> {
        let read = |bytes: &[u8]| match element_type {
            ElementType::String => read_json(bytes, shape),
            _ => read_npy(bytes, element_type, shape),
        };
        read_with(path.as_ref(), read)
    }

    /// As [`Tensor::read_file`], of an `.npy` file whose elements may be of another type, from which they are
    /// [cast](Tensor::cast).
    pub fn read_file_cast(
        path: impl AsRef<Path>,
        element_type: ElementType,
        shape: &PartialShape,
    ) -> Result<Tensor, FileError> {
        match element_type {
            ElementType::String => Tensor::read_file(path, element_type, shape),
            _ => read_with(path.as_ref(), |bytes| {
                read_npy_cast(bytes, element_type, shape)
            }),
        }
    }

    /// Writes the tensor to `path`, to which `.json` (strings) or `.npy` is added if it does not
    /// end so, and returns the file's full name.
    pub fn write_file(&self, path: impl AsRef<Path>) -> Result<PathBuf, FileError> {
        let extension = if self.strings().is_some() {
            "json"
        } else {
            "npy"
        };
        let mut path = path.as_ref().to_owned();
        if path.extension() != Some(OsStr::new(extension)) {
            path.as_mut_os_string().push(".");
            path.as_mut_os_string().push(extension);
        }
        let made = File::create(&path).and_then(|file| {
            let mut file = BufWriter::new(file);
            match self.strings() {
                Some(_) => write_json(self, &mut file)?,
                None => write_npy(self, &mut file)?,
            }
            file.flush()
        });
        match made {
            Ok(()) => Ok(path),
            Err(source) => Err(FileError::Io { path, source }),
        }
    }
}

fn read_with(
    path: &Path,
    read: impl Fn(&[u8]) -> Result<Tensor, FileError>,
) -> Result<Tensor, FileError> {
    let bytes = read_bounded(path).map_err(|source| FileError::Io {
        path: path.into(),
        source,
    })?;
    read(&bytes).map_err(|source| FileError::In {
        path: path.into(),
        source: Box::new(source),
    })
}

/// The most that is read of what is no regular file, and so may have no end: a pipe, a device.
const MAX_STREAM: u64 = 1 << 30;

fn read_bounded(path: &Path) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let limit = if file.metadata()?.is_file() {
        u64::MAX
    } else {
        MAX_STREAM
    };
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Stands for the functions of `json` where that feature is off.
#[cfg(not(feature = "json"))]
fn read_json(_: &[u8], _: &PartialShape) -> Result<Tensor, FileError> {
    Err(FileError::Format(NO_JSON.to_owned()))
}

#[cfg(not(feature = "json"))]
fn write_json(_: &Tensor, _: impl Write) -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, NO_JSON))
}

#[cfg(not(feature = "json"))]
const NO_JSON: &str = "files of strings need the feature `json`";

#[cfg(all(test, feature = "json"))]
mod tests {
    use super::*;
    use ElementType::*;

    #[test]
    fn every_type_is_read_back() {
        let dir = tempfile::tempdir().unwrap();
        for ty in ElementType::ALL {
            let mut tensor = Tensor::zeros(ty, &[3, 2]).unwrap();
            match ty {
                Boolean => tensor.bytes_mut()[1] = 1,
                String => {
                    let strings = ["", "a", "\"", "\n", "é🙂", "\0"]
                        .map(str::to_owned)
                        .to_vec();
                    tensor = Tensor::from_strings(&[3, 2], strings).unwrap();
                }
                _ => tensor.bytes_mut().fill(0x5a),
            }
            let path = tensor
                .write_file(dir.path().join(format!("out_{ty}.0")))
                .unwrap();
            assert_eq!(
                path.extension().unwrap(),
                if ty == String { "json" } else { "npy" }
            );
            let shape = PartialShape::from(&[3usize, 2][..]);
            assert_eq!(
                Tensor::read_file(&path, ty, &shape).unwrap(),
                tensor,
                "{ty}"
            );
            assert_eq!(
                tensor.write_file(&path).unwrap(),
                path,
                "an extension is not added twice"
            );
        }
    }

    #[test]
    fn errors_name_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let missing = dir.path().join("missing.npy");
        let error = Tensor::read_file(&missing, F32, &PartialShape::DYNAMIC)
            .unwrap_err()
            .to_string();
        assert_eq!(
            error,
            format!(
                "cannot access `{}`: No such file or directory (os error 2)",
                missing.display()
            )
        );
        let path = Tensor::zeros(I32, &[2])
            .unwrap()
            .write_file(dir.path().join("x"))
            .unwrap();
        let error = Tensor::read_file(&path, I32, &PartialShape::from(&[3usize][..])).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("`{}`: expected shape [3], found [2]", path.display())
        );
    }
}
