//! The common part of the segment operators: positions sorted into segments by `segment_ids`.

use crate::error::ensure;
use crate::{Infer, Lower, OpError};
use vinelift_nest::build::integer;
use vinelift_nest::{BufferId, Policy, Scalar};
use vinelift_tensor::{Dim, ElementType, Extent, symbols};

/// How many segments `num_segments` asks for.
pub(crate) fn count(cx: &Infer<'_>) -> Result<Dim, OpError> {
    let Some(counts) = cx.elements("num_segments")? else {
        return Ok(Dim::ANY);
    };
    ensure!(
        counts.len() == 1,
        "`num_segments` must hold one element, found {}",
        counts.len()
    );
    let negative = || {
        let count = symbols::example(&counts[0]).unwrap_or_default();
        OpError::Shape(format!(
            "`num_segments` must not be negative, found {count}"
        ))
    };
    Ok(Extent::of(counts[0]).ok_or_else(negative)?.into())
}

/// The segment of each position; `count` where `segment_ids` is that or more. A negative id is an
/// error.
pub(crate) fn of_positions(cx: &mut Lower<'_>, count: Extent) -> BufferId {
    let shape = cx.extents("segment_ids");
    let segment = cx.temporary("segment", ElementType::I64, &shape);
    cx.define(segment, |cx, at| {
        let id = cx.load("segment_ids", at);
        let compute = id.ty().compute();
        let most = match count.number() {
            Some(number) => integer(number as i64, compute),
            None => Scalar::extent(count).cast(compute),
        };
        let cut = match compute {
            ElementType::U64 => id.min(most).cast(ElementType::I64),
            _ => id
                .cast(compute)
                .cast(ElementType::I64)
                .min(Scalar::extent(count)),
        };
        cx.wrap(
            cut,
            count.sum(Extent::ONE),
            Policy::CHECK,
            "segment_ids",
            at,
        )
    });
    segment
}
