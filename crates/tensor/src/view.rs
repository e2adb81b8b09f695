//! Reading a tensor's elements: as slices, as numbers, as text.

use std::borrow::Cow;
use std::fmt;

use half::{bf16, f16};
use zerocopy::{FromBytes, Unalign};

use crate::{Element, ElementType, Tensor, TensorError, float8, memory, packed};
use ElementType::*;

/// How many elements `Display` shows.
const SHOWN: usize = 8;
/// How many characters of a string element are shown.
const SHOWN_CHARS: usize = 64;

impl Tensor {
    /// The elements, if they are of exactly this type; a copy if they are not aligned for it.
    pub fn as_slice<T: Element>(&self) -> Result<Cow<'_, [T]>, TensorError> {
        self.check_type::<T>()?;
        match <[T]>::ref_from_bytes(self.bytes()) {
            Ok(slice) => Ok(Cow::Borrowed(slice)),
            Err(_) => Ok(Cow::Owned(self.collect_as(|x: T| x)?)),
        }
    }

    /// The elements, to be written, if they are of exactly this type; copied first if shared, or if they
    /// are not aligned for it.
    pub fn as_mut_slice<T: Element>(&mut self) -> Result<&mut [T], TensorError> {
        self.check_type::<T>()?;
        if !self.bytes().as_ptr().cast::<T>().is_aligned() {
            *self = Tensor::from_bytes(self.element_type(), self.shape(), self.bytes())?;
        }
        // Bytes that are copied are aligned to 64, so this cannot fail.
        <[T]>::mut_from_bytes(self.make_mut()?).map_err(|_| TensorError::ElementType {
            expected: T::TYPE.name(),
            found: T::TYPE,
        })
    }

    /// The elements of a tensor of any integer type or `boolean`; a `u64` above `i64::MAX` becomes
    /// `i64::MAX`.
    pub fn to_i64_vec(&self) -> Result<Vec<i64>, TensorError> {
        match self.element_type() {
            Boolean => self.collect_as::<u8, _>(|b| i64::from(b != 0)),
            U1 | U2 | U3 | U4 | U6 => self.collect_codes(i64::from),
            I4 => self.collect_codes(|code| i64::from(packed::sign_extend_i4(code))),
            U8 => self.collect_as::<u8, _>(i64::from),
            U16 => self.collect_as::<u16, _>(i64::from),
            U32 => self.collect_as::<u32, _>(i64::from),
            U64 => self.collect_as::<u64, _>(|n| i64::try_from(n).unwrap_or(i64::MAX)),
            I8 => self.collect_as::<i8, _>(i64::from),
            I16 => self.collect_as::<i16, _>(i64::from),
            I32 => self.collect_as::<i32, _>(i64::from),
            I64 => self.collect_as::<i64, _>(|n| n),
            F16 | BF16 | F32 | F64 | F8E4M3 | F8E5M2 | F8E8M0 | F4E2M1 | NF4 | String => {
                Err(TensorError::ElementType {
                    expected: "integer or boolean",
                    found: self.element_type(),
                })
            }
        }
    }

    /// The elements of a tensor of any integer type or `boolean`, all exact.
    pub fn to_i128_vec(&self) -> Result<Vec<i128>, TensorError> {
        match self.element_type() {
            U64 => self.collect_as::<u64, _>(i128::from),
            _ => Ok(self.to_i64_vec()?.into_iter().map(i128::from).collect()),
        }
    }

    /// The elements of a tensor of any type but `string`; exact, except for integers beyond 2⁵³.
    pub fn to_f64_vec(&self) -> Result<Vec<f64>, TensorError> {
        let ty = self.element_type();
        match ty {
            F16 => self.collect_as::<f16, _>(f64::from),
            BF16 => self.collect_as::<bf16, _>(f64::from),
            F32 => self.collect_as::<f32, _>(f64::from),
            F64 => self.collect_as::<f64, _>(|x| x),
            F8E4M3 | F8E5M2 | F8E8M0 | F4E2M1 | NF4 => {
                self.collect_codes(|code| float8::decode(ty, code).map_or(f64::NAN, f64::from))
            }
            U64 => self.collect_as::<u64, _>(|n| n as f64),
            String => Err(TensorError::ElementType {
                expected: "a number",
                found: ty,
            }),
            _ => memory::collected(self.to_i64_vec()?.into_iter().map(|n| n as f64)),
        }
    }

    /// The first `n` elements as text, fewer if there are fewer; strings are quoted.
    pub fn first_values(&self, n: usize) -> Vec<std::string::String> {
        (0..n.min(self.element_count()))
            .filter_map(|k| self.element_text(k))
            .collect()
    }

    fn element_text(&self, k: usize) -> Option<std::string::String> {
        let ty = self.element_type();
        if let Some(strings) = self.strings() {
            return strings.get(k).map(|s| quoted(s));
        }
        if ty.bits() <= 8 {
            let code = packed::get(ty, self.bytes(), k);
            return Some(match ty {
                Boolean => (code != 0).to_string(),
                I4 => packed::sign_extend_i4(code).to_string(),
                I8 => (code as i8).to_string(),
                _ => match float8::decode(ty, code) {
                    Some(x) => format!("{x:?}"),
                    None => code.to_string(),
                },
            });
        }
        fn element<T: Element>(tensor: &Tensor, k: usize) -> Option<T> {
            tensor.elements().get(k).map(Unalign::get)
        }
        // `{:?}` of a float is the shortest text that reads back as it, with an exponent if long.
        match ty {
            U16 => element::<u16>(self, k).map(|n| n.to_string()),
            U32 => element::<u32>(self, k).map(|n| n.to_string()),
            U64 => element::<u64>(self, k).map(|n| n.to_string()),
            I16 => element::<i16>(self, k).map(|n| n.to_string()),
            I32 => element::<i32>(self, k).map(|n| n.to_string()),
            I64 => element::<i64>(self, k).map(|n| n.to_string()),
            F16 => element::<f16>(self, k).map(|x| format!("{:?}", x.to_f32())),
            BF16 => element::<bf16>(self, k).map(|x| format!("{:?}", x.to_f32())),
            F32 => element::<f32>(self, k).map(|x| format!("{x:?}")),
            F64 => element::<f64>(self, k).map(|x| format!("{x:?}")),
            _ => None,
        }
    }

    fn check_type<T: Element>(&self) -> Result<(), TensorError> {
        if self.element_type() == T::TYPE {
            return Ok(());
        }
        Err(TensorError::ElementType {
            expected: T::TYPE.name(),
            found: self.element_type(),
        })
    }

    fn collect_as<T: Element, R>(&self, convert: impl Fn(T) -> R) -> Result<Vec<R>, TensorError> {
        let mut all = memory::room_for(self.element_count())?;
        all.extend(self.elements::<T>().iter().map(|x| convert(x.get())));
        Ok(all)
    }

    /// The elements, which have the size of a `T`, at any alignment.
    pub(crate) fn elements<T: Element>(&self) -> &[Unalign<T>] {
        // It fails for parts of an element alone, and a tensor has none.
        <[Unalign<T>]>::ref_from_bytes(self.bytes()).unwrap_or(&[])
    }

    fn collect_codes<R>(&self, decode: impl Fn(u8) -> R) -> Result<Vec<R>, TensorError> {
        let mut all = memory::room_for(self.element_count())?;
        let (ty, bytes) = (self.element_type(), self.bytes());
        all.extend((0..self.element_count()).map(|k| decode(packed::get(ty, bytes, k))));
        Ok(all)
    }
}

