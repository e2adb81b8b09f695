//! How scalars change from one image of a batch to the next.
//!
//! > `x(a + m·s) = x(a) + m·k` for every `m`: `k` is the shift of `x` where axis `a` moves by `s`

use super::slices::Slices;
use crate::analysis::{Ranges, ranges_of};
use crate::ir::{AxisId, Binary, Kind, Scalar, Stage, visit};
use rustc_hash::FxHashMap;
use vinelift_tensor::ElementType;

/// The shifts of the scalars of a stage.
pub(super) struct Shifts<'a> {
    axis: AxisId,
    by: i64,
    slices: &'a [Option<Slices>],
    ranges: Ranges,
    /// Of the scalars that were met, but for leaves; `None` if one may have none.
    known: FxHashMap<usize, Option<i64>>,
}

impl<'a> Shifts<'a> {
    /// Where `axis` of `stage` moves by `by`; buffers of the nest have `slices`.
    pub(super) fn new(
        stage: &Stage,
        axis: AxisId,
        by: i64,
        slices: &'a [Option<Slices>],
    ) -> Shifts<'a> {
        Shifts {
            axis,
            by,
            slices,
            ranges: ranges_of(stage),
            known: FxHashMap::default(),
        }
    }

    /// Whether a scalar of the stage stays the same while each of its loads goes on to the next slice.
    pub(super) fn is_still(&mut self, x: &Scalar) -> bool {
        visit(x, &mut |x| {
            if !x.is_leaf() {
                let shift = self.of_node(x);
                self.known.insert(x.address(), shift);
            }
        });
        self.of(x) == Some(0)
    }

    /// The shift of a leaf, or of a scalar that was met before.
    fn of(&self, x: &Scalar) -> Option<i64> {
        match x.kind() {
            Kind::Axis(id) if *id == self.axis => Some(self.by),
            _ if x.is_leaf() => Some(0),
            _ => self.known.get(&x.address()).copied().flatten(),
        }
    }

    /// The shift of a scalar whose operands have been met.
    fn of_node(&mut self, x: &Scalar) -> Option<i64> {
        let is_still = match x.kind() {
            Kind::Binary(op, a, b) if x.ty() == ElementType::I64 => {
                return self.of_index(*op, a, b);
            }
            Kind::Load { buffer, at } => {
                let slices = &self.slices[buffer.0 as usize];
                let mut indices = at.iter().enumerate();
                indices.all(|(dim, index)| match slices {
                    Some(slices) if slices.dim == dim => {
                        self.of(index).is_some_and(|k| slices.reaches(k))
                    }
                    _ => self.of(index) == Some(0),
                })
            }
            // Its position is for the message of a fault, and it has none.
            Kind::Wrap(w) if !x.may_fault() => self.of(&w.index) == Some(0),
            _ => x.children().all(|c| self.of(c) == Some(0)),
        };
        is_still.then_some(0)
    }

    /// The shift of `op(a, b)` for `i64`.
    fn of_index(&mut self, op: Binary, a: &Scalar, b: &Scalar) -> Option<i64> {
        match (op, self.of(a)?, self.of(b)?) {
            (_, 0, 0) => Some(0),
            (Binary::Add, k, l) => k.checked_add(l),
            (Binary::Sub, k, l) => k.checked_sub(l),
            (Binary::Mul, k, 0) => k.checked_mul(b.as_index()?),
            (Binary::Mul, 0, l) => l.checked_mul(a.as_index()?),
            (Binary::Div | Binary::Rem, k, 0) => {
                let d = b.as_index().filter(|d| *d > 0 && k % d == 0)?;
                // A quotient moves along with its dividend if that neither is negative nor wraps.
                let range = self.ranges.of(a);
                let is_exact = range.low >= 0 && range.high < i64::MAX;
                let shift = if op == Binary::Div { k / d } else { 0 };
                is_exact.then_some(shift)
            }
            _ => None,
        }
    }
}
