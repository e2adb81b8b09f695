//! The common part of the segment operators: positions sorted into segments by `segment_ids`.

use crate::error::ensure;
use crate::{Infer, Lower, OpError};
use vinelift_nest::build::{index, integer};
use vinelift_nest::{BufferId, Policy};
use vinelift_tensor::{Dim, ElementType};

/// How many segments `num_segments` asks for.
pub(crate) fn count(cx: &Infer<'_>) -> Result<Dim, OpError> {
    let Some(count) = cx.integer("num_segments")? else {
        return Ok(Dim::ANY);
    };
    ensure!(
        count >= 0,
        "`num_segments` must not be negative, found {count}"
    );
    Ok(Dim::fixed(count as usize))
}

/// The segment of each position; `count` where `segment_ids` is that or more. A negative id is an
/// error.
pub(crate) fn of_positions(cx: &mut Lower<'_>, count: usize) -> BufferId {
    let shape = cx.extents("segment_ids");
    let segment = cx.temporary("segment", ElementType::I64, &shape);
    cx.define(segment, |cx, at| {
        let id = cx.load("segment_ids", at);
        let compute = id.ty().compute();
        let cut = match compute {
            ElementType::U64 => id
                .min(integer(count as i64, compute))
                .cast(ElementType::I64),
            _ => id
                .cast(compute)
                .cast(ElementType::I64)
                .min(index(count as i64)),
        };
        cx.wrap(cut, count + 1, Policy::CHECK, "segment_ids", at)
    });
    segment
}