fn quoted(s: &str) -> std::string::String {
    match s.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{:?}…", s.get(..end).unwrap_or(s)),
        None => format!("{s:?}"),
    }
}

/// Type, shape and the first elements: `f32[2, 3] 0.1, 0.2, 0.3, 0.4, 0.5, 0.6`.
impl fmt::Display for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}", self.element_type(), self.shape())?;
        for (i, value) in self.first_values(SHOWN).iter().enumerate() {
            write!(f, "{}{value}", if i == 0 { " " } else { ", " })?;
        }
        f.write_str(if self.element_count() > SHOWN {
            ", …"
        } else {
            ""
        })
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn foreign_memory_is_written_in_place_while_it_has_one_owner() {
        let mut tensor = Tensor::from_memory(U8, &[2], vec![1, 2]).unwrap();
        let start = tensor.bytes().as_ptr();
        tensor.as_mut_slice::<u8>().unwrap()[0] = 7;
        assert_eq!(tensor.bytes().as_ptr(), start);
        let clone = tensor.clone();
        tensor.as_mut_slice::<u8>().unwrap()[0] = 8;
        assert_eq!((tensor.bytes(), clone.bytes()), (&[8, 2][..], &[7, 2][..]));
        assert_eq!(clone.bytes().as_ptr(), start);

        struct Odd([u8; 9]);
        impl Odd {
            fn start(&self) -> usize {
                usize::from(self.0.as_ptr().addr().is_multiple_of(2))
            }
        }
        impl AsRef<[u8]> for Odd {
            fn as_ref(&self) -> &[u8] {
                &self.0[self.start()..][..8]
            }
        }
        impl AsMut<[u8]> for Odd {
            fn as_mut(&mut self) -> &mut [u8] {
                let start = self.start();
                &mut self.0[start..][..8]
            }
        }
        let mut odd = Tensor::from_memory(F32, &[2], Odd([0; 9])).unwrap();
        odd.as_mut_slice::<f32>().unwrap()[1] = 3.0;
        assert_eq!(*odd.as_slice::<f32>().unwrap(), [0.0, 3.0]);

        let bools = Tensor::from_memory(Boolean, &[3], vec![0, 1, 9]).unwrap();
        assert_eq!(bools.bytes(), [0, 1, 1]);
        assert!(Tensor::from_memory(F32, &[2], vec![0; 7]).is_err());
    }

    #[test]
    fn a_slice_is_borrowed_if_aligned_and_copied_if_not() {
        let bytes = Bytes::from((0..40).collect::<Vec<u8>>());
        for start in 0..4 {
            let tensor = Tensor::from_shared(U32, &[4], bytes.slice(start..start + 16)).unwrap();
            let first = start as u32;
            assert_eq!(
                tensor.as_slice::<u32>().unwrap()[0],
                first | (first + 1) << 8 | (first + 2) << 16 | (first + 3) << 24
            );
        }
        let owned = Tensor::from_slice(&[2], &[1.5f32, 2.5]).unwrap();
        assert!(matches!(
            owned.as_slice::<f32>().unwrap(),
            Cow::Borrowed([1.5, 2.5])
        ));
        assert_eq!(
            owned.as_slice::<i32>().unwrap_err().to_string(),
            "expected elements of type i32, found f32"
        );
    }

    #[test]
    fn slices_are_written_in_place() {
        let mut tensor = Tensor::zeros(I64, &[2]).unwrap();
        tensor.as_mut_slice::<i64>().unwrap()[1] = -5;
        assert_eq!(tensor.to_i64_vec().unwrap(), [0, -5]);
        assert!(tensor.as_mut_slice::<u64>().is_err());
    }

    #[test]
    fn integers_of_every_width() {
        let i64s = |tensor: Result<Tensor, TensorError>| tensor.unwrap().to_i64_vec().unwrap();
        assert_eq!(
            i64s(Tensor::from_bytes(I4, &[5], [0xf8, 0x70, 0x01])),
            [-8, -1, 0, 7, 1]
        );
        assert_eq!(
            i64s(Tensor::from_bytes(U3, &[3], [0xc0, 0, 0x80])),
            [7, 0, 0]
        );
        assert_eq!(
            i64s(Tensor::from_slice(&[2], &[u64::MAX, 3])),
            [i64::MAX, 3]
        );
        assert_eq!(i64s(Tensor::from_slice(&[2], &[i8::MIN, 3])), [-128, 3]);
        assert_eq!(i64s(Tensor::from_bools(&[2], &[true, false])), [1, 0]);
        let error = Tensor::zeros(F16, &[1]).unwrap().to_i64_vec().unwrap_err();
        assert_eq!(
            error.to_string(),
            "expected elements of type integer or boolean, found f16"
        );
    }

    #[test]
    fn numbers_of_every_type() {
        let f64s = |tensor: Result<Tensor, TensorError>| tensor.unwrap().to_f64_vec().unwrap();
        assert_eq!(f64s(Tensor::from_slice(&[1], &[f16::from_f32(0.5)])), [0.5]);
        assert_eq!(
            f64s(Tensor::from_slice(&[1], &[bf16::from_f32(-2.0)])),
            [-2.0]
        );
        assert_eq!(
            f64s(Tensor::from_slice(&[1], &[u64::MAX])),
            [u64::MAX as f64]
        );
        assert_eq!(
            f64s(Tensor::from_bytes(F4E2M1, &[3], [0x71, 0x0f])),
            [0.5, 6.0, -6.0]
        );
        assert_eq!(f64s(Tensor::from_bytes(F8E5M2, &[1], [0x3c])), [1.0]);
        for ty in ElementType::ALL {
            let zeros = Tensor::zeros(ty, &[3]).unwrap();
            assert_eq!(zeros.to_f64_vec().is_ok(), ty != String, "{ty}");
            assert_eq!(zeros.first_values(9).len(), 3, "{ty}");
        }
    }

    #[test]
    fn shown_readably() {
        let show = |tensor: Result<Tensor, TensorError>| tensor.unwrap().to_string();
        assert_eq!(
            show(Tensor::from_slice(&[1, 2], &[0.1f32, 1e30])),
            "f32[1, 2] 0.1, 1e30"
        );
        assert_eq!(
            show(Tensor::zeros(U8, &[9])),
            "u8[9] 0, 0, 0, 0, 0, 0, 0, 0, …"
        );
        assert_eq!(show(Tensor::from_bytes(I4, &[2], [0xf1])), "i4[2] 1, -1");
        assert_eq!(
            show(Tensor::from_strings(
                &[2],
                vec!["a\"".into(), "é".repeat(65)]
            )),
            format!("string[2] \"a\\\"\", \"{}\"…", "é".repeat(64))
        );
        assert_eq!(show(Tensor::zeros(F32, &[0])), "f32[0]");
        assert_eq!(
            format!("{:?}", Tensor::from_bools(&[], &[true]).unwrap()),
            "boolean[] true"
        );
    }
}
