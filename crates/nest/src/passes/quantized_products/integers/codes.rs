//! Codes that are stored: those of constants, and those that are moved to the other type.

use super::{Difference, Zero};
use crate::analysis::Interval;
use crate::build::{integer, select};
use crate::ir::{BufferId, Kind, Nest, Scalar, Stage};
use crate::passes::quantized_products::{Pass, other_type, reads_zero};
use vinelift_tensor::ElementType::{self, F32, I8, I32, U8};

impl Pass<'_> {
    /// A load from a constant whose elements are integers of 8 bits, or are with a zero point, as one from
    /// a tensor of such.
    pub(super) fn narrowed(
        &mut self,
        nest: &mut Nest,
        stage: &Stage,
        x: &Scalar,
    ) -> Option<Difference> {
        let Kind::Load { buffer, at } = x.kind() else {
            return None;
        };
        if reads_zero(at) {
            return None;
        }
        let range = integers((self.constant)(*buffer)?, x.ty())?;
        let (ty, middle) = match (range.low, range.high) {
            (-128.., ..=127) => (I8, 0),
            (0.., ..=255) => (U8, 0),
            (low, high) if high - low <= 255 => (I8, low + 128),
            _ => return None,
        };
        let wide = |x: Scalar| match middle {
            0 => x.cast(I32),
            _ => x.cast(I32) - integer(middle, I32),
        };
        let code = self.stored(nest, stage, *buffer, at, ty, |x| wide(x).cast(ty));
        Some(Difference {
            code,
            wide: wide(x.clone()),
            zero: Zero::Value(-middle),
            range,
        })
    }

    /// The factors with codes of one signed and one unsigned type: of two that are alike, one is moved by 128.
    pub(super) fn of_two_types(
        &mut self,
        nest: &mut Nest,
        stage: &Stage,
        left: Difference,
        right: Difference,
    ) -> (Difference, Difference) {
        match (left.code.ty(), right.code.ty()) {
            (U8, U8) => (left, self.moved(nest, stage, right)),
            (I8, I8) => (self.moved(nest, stage, left), right),
            _ => (left, right),
        }
    }

    /// The same difference with codes of the other type.
    fn moved(&mut self, nest: &mut Nest, stage: &Stage, x: Difference) -> Difference {
        let more = if x.code.ty() == U8 { -128 } else { 128 };
        Difference {
            code: self.moved_code(nest, stage, &x.code, more),
            wide: x.wide + integer(more, I32),
            zero: x.zero.plus(more),
            range: x.range,
        }
    }

    fn moved_code(&mut self, nest: &mut Nest, stage: &Stage, x: &Scalar, more: i64) -> Scalar {
        let ty = other_type(x.ty());
        let moved = |x: Scalar| (x.cast(I32) + integer(more, I32)).cast(ty);
        match x.kind() {
            Kind::Select(condition, inside, outside) => {
                let inside = self.moved_code(nest, stage, inside, more);
                select(condition.clone(), inside, moved(outside.clone()))
            }
            Kind::Load { buffer, at } if !reads_zero(at) => {
                self.stored(nest, stage, *buffer, at, ty, moved)
            }
            _ => moved(x.clone()),
        }
    }

    /// The load of `code(buffer)[at]`, which is stored as a tensor of type `ty`.
    fn stored(
        &mut self,
        nest: &mut Nest,
        stage: &Stage,
        buffer: BufferId,
        at: &[Scalar],
        ty: ElementType,
        code: impl FnOnce(Scalar) -> Scalar,
    ) -> Scalar {
        let key = (buffer, ty);
        if let Some(target) = self.codes.get(&key) {
            return nest.load(*target, at.to_vec());
        }
        let shape = nest.buf(buffer).shape.to_vec();
        let name = format!("{}.{ty}", nest.buf(buffer).name);
        let axes = nest.axes(&shape);
        let points = axes.iter().map(|axis| Scalar::axis(axis.id)).collect();
        let value = code(nest.load(buffer, points));
        let target = self.store(nest, &name, stage, &axes, &value);
        if self.definitions.get(&buffer).is_some() || (self.constant)(buffer).is_some() {
            self.codes.insert(key, target);
        }
        nest.load(target, at.to_vec())
    }
}

/// The range of the elements of a constant, if they are all integers of a few hundred.
pub(super) fn integers(bytes: &[u8], ty: ElementType) -> Option<Interval> {
    let (elements, _) = bytes.as_chunks::<4>();
    let mut range = Interval { low: 0, high: -1 };
    // Most constants are found to be none of these in their first few elements.
    for part in elements.chunks(1024) {
        let (low, high) = match ty {
            I32 => ends(part.iter().map(|x| i32::from_le_bytes(*x))),
            F32 => {
                let values = || part.iter().map(|x| f32::from_le_bytes(*x));
                values().all(|x| x.fract() == 0.0).then_some(())?;
                ends(values().map(|x| x as i32))
            }
            _ => return None,
        };
        range = range.union(Interval {
            low: i64::from(low),
            high: i64::from(high),
        });
        if range.low < -512 || range.high > 512 {
            return None;
        }
    }
    (range.low <= range.high).then_some(range)
}

/// The least and the largest value.
fn ends(values: impl Iterator<Item = i32>) -> (i32, i32) {
    values.fold((i32::MAX, i32::MIN), |(low, high), x| {
        (low.min(x), high.max(x))
    })
}
