//! NumPy's `.npy` files.
//!
//! NumPy lacks some element types; how each is kept:
//!
//! | element type | NumPy's | |
//! |---|---|---|
//! | `boolean` | `\|b1` | |
//! | `i8`…`i64`, `u8`…`u64`, `f16`, `f32`, `f64` | `\|i1` … `<f8` | |
//! | `bf16` | `<u2` | its bits |
//! | `f8e4m3`, `f8e5m2`, `f8e8m0` | `\|u1` | their bits |
//! | types below a byte | `\|u1` | the packed bytes, as a 1-D array; the file does not say the shape |
//! | `string` | – | see `read_json` |

mod header;

use std::io::{self, Write};

use crate::{ElementType, FileError, PartialShape, Tensor, TensorError, element_count};
use header::{Header, TypeString};

/// Reads a tensor of type `element_type` and of a shape that `shape` allows.
///
/// The file may be in C or Fortran order, and in either order of bytes. A packed type's file does not say its shape, so
/// `shape` must be static then.
pub fn read_npy(
    file: &[u8],
    element_type: ElementType,
    shape: &PartialShape,
) -> Result<Tensor, FileError> {
    let (header, data) = Header::read(file).map_err(FileError::Format)?;
    read(&header, data, element_type, shape)
}

/// As [`read_npy`], of a file whose elements may be of another type, from which they are [cast](Tensor::cast).
pub fn read_npy_cast(
    file: &[u8],
    element_type: ElementType,
    shape: &PartialShape,
) -> Result<Tensor, FileError> {
    let (header, data) = Header::read(file).map_err(FileError::Format)?;
    let is_of = |ty: &ElementType| dtype(*ty).is_some_and(|d| is_stored_as(&header.descr, d));
    let mut plain = ElementType::ALL.into_iter().filter(is_plain);
    match plain.find(is_of) {
        Some(found) if is_plain(&element_type) => {
            Ok(read(&header, data, found, shape)?.cast(element_type)?)
        }
        _ => read(&header, data, element_type, shape),
    }
}

/// Whether NumPy has the type itself, instead of something that stands for it.
fn is_plain(element_type: &ElementType) -> bool {
    use ElementType::*;
    !element_type.is_packed() && !matches!(element_type, BF16 | F8E4M3 | F8E5M2 | F8E8M0 | String)
}

fn read(
    header: &Header,
    data: &[u8],
    element_type: ElementType,
    shape: &PartialShape,
) -> Result<Tensor, FileError> {
    let storage = dtype(element_type).ok_or(TensorError::ElementType {
        expected: "other than string",
        found: element_type,
    })?;
    if !is_stored_as(&header.descr, storage) {
        let found = header.descr.clone();
        return Err(FileError::ElementType {
            expected: element_type,
            storage,
            found,
        });
    }
    let misshapen = |expected| FileError::Shape {
        expected,
        found: header.shape.clone(),
    };
    let found: Option<Vec<usize>> = header
        .shape
        .iter()
        .map(|&d| usize::try_from(d).ok())
        .collect();
    let found = found.ok_or_else(|| misshapen(shape.clone()))?;
    if !element_type.is_packed() {
        if !shape.contains(&found) {
            return Err(misshapen(shape.clone()));
        }
        let mut tensor = Tensor::from_bytes(element_type, &found, data)?;
        let size = element_type.bits() / 8;
        if is_big_endian(&header.descr) {
            let elements = tensor.make_mut()?.chunks_exact_mut(size);
            elements.for_each(<[u8]>::reverse);
        }
        if header.fortran_order && found.len() > 1 {
            let bytes = in_c_order(tensor.bytes(), &found, size);
            tensor = Tensor::from_bytes(element_type, &found, bytes)?;
        }
        return Ok(tensor);
    }
    let unpacked = shape.to_static().ok_or_else(|| {
        FileError::Format(format!(
            "npy: a file of packed {element_type} needs a static shape, not {shape}"
        ))
    })?;
    let bytes = element_count(&unpacked).and_then(|n| element_type.byte_len(n));
    let packed = [bytes.ok_or(TensorError::TooLarge {
        element_type,
        shape: unpacked.clone(),
    })?];
    if found != packed {
        return Err(misshapen(PartialShape::from(&packed[..])));
    }
    Ok(Tensor::from_bytes(element_type, &unpacked, data)?)
}

/// Writes a tensor; one of strings is an error of kind `InvalidInput`.
pub fn write_npy(tensor: &Tensor, mut writer: impl Write) -> io::Result<()> {
    let invalid = |error: Box<dyn std::error::Error + Send + Sync>| {
        io::Error::new(io::ErrorKind::InvalidInput, error)
    };
    let element_type = tensor.element_type();
    let storage = dtype(element_type).ok_or_else(|| {
        invalid(
            TensorError::ElementType {
                expected: "other than string",
                found: element_type,
            }
            .into(),
        )
    })?;
    let packed = [tensor.bytes().len()];
    let shape = match element_type.is_packed() {
        true => &packed[..],
        false => tensor.shape(),
    };
    writer.write_all(&header::write(storage, shape))?;
    writer.write_all(tensor.bytes())
}

