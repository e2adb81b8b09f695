//! Host tensors: making them, and their bytes. Reading them as numbers is in `view`.

use std::sync::Arc;

use bytes::Bytes;
use half::{bf16, f16};
use zerocopy::IntoBytes;

use crate::storage::{AlignedBytes, Memory, Storage};
use crate::{ElementType, Shape, TensorError, element_count, memory};

/// An array of elements in row-major order, in the packing of the IR format.
///
/// A clone shares the elements; the first write to one of the two copies them. Two tensors are
/// equal if type, shape and all bits are (so `NaN` equals the same `NaN`, and 0 is not −0).
#[derive(Clone)]
pub struct Tensor {
    element_type: ElementType,
    shape: Shape,
    storage: Storage,
}

/// A Rust type that is an element type of tensors.
pub trait Element: Copy + Send + Sync + sealed::Sealed + 'static {
    /// The element type that it is.
    const TYPE: ElementType;
}

impl Tensor {
    /// A tensor of zeros; of empty strings if the type is `string`.
    pub fn zeros(element_type: ElementType, shape: &[usize]) -> Result<Tensor, TensorError> {
        let storage = if element_type == ElementType::String {
            let count = checked_len(element_type, shape)?.0;
            Storage::Strings(Arc::new(memory::filled(count, String::new())?))
        } else {
            Storage::Owned(Arc::new(AlignedBytes::zeros(
                checked_len(element_type, shape)?.1,
            )?))
        };
        Ok(Tensor {
            element_type,
            shape: shape.to_vec(),
            storage,
        })
    }

    /// A tensor of a copy of `bytes`.
    pub fn from_bytes(
        element_type: ElementType,
        shape: &[usize],
        bytes: impl AsRef<[u8]>,
    ) -> Result<Tensor, TensorError> {
        let bytes = bytes.as_ref();
        check_bytes(element_type, shape, bytes.len())?;
        let mut owned = AlignedBytes::copy_of(bytes)?;
        if element_type == ElementType::Boolean {
            normalise_booleans(owned.as_mut_slice());
        }
        Ok(Tensor {
            element_type,
            shape: shape.to_vec(),
            storage: Storage::Owned(Arc::new(owned)),
        })
    }

    /// A tensor whose elements stay where they are, such as in a mapped file, at any alignment.
    ///
    /// Only `boolean` bytes that are neither 0 nor 1 make it a copy.
    pub fn from_shared(
        element_type: ElementType,
        shape: &[usize],
        bytes: Bytes,
    ) -> Result<Tensor, TensorError> {
        check_bytes(element_type, shape, bytes.len())?;
        if element_type == ElementType::Boolean && !are_booleans(&bytes) {
            return Tensor::from_bytes(element_type, shape, bytes);
        }
        Ok(Tensor {
            element_type,
            shape: shape.to_vec(),
            storage: Storage::Shared(bytes),
        })
    }

    /// A tensor that reads and writes `memory` in place, at any alignment, as long as it has no clones.
    ///
    /// In a `boolean` tensor, bytes that are not 0 become 1.
    pub fn from_memory(
        element_type: ElementType,
        shape: &[usize],
        mut memory: impl Memory + 'static,
    ) -> Result<Tensor, TensorError> {
        check_bytes(element_type, shape, memory.as_ref().len())?;
        if element_type == ElementType::Boolean {
            normalise_booleans(memory.as_mut());
        }
        Ok(Tensor {
            element_type,
            shape: shape.to_vec(),
            storage: Storage::Foreign(Arc::new(memory)),
        })
    }

    /// A tensor of a copy of `elements`.
    pub fn from_slice<T: Element>(shape: &[usize], elements: &[T]) -> Result<Tensor, TensorError> {
        check_count(T::TYPE, shape, elements.len())?;
        Tensor::from_bytes(T::TYPE, shape, elements.as_bytes())
    }

    /// A `boolean` tensor.
    pub fn from_bools(shape: &[usize], elements: &[bool]) -> Result<Tensor, TensorError> {
        check_count(ElementType::Boolean, shape, elements.len())?;
        Tensor::from_bytes(ElementType::Boolean, shape, elements.as_bytes())
    }

    /// A `string` tensor.
    pub fn from_strings(shape: &[usize], strings: Vec<String>) -> Result<Tensor, TensorError> {
        check_count(ElementType::String, shape, strings.len())?;
        let storage = Storage::Strings(Arc::new(strings));
        Ok(Tensor {
            element_type: ElementType::String,
            shape: shape.to_vec(),
            storage,
        })
    }

