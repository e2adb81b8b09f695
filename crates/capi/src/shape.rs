//! `ov_shape.h`: the extents of a tensor.

use crate::ffi::{Array, Out, Required};
use crate::memory;
use crate::status::{Failure, Result, Status, guard};

/// `ov_shape_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Shape<'a> {
    rank: i64,
    dims: Array<'a, i64>,
}

/// `ov_shape_t`, to be given away.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct OwnShape {
    rank: i64,
    dims: *mut i64,
}

impl Shape<'_> {
    /// The extents.
    pub(crate) fn extents(self) -> Result<vinelift::Shape> {
        let dims = self.dims.items(rank(self.rank)?, "shape.dims")?;
        dims.iter().map(|d| extent(*d)).collect()
    }
}

impl OwnShape {
    pub(crate) fn of(extents: &[i64]) -> Result<OwnShape> {
        Ok(OwnShape {
            rank: extents.len() as i64,
            dims: memory::copy_items(extents)?,
        })
    }

    pub(crate) fn of_extents(extents: &[usize]) -> Result<OwnShape> {
        let number = |n: &usize| i64::try_from(*n).unwrap_or(i64::MAX);
        OwnShape::of(&extents.iter().map(number).collect::<Vec<_>>())
    }
}

/// A rank of an array that a caller gives: none is larger than this.
pub(crate) fn rank(rank: i64) -> Result<usize> {
    const MOST: i64 = 1 << 16;
    if (0..=MOST).contains(&rank) {
        Ok(rank as usize)
    } else {
        Err(Failure::argument(format!("a rank of {rank}")))
    }
}

fn extent(extent: i64) -> Result<usize> {
    usize::try_from(extent).map_err(|_| Failure::argument(format!("an extent of {extent}")))
}

/// Makes a shape of these extents; of zeros if `dims` is `NULL`.
#[unsafe(no_mangle)]
extern "C" fn ov_shape_create(rank: i64, dims: Array<'_, i64>, shape: Out<'_, OwnShape>) -> Status {
    guard(|| {
        let shape = shape.required("shape")?;
        let rank = self::rank(rank)?;
        let zeros = vec![0; rank];
        let dims = match dims.is_null() {
            true => &zeros,
            false => dims.items(rank, "dims")?,
        };
        if let Some(wrong) = dims.iter().find(|d| **d < 0) {
            return Err(Failure::argument(format!("an extent of {wrong}")));
        }
        shape.write(OwnShape::of(dims)?);
        Ok(())
    })
}

/// Frees the extents of a shape.
///
/// # Safety
/// The shape comes from this library and was not freed, or has `NULL` for `dims`, or is `NULL`.
#[unsafe(no_mangle)]
unsafe extern "C" fn ov_shape_free(shape: Option<&mut OwnShape>) -> Status {
    guard(|| {
        let shape = shape.required("shape")?;
        // SAFETY: the caller's promise; the pointer is forgotten.
        unsafe { memory::release(shape.dims) };
        *shape = OwnShape {
            rank: 0,
            dims: std::ptr::null_mut(),
        };
        Ok(())
    })
}
