//! `ov_partial_shape.h`: what is known of a shape.

use crate::dimension::Dimension;
use crate::ffi::{Array, Out, Required};
use crate::memory;
use crate::shape::{OwnShape, Shape, rank};
use crate::status::{Failure, Result, Status, guard, guard_or};
use libc::c_char;

/// `ov_partial_shape_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct PartialShape<'a> {
    rank: Dimension,
    dims: Array<'a, Dimension>,
}

/// `ov_partial_shape_t`, to be given away.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct OwnPartialShape {
    rank: Dimension,
    dims: *mut Dimension,
}

impl<'a> PartialShape<'a> {
    /// The dimensions; `None` if the rank is not known.
    fn dims(self) -> Result<Option<&'a [Dimension]>> {
        match self.rank.get() {
            None => Ok(None),
            Some(_) => Ok(Some(self.dims.items(rank(self.rank.max)?, "dims")?)),
        }
    }

    pub(crate) fn to_shape(self) -> Result<vinelift::PartialShape> {
        let Some(dims) = self.dims()? else {
            return Ok(vinelift::PartialShape::DYNAMIC);
        };
        let dims = dims.iter().map(|d| d.to_dim().ok_or_else(|| wrong(*d)));
        Ok(vinelift::PartialShape::ranked(dims.collect::<Result<_>>()?))
    }
}

impl OwnPartialShape {
    fn of(dims: &[Dimension]) -> Result<OwnPartialShape> {
        if let Some(bad) = dims.iter().find(|d| d.to_dim().is_none()) {
            return Err(wrong(*bad));
        }
        Ok(OwnPartialShape {
            rank: Dimension::fixed(dims.len() as i64),
            dims: memory::copy_items(dims)?,
        })
    }

    pub(crate) fn of_shape(shape: &vinelift::PartialShape) -> Result<OwnPartialShape> {
        match shape.dims() {
            Some(dims) => {
                let dims = dims.iter().map(|d| Dimension::from_dim(*d));
                OwnPartialShape::of(&dims.collect::<Vec<_>>())
            }
            None => Ok(OwnPartialShape {
                rank: Dimension::fixed(-1),
                dims: std::ptr::null_mut(),
            }),
        }
    }
}

fn wrong(dim: Dimension) -> Failure {
    let Dimension { min, max } = dim;
    Failure::argument(format!("a dimension from {min} to {max}"))
}

/// Makes a partial shape of known rank.
#[unsafe(no_mangle)]
extern "C" fn ov_partial_shape_create(
    rank: i64,
    dims: Array<'_, Dimension>,
    partial_shape_obj: Out<'_, OwnPartialShape>,
) -> Status {
    guard(|| {
        let shape = partial_shape_obj.required("partial_shape_obj")?;
        let dims = dims.items(self::rank(rank)?, "dims")?;
        shape.write(OwnPartialShape::of(dims)?);
        Ok(())
    })
}

/// Makes a partial shape whose rank may not be known; then `dims` may be `NULL`.
#[unsafe(no_mangle)]
extern "C" fn ov_partial_shape_create_dynamic(
    rank: Dimension,
    dims: Array<'_, Dimension>,
    partial_shape_obj: Out<'_, OwnPartialShape>,
) -> Status {
    guard(|| {
        let shape = partial_shape_obj.required("partial_shape_obj")?;
        rank.to_dim().ok_or_else(|| wrong(rank))?;
        shape.write(match (PartialShape { rank, dims }).dims()? {
            Some(dims) => OwnPartialShape::of(dims)?,
            None => OwnPartialShape {
                rank,
                dims: std::ptr::null_mut(),
            },
        });
        Ok(())
    })
}

/// Makes a partial shape of extents that are all known.
#[unsafe(no_mangle)]
extern "C" fn ov_partial_shape_create_static(
    rank: i64,
    dims: Array<'_, i64>,
    partial_shape_obj: Out<'_, OwnPartialShape>,
) -> Status {
    guard(|| {
        let shape = partial_shape_obj.required("partial_shape_obj")?;
        let dims = dims.items(self::rank(rank)?, "dims")?;
        if let Some(wrong) = dims.iter().find(|d| **d < 0) {
            return Err(Failure::argument(format!("an extent of {wrong}")));
        }
        let dims: Vec<Dimension> = dims.iter().map(|d| Dimension::fixed(*d)).collect();
        shape.write(OwnPartialShape::of(&dims)?);
        Ok(())
    })
}