/// NumPy's type string for the storage of an element type.
fn dtype(element_type: ElementType) -> Option<&'static str> {
    use ElementType::*;
    Some(match element_type {
        Boolean => "|b1",
        I8 => "|i1",
        I16 => "<i2",
        I32 => "<i4",
        I64 => "<i8",
        U16 | BF16 => "<u2",
        U32 => "<u4",
        U64 => "<u8",
        F16 => "<f2",
        F32 => "<f4",
        F64 => "<f8",
        U1 | U2 | U3 | U4 | U6 | U8 | I4 | F8E4M3 | F8E5M2 | F8E8M0 | F4E2M1 | NF4 => "|u1",
        String => return None,
    })
}

fn is_big_endian(descr: &str) -> bool {
    TypeString::parse(descr).is_some_and(|ty| ty.size > 1 && ty.is_big_endian)
}

/// The elements, of `size` bytes, of an array whose outermost axis is the one that varies fastest.
fn in_c_order(bytes: &[u8], shape: &[usize], size: usize) -> Vec<u8> {
    let mut strides = Vec::with_capacity(shape.len());
    let mut stride = size;
    for extent in shape {
        strides.push(stride);
        stride *= extent;
    }
    let mut ordered = Vec::with_capacity(bytes.len());
    let mut at = vec![0; shape.len()];
    let mut offset = 0;
    while ordered.len() < bytes.len() {
        ordered.extend_from_slice(&bytes[offset..offset + size]);
        // The innermost axis counts first, and passes on what is full.
        for axis in (0..shape.len()).rev() {
            at[axis] += 1;
            offset += strides[axis];
            if at[axis] < shape[axis] {
                break;
            }
            offset -= at[axis] * strides[axis];
            at[axis] = 0;
        }
    }
    ordered
}