    /// The type of the elements.
    pub fn element_type(&self) -> ElementType {
        self.element_type
    }

    /// The extents, outermost first.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// How many elements there are.
    pub fn element_count(&self) -> usize {
        // The constructors have checked that it does not overflow.
        element_count(&self.shape).unwrap_or(0)
    }

    /// The elements' bytes; none if they are strings.
    pub fn bytes(&self) -> &[u8] {
        self.storage.bytes()
    }

    /// The elements' bytes, to be written; none if they are strings.
    ///
    /// They are copied first if they are shared, and aligned to 64 but in [`Tensor::from_memory`]. Who writes a `boolean` tensor
    /// must leave 0 or 1 in every byte.
    ///
    /// # Panics
    /// If there is no memory for that copy; [`make_mut`](Tensor::make_mut) gives an error instead.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        match self.storage.bytes_mut() {
            Ok(bytes) => bytes,
            Err(error) => panic!("{error}"),
        }
    }

    /// As [`bytes_mut`](Tensor::bytes_mut), but memory that cannot be had is an error.
    pub fn make_mut(&mut self) -> Result<&mut [u8], TensorError> {
        self.storage.bytes_mut()
    }

    /// Whether the elements lie in memory of their own that no other tensor uses: to write them changes nothing
    /// else and copies nothing.
    pub fn is_unshared(&self) -> bool {
        self.storage.is_unshared()
    }

    /// The strings, if the type is `string`.
    pub fn strings(&self) -> Option<&[String]> {
        match &self.storage {
            Storage::Strings(strings) => Some(strings),
            Storage::Owned(_) | Storage::Shared(_) | Storage::Foreign(_) => None,
        }
    }

    /// The same elements in another shape; they are shared, not copied.
    pub fn reshaped(&self, shape: &[usize]) -> Result<Tensor, TensorError> {
        check_count(self.element_type, shape, self.element_count())?;
        Ok(Tensor {
            shape: shape.to_vec(),
            ..self.clone()
        })
    }
}

impl PartialEq for Tensor {
    fn eq(&self, other: &Tensor) -> bool {
        self.element_type == other.element_type
            && self.shape == other.shape
            && self.strings() == other.strings()
            && self.bytes() == other.bytes()
    }
}

impl Eq for Tensor {}

/// Elements and bytes of a tensor.
fn checked_len(element_type: ElementType, shape: &[usize]) -> Result<(usize, usize), TensorError> {
    element_count(shape)
        .and_then(|count| Some((count, element_type.byte_len(count)?)))
        .filter(|&(_, bytes)| bytes <= isize::MAX as usize)
        .ok_or_else(|| TensorError::TooLarge {
            element_type,
            shape: shape.to_vec(),
        })
}

fn check_bytes(
    element_type: ElementType,
    shape: &[usize],
    found: usize,
) -> Result<(), TensorError> {
    if element_type == ElementType::String {
        return Err(TensorError::ElementType {
            expected: "other than string",
            found: element_type,
        });
    }
    let (_, expected) = checked_len(element_type, shape)?;
    if found == expected {
        return Ok(());
    }
    Err(TensorError::ByteLength {
        element_type,
        shape: shape.to_vec(),
        expected,
        found,
    })
}

pub(crate) fn check_count(
    element_type: ElementType,
    shape: &[usize],
    found: usize,
) -> Result<(), TensorError> {
    let (expected, _) = checked_len(element_type, shape)?;
    if found == expected {
        return Ok(());
    }
    Err(TensorError::ElementCount {
        shape: shape.to_vec(),
        expected,
        found,
    })
}

/// Whether all are 0 or 1.
fn are_booleans(bytes: &[u8]) -> bool {
    // Without a branch for each byte, many are looked at together.
    let mut blocks = bytes.chunks(4096);
    blocks.all(|block| block.iter().fold(0, |all, byte| all | byte) <= 1)
}

fn normalise_booleans(bytes: &mut [u8]) {
    for byte in bytes {
        *byte = u8::from(*byte != 0);
    }
}

mod sealed {
    use zerocopy::{FromBytes, Immutable, IntoBytes};

    /// A type that any bytes are a value of.
    pub trait Sealed: FromBytes + Immutable + IntoBytes {}
}