/// Frees the dimensions of a partial shape.
///
/// # Safety
/// The shape comes from this library and was not freed, or has `NULL` for `dims`, or is `NULL`.
#[unsafe(no_mangle)]
unsafe extern "C" fn ov_partial_shape_free(partial_shape: Option<&mut OwnPartialShape>) {
    if let Some(shape) = partial_shape {
        // SAFETY: the caller's promise; the pointer is forgotten.
        unsafe { memory::release(shape.dims) };
        shape.dims = std::ptr::null_mut();
        shape.rank = Dimension::fixed(0);
    }
}

/// The shape, if every dimension is known.
#[unsafe(no_mangle)]
extern "C" fn ov_partial_shape_to_shape(
    partial_shape: PartialShape<'_>,
    shape: Out<'_, OwnShape>,
) -> Status {
    guard(|| {
        let shape = shape.required("shape")?;
        let partial = partial_shape.to_shape()?;
        let extents = partial.to_static().ok_or_else(|| {
            let text = format!("the partial shape {partial} is dynamic");
            Failure::new(Status::ParameterMismatch, text)
        })?;
        shape.write(OwnShape::of_extents(&extents)?);
        Ok(())
    })
}

/// The partial shape that is just this shape.
#[unsafe(no_mangle)]
extern "C" fn ov_shape_to_partial_shape(
    shape: Shape<'_>,
    partial_shape: Out<'_, OwnPartialShape>,
) -> Status {
    guard(|| {
        let partial_shape = partial_shape.required("partial_shape")?;
        let shape = vinelift::PartialShape::from(shape.extents()?.as_slice());
        partial_shape.write(OwnPartialShape::of_shape(&shape)?);
        Ok(())
    })
}

/// Whether the rank or a dimension is not known.
#[unsafe(no_mangle)]
extern "C" fn ov_partial_shape_is_dynamic(partial_shape: PartialShape<'_>) -> bool {
    guard_or(true, || Ok(!partial_shape.to_shape()?.is_static()))
}

/// The partial shape as text, such as `{1,?,2..5}`, to be freed with `ov_free`.
#[unsafe(no_mangle)]
extern "C" fn ov_partial_shape_to_string(partial_shape: PartialShape<'_>) -> *const c_char {
    guard_or(std::ptr::null(), || {
        let shape = partial_shape.to_shape()?;
        Ok(memory::copy_text(&format(&shape))?.cast_const())
    })
}

fn format(shape: &vinelift::PartialShape) -> String {
    let dim = |d: &vinelift::Dim| match (d.min(), d.max()) {
        (0, None) => "?".to_owned(),
        (min, None) => format!("{min}.."),
        (min, Some(max)) if min == max => format!("{min}"),
        (0, Some(max)) => format!("..{max}"),
        (min, Some(max)) => format!("{min}..{max}"),
    };
    match shape.dims() {
        None => "?".to_owned(),
        Some(dims) => {
            let dims: Vec<String> = dims.iter().map(dim).collect();
            format!("{{{}}}", dims.join(","))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ffi::testing::array;

    fn partial<'a>(rank: i64, dims: &'a [Dimension]) -> PartialShape<'a> {
        PartialShape {
            rank: Dimension::fixed(rank),
            dims: array(dims),
        }
    }

    /// The text is OpenVINO 2026.4.1's.
    #[test]
    fn text_is_as_openvino_writes_it() {
        let dim = |min, max| Dimension { min, max };
        let dims = [dim(1, 1), dim(-1, -1), dim(2, 5), dim(0, -1), dim(3, -1)];
        let shape = partial(5, &dims).to_shape().unwrap();
        assert_eq!(format(&shape), "{1,?,2..5,?,3..}");
        assert_eq!(format(&vinelift::PartialShape::DYNAMIC), "?");
        assert_eq!(format(&partial(0, &[]).to_shape().unwrap()), "{}");
    }

    #[test]
    fn what_is_no_shape_is_refused() {
        let message = |shape: PartialShape<'_>| shape.to_shape().unwrap_err().message;
        assert_eq!(
            message(partial(1, &[Dimension { min: 3, max: 2 }])),
            "a dimension from 3 to 2"
        );
        assert_eq!(message(partial(1 << 40, &[])), "a rank of 1099511627776");
        assert!(ov_partial_shape_is_dynamic(partial(-1, &[])));
        assert!(!ov_partial_shape_is_dynamic(partial(0, &[])));
    }
}