/// Whether two type strings mean the same, whatever the order of bytes.
fn is_stored_as(found: &str, expected: &str) -> bool {
    let (found, expected) = (TypeString::parse(found), TypeString::parse(expected));
    let (Some(found), Some(expected)) = (found, expected) else {
        return false;
    };
    found.kind == expected.kind && found.size == expected.size
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use ElementType::*;

    /// A file as NumPy writes it: the header padded to a multiple of 64.
    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        let mut file = b"\x93NUMPY\x01\x00".to_vec();
        let padded = (10 + header.len() + 1).next_multiple_of(64) - 10;
        file.extend((padded as u16).to_le_bytes());
        file.extend(format!("{header:<width$}\n", width = padded - 1).bytes());
        file.extend(data);
        file
    }

    fn dict(descr: &str, shape: &str) -> std::string::String {
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}")
    }

    fn read(file: &[u8], ty: ElementType, shape: &[usize]) -> Result<Tensor, std::string::String> {
        read_npy(file, ty, &PartialShape::from(shape)).map_err(|e| e.to_string())
    }

    #[test]
    fn files_as_numpy_writes_them() {
        let tensor = read(
            &file(&dict("<f4", "(1, 2)"), &[0, 0, 128, 63, 0, 0, 0, 64]),
            F32,
            &[1, 2],
        );
        assert_eq!(
            tensor.unwrap(),
            Tensor::from_slice(&[1, 2], &[1f32, 2.0]).unwrap()
        );
        assert_eq!(
            read(&file(&dict("<i8", "()"), &[7; 8]), I64, &[])
                .unwrap()
                .element_count(),
            1
        );
        assert_eq!(
            read(&file(&dict("|u1", "(2,)"), &[0x21, 3]), U4, &[3])
                .unwrap()
                .to_i64_vec()
                .unwrap(),
            [1, 2, 3]
        );
        assert_eq!(
            read(&file(&dict("<u1", "(1,)"), &[3]), U8, &[1])
                .unwrap()
                .to_i64_vec()
                .unwrap(),
            [3]
        );
        assert_eq!(
            read(&file(&dict("|b1", "(3,)"), &[0, 1, 9]), Boolean, &[3])
                .unwrap()
                .bytes(),
            [0, 1, 1],
        );
        let any = PartialShape::any_of_rank(1);
        let tensor = read_npy(&file(&dict("<u2", "(1,)"), &[0x80, 0x3f]), BF16, &any).unwrap();
        assert_eq!(tensor.to_f64_vec().unwrap(), [1.0]);
    }

    /// As `np.save` writes `np.asfortranarray(np.arange(6).reshape(1, 2, 3))` of big-endian integers.
    #[test]
    fn every_order_is_read() {
        let header = dict(">i2", "(1, 2, 3)").replace("False", "True");
        let data: Vec<u8> = [0i16, 3, 1, 4, 2, 5]
            .into_iter()
            .flat_map(i16::to_be_bytes)
            .collect();
        let tensor = read(&file(&header, &data), I16, &[1, 2, 3]).unwrap();
        assert_eq!(tensor.to_i64_vec().unwrap(), [0, 1, 2, 3, 4, 5]);
        let empty = dict("<f4", "(0, 3)").replace("False", "True");
        assert_eq!(
            read(&file(&empty, &[]), F32, &[0, 3])
                .unwrap()
                .element_count(),
            0
        );
    }

    #[test]
    fn other_types_are_cast_on_request() {
        let any = PartialShape::any_of_rank(1);
        let doubles: Vec<u8> = [0.5f64, -1.0]
            .into_iter()
            .flat_map(f64::to_be_bytes)
            .collect();
        let file = file(&dict(">f8", "(2,)"), &doubles);
        let tensor = read_npy_cast(&file, F32, &any).unwrap();
        assert_eq!(tensor, Tensor::from_slice(&[2], &[0.5f32, -1.0]).unwrap());
        let error = read_npy_cast(&file, I32, &any).unwrap_err().to_string();
        assert_eq!(error, "0.5 of type f64 is no i32");
        let error = read_npy_cast(&file, BF16, &any).unwrap_err().to_string();
        assert!(error.ends_with("stored as <u2, found >f8"), "{error}");
    }

    #[test]
    fn mismatches_say_both_sides() {
        for (header, ty, shape, message) in [
            (
                dict("<f8", "(1,)"),
                F32,
                &[1][..],
                "expected elements of type f32, which is stored as <f4, found <f8",
            ),
            (
                dict("|O", "(1,)"),
                F32,
                &[1],
                "expected elements of type f32, which is stored as <f4, found |O",
            ),
            (
                dict("<f4", "(1, 2)"),
                F32,
                &[2, 1],
                "expected shape [2, 1], found [1, 2]",
            ),
            (
                dict("<f4", "(2,)"),
                F32,
                &[2],
                "f32[2] needs 8 bytes, found 4",
            ),
            (
                dict("|u1", "(4,)"),
                U4,
                &[3],
                "expected shape [2], found [4]",
            ),
            (dict("<f4", "(1,)").replace("False", "True"), F32, &[1], ""),
            (
                dict("<f4", "(1,)"),
                String,
                &[1],
                "expected elements of type other than string, found string",
            ),
        ] {
            let error = read(&file(&header, &[0; 4]), ty, shape)
                .err()
                .unwrap_or_default();
            assert_eq!(error, message, "{header}");
        }
        let any = PartialShape::any_of_rank(2);
        let error = read_npy(&file(&dict("|u1", "(4,)"), &[0; 4]), U4, &any).unwrap_err();
        assert_eq!(
            error.to_string(),
            "npy: a file of packed u4 needs a static shape, not [?, ?]"
        );
    }

    #[test]
    fn a_shape_larger_than_the_file_is_not_allocated() {
        let any = PartialShape::DYNAMIC;
        let huge = file(&dict("<f4", "(1000000000000000000, 7)"), &[]);
        let error = read_npy(&huge, F32, &any).unwrap_err().to_string();
        assert_eq!(error, "f32[1000000000000000000, 7] is too large");
        let large = file(&dict("<f4", "(1000000000000,)"), &[]);
        let error = read_npy(&large, F32, &any).unwrap_err().to_string();
        assert_eq!(
            error,
            "f32[1000000000000] needs 4000000000000 bytes, found 0"
        );
    }

    #[test]
    fn written_so_that_numpy_reads_it() {
        let mut bytes = Vec::new();
        write_npy(
            &Tensor::from_slice(&[1, 2], &[1u16, 2]).unwrap(),
            &mut bytes,
        )
        .unwrap();
        let text = std::string::String::from_utf8_lossy(&bytes[10..]).into_owned();
        assert!(
            text.starts_with("{'descr': '<u2', 'fortran_order': False, 'shape': (1, 2), }"),
            "{text}"
        );
        assert_eq!(&bytes[bytes.len() - 5..], b"\n\x01\0\x02\0");
        for shape in [&[][..], &[2], &[1; 300], &[1; 40_000]] {
            let mut bytes = Vec::new();
            let tensor = Tensor::zeros(U8, shape).unwrap();
            write_npy(&tensor, &mut bytes).unwrap();
            assert_eq!((bytes.len() - tensor.bytes().len()) % 64, 0);
            // NumPy reads no longer ones, either.
            if shape.len() < 1000 {
                assert_eq!(read(&bytes, U8, shape).unwrap(), tensor);
            }
        }
        let strings = Tensor::zeros(String, &[1]).unwrap();
        assert_eq!(
            write_npy(&strings, Vec::new()).unwrap_err().to_string(),
            "expected elements of type other than string, found string"
        );
    }

    #[test]
    fn truncation_is_an_error_at_every_byte() {
        let whole = file(&dict("<f4", "(2,)"), &[0; 8]);
        for end in 0..whole.len() {
            assert!(read(&whole[..end], F32, &[2]).is_err());
        }
    }

    proptest! {
        #[test]
        fn arbitrary_headers_do_not_panic(header in "[{}()\\[\\],:' 0-9a-zéT<|]{0,60}", bytes: Vec<u8>) {
            let _ = read(&file(&header, &bytes), F32, &[2]);
            let _ = read(&bytes, F32, &[2]);
            let _ = read(&file(&dict("<f4", &header), &bytes), F32, &[2]);
        }
    }
}