macro_rules! elements {
    ($($rust:ty: $variant:ident),* $(,)?) => {$(
        impl sealed::Sealed for $rust {}
        impl Element for $rust {
            const TYPE: ElementType = ElementType::$variant;
        }
    )*};
}

elements! {
    u8: U8, u16: U16, u32: U32, u64: U64,
    i8: I8, i16: I16, i32: I32, i64: I64,
    f16: F16, bf16: BF16, f32: F32, f64: F64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use ElementType::*;

    #[test]
    fn bytes_must_fit_type_and_shape() {
        let message = |result: Result<Tensor, TensorError>| result.unwrap_err().to_string();
        assert_eq!(
            message(Tensor::from_bytes(F32, &[2, 3], [0; 23])),
            "f32[2, 3] needs 24 bytes, found 23"
        );
        assert_eq!(
            message(Tensor::from_bytes(U3, &[9], [0; 4])),
            "u3[9] needs 6 bytes, found 4"
        );
        assert_eq!(
            message(Tensor::from_bytes(String, &[1], [])),
            "expected elements of type other than string, found string"
        );
        assert_eq!(
            message(Tensor::from_slice(&[2, 2], &[1i32])),
            "shape [2, 2] needs 4 elements, found 1"
        );
        assert_eq!(
            message(Tensor::from_strings(&[2], vec![])),
            "shape [2] needs 2 elements, found 0"
        );
        let huge = [usize::MAX / 2, 2, 2];
        assert_eq!(
            message(Tensor::zeros(U8, &huge)),
            format!("u8{huge:?} is too large")
        );
        assert_eq!(
            message(Tensor::zeros(F64, &[1 << 61])),
            "f64[2305843009213693952] is too large"
        );
        let most = 1usize << 62;
        assert_eq!(
            message(Tensor::zeros(U8, &[most])),
            format!("out of memory: cannot allocate {most} bytes")
        );
        assert!(message(Tensor::zeros(String, &[1 << 57])).starts_with("out of memory"));
        assert_eq!(
            message(Tensor::zeros(U8, &[4]).unwrap().reshaped(&[3])),
            "shape [3] needs 3 elements, found 4"
        );
    }

    #[test]
    fn empty_and_scalar_tensors() {
        let empty = Tensor::zeros(F32, &[usize::MAX, 0]).unwrap();
        assert_eq!((empty.element_count(), empty.bytes()), (0, &[][..]));
        let scalar = Tensor::from_slice(&[], &[7i64]).unwrap();
        assert_eq!(scalar.bytes(), 7i64.to_le_bytes());
        assert_eq!(
            Tensor::zeros(String, &[2]).unwrap().strings().unwrap(),
            ["", ""]
        );
    }

    #[test]
    fn a_write_copies_what_is_shared() {
        let mut a = Tensor::from_slice(&[2], &[1u8, 2]).unwrap();
        let b = a.clone();
        assert_eq!(a.bytes().as_ptr(), b.bytes().as_ptr());
        a.bytes_mut()[0] = 9;
        assert_eq!((a.bytes(), b.bytes()), (&[9, 2][..], &[1, 2][..]));
        let before = a.bytes().as_ptr();
        a.bytes_mut()[0] = 8;
        assert_eq!(
            a.bytes().as_ptr(),
            before,
            "bytes without another user stay in place"
        );

        let mut shared = Tensor::from_shared(U8, &[2], Bytes::from_static(&[1, 2])).unwrap();
        assert_eq!(shared.make_mut().unwrap().as_ptr().align_offset(64), 0);
        assert_eq!(shared, b);
    }

    #[test]
    fn booleans_are_0_or_1() {
        let expected = Tensor::from_bools(&[3], &[false, true, true]).unwrap();
        let bytes = [0u8, 1, 255];
        assert_eq!(Tensor::from_bytes(Boolean, &[3], bytes).unwrap(), expected);
        assert_eq!(
            Tensor::from_shared(Boolean, &[3], Bytes::copy_from_slice(&bytes)).unwrap(),
            expected
        );
    }

    #[test]
    fn equality_is_of_bits() {
        let of = |value: f32| Tensor::from_slice(&[], &[value]).unwrap();
        assert_eq!(of(f32::NAN), of(f32::NAN));
        assert_ne!(of(0.0), of(-0.0));
        assert_ne!(of(0.0), Tensor::zeros(I32, &[]).unwrap());
        assert_ne!(of(0.0), of(0.0).reshaped(&[1]).unwrap());
    }
}
