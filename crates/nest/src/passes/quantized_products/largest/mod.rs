//! The largest value in a window of values on a grid: its code is the largest of their codes.

#[cfg(test)]
mod tests;

use crate::analysis::Ranges;
use crate::build::{index, lowest, select, zero};
use crate::ir::{
    Axis, Binary, BufferId, Kind, Mode, Nest, Scalar, Stage, as_binary, as_select, free_axes,
    rewrite,
};
use crate::passes::simplify::simplify_stage;
use vinelift_tensor::Extent;

/// The most places of a window that [`Window::of`] checks for lying in the buffer, from the middle of the window on.
const MOST_PLACES: usize = 64;

/// A window over a buffer, by the axes of the domain of a stage and its own.
#[derive(Clone)]
pub(super) struct Window {
    axes: Vec<Axis>,
    /// Where the window lies in the buffer, if it may reach beyond.
    condition: Option<Scalar>,
    pub(super) buffer: BufferId,
    pub(super) at: Vec<Scalar>,
}

impl Window {
    /// The window of which every value of `stage` is the largest, if it is over a buffer that fits, and one of its places lies in that
    /// for all points. If only numbers in place of symbols tell so, the extents are pinned to them.
    pub(super) fn of(
        nest: &Nest,
        stage: &Stage,
        fits: impl Fn(BufferId) -> bool,
    ) -> Option<Window> {
        let (largest, may_be_empty) = match stage.value.kind() {
            Kind::Select(_, largest, _) => (largest, true),
            _ => (&stage.value, false),
        };
        let window = Window::of_fold(largest).filter(|window| fits(window.buffer))?;
        let is_plain = stage.mode == Mode::Set && stage.group.is_none();
        let has_values = is_plain && !may_be_empty && window.has_values(nest, stage);
        if is_plain && !has_values {
            let extents = stage.domain.iter().map(|axis| axis.extent);
            for extent in extents.filter(|extent| extent.is_symbolic()) {
                extent.pin();
            }
        }
        has_values.then_some(window)
    }

    fn of_fold(largest: &Scalar) -> Option<Window> {
        let Kind::Reduce {
            op: Binary::Max,
            axes,
            init,
            body,
        } = largest.kind()
        else {
            return None;
        };
        let is_lowest = |x: &Scalar| *x == lowest(x.ty());
        let (condition, load) = match body.kind() {
            Kind::Select(condition, load, beyond) if is_lowest(beyond) => (Some(condition), load),
            _ => (None, body),
        };
        let Kind::Load { buffer, at } = load.kind() else {
            return None;
        };
        let is_plain = |x: &Scalar| !x.loads() && !x.may_fault() && !x.reads_zero();
        if !is_lowest(init) || !at.iter().chain(condition).all(is_plain) {
            return None;
        }
        Some(Window {
            axes: axes.clone(),
            condition: condition.cloned(),
            buffer: *buffer,
            at: at.clone(),
        })
    }

    /// Whether there is a place in the window that lies in the buffer for every point of the domain.
    fn has_values(&self, nest: &Nest, stage: &Stage) -> bool {
        let extents = self.axes.iter().map(|axis| axis.extent.number());
        let Some(extents) = extents.collect::<Option<Vec<usize>>>() else {
            return false;
        };
        let count = extents.iter().fold(1usize, |n, m| n.saturating_mul(*m));
        let load = nest.load(self.buffer, self.at.clone());
        let outside = zero(load.ty());
        let guarded = self.guarded(load, outside);
        // The place in the middle comes first, as it lies in the buffer most often.
        (0..count.min(MOST_PLACES)).any(|place| {
            let mut rest = (place + count / 2) % count;
            let mut along = vec![0; extents.len()];
            for (along, extent) in along.iter_mut().zip(&extents).rev() {
                (*along, rest) = (rest % extent, rest / extent);
            }
            is_inside(nest, stage, self.placed(&guarded, &along))
        })
    }

    /// `x` at a place in the window.
    fn placed(&self, x: &Scalar, place: &[usize]) -> Scalar {
        rewrite(x, &mut |x| match x.kind() {
            Kind::Axis(id) => match self.axes.iter().position(|axis| axis.id == *id) {
                Some(number) => index(place[number] as i64),
                None => x,
            },
            _ => x,
        })
    }

    /// Whether the window goes along a dim of the buffer, which `of` sets, from end to end as `stage` goes along the same dim of
    /// its target, and depends on it nowhere else.
    pub(super) fn passes(&self, stage: &Stage, of: &Stage, dim: usize) -> bool {
        let (Some(axis), Some(whole)) = (stage.domain.get(dim), of.domain.get(dim)) else {
            return false;
        };
        let uses = |x: &Scalar| free_axes(x).contains(&axis.id);
        let mut others = self.at.iter().enumerate().filter(|(d, _)| *d != dim);
        self.at.get(dim).is_some_and(|at| at.is_axis(axis.id))
            && axis.extent == whole.extent
            && !others.any(|(_, at)| uses(at))
            && !self.condition.iter().any(uses)
    }

    /// `outside`, or `x` where the window lies in the buffer.
    pub(super) fn guarded(&self, x: Scalar, outside: Scalar) -> Scalar {
        match &self.condition {
            Some(condition) => select(condition.clone(), x, outside),
            None => x,
        }
    }

    /// The fold of `x` over the window.
    pub(super) fn fold(&self, op: Binary, init: Scalar, x: Scalar) -> Scalar {
        Scalar::reduce(op, self.axes.clone(), init, x)
    }
}

/// Whether a place lies in the buffer for all points of the domain of `stage`: `x` is the load of it where it does.
fn is_inside(nest: &Nest, stage: &Stage, x: Scalar) -> bool {
    let mut alone = Stage {
        value: x,
        ..stage.clone()
    };
    simplify_stage(&mut alone);
    let Some((condition, load, _)) = as_select(&alone.value) else {
        return matches!(alone.value.kind(), Kind::Load { .. });
    };
    let Kind::Load { buffer, at } = load.kind() else {
        return false;
    };
    let mut ranges = Ranges::of_stage(stage).with_symbols(nest);
    let shape = &nest.buf(*buffer).shape;
    let mut is_index = |x: &Scalar, extent: Extent| ranges.is_index(x, extent);
    let mut is_met = |condition: &Scalar| match condition.kind() {
        Kind::Binary(Binary::Ge, x, low) if low.as_index() == Some(0) => {
            let mut dims = at.iter().zip(shape);
            dims.any(|(index, extent)| index == x && is_index(x, *extent))
        }
        Kind::Binary(Binary::Lt, x, end) => extent_of(end).is_some_and(|end| is_index(x, end)),
        _ => false,
    };
    let mut open = vec![condition];
    while let Some(condition) = open.pop() {
        match as_binary(Binary::And, condition) {
            Some((a, b)) => open.extend([a, b]),
            None if is_met(condition) => {}
            None => return false,
        }
    }
    true
}

/// The extent that a scalar is.
fn extent_of(x: &Scalar) -> Option<Extent> {
    match x.kind() {
        Kind::Extent(extent) => Some(*extent),
        _ => usize::try_from(x.as_index()?).ok().map(Extent::from),
    }
}
