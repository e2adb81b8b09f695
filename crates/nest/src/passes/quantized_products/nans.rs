//! Where values are NaN, as what is known without looking at them.
//!
//! A byte cannot be NaN, so products of bytes carry beside them where values before they were rounded were: in buffers that hold NaN
//! or 0 ([`Pass::nan_sum`]). Such a product is NaN where what it carries is, and nowhere else, as sums of bytes are finite. What
//! operations make of it from there on follows from their operands: `max(0, s·t + bias)` is NaN where `s` is. So the pass makes the
//! NaN buffer of the next product of that of this one, and does not look at the values. The buffer has one element for all the
//! channels that the product sums over.

use super::grid::OnGrid;
use super::largest::Window;
use super::{Pass, varies};
use crate::build::{index, number, select, zero};
use crate::ir::{
    Axis, AxisId, Binary, BufferId, Definition, Kind, Nest, Role, Scalar, Stage, Unary, as_binary,
    float, free_axes, rewrite,
};
use vinelift_tensor::ElementType::{self, F32};

/// The most scalars that are looked at in the value of a stage, those that are used again and again each time.
const MOST_VISITS: usize = 128;

/// The most places that a value is NaN by.
const MOST_SOURCES: usize = 4;

/// The most definitions that a place goes through.
const MOST_STEPS: usize = 24;

/// An exponential is less than this times the real one.
const EXP_ERROR: f64 = 1.001;

/// The most numbers of a constant that are looked at.
const MOST_NUMBERS: usize = 1 << 16;

/// The bound of a value, and where it is NaN.
#[derive(Clone)]
pub(super) struct Known {
    /// The value is no larger than this, which may be infinite, where it is not NaN.
    largest: f64,
    /// The value is NaN where one of these is, which are 0 elsewhere.
    sources: Vec<Scalar>,
    /// How many definitions they went through: each may make their indices longer.
    steps: usize,
}

impl Known {
    /// NaN where the value is, and 0 elsewhere; nothing if it never is.
    pub(super) fn nan(&self) -> Option<Scalar> {
        self.sources.iter().cloned().reduce(|a, b| a + b)
    }

    fn finite(largest: f64) -> Known {
        Known {
            largest,
            sources: Vec::new(),
            steps: 0,
        }
    }

    /// A value that is NaN where this one is.
    fn of_size(self, largest: f64) -> Known {
        // Rounding makes it larger by less than that.
        let largest = largest * (1.0 + f64::from(f32::EPSILON));
        let is_finite = largest < f64::from(f32::MAX);
        Known {
            largest: if is_finite { largest } else { f64::INFINITY },
            ..self
        }
    }

    /// A value that is NaN where this one or the other is.
    fn or(mut self, other: Known) -> Option<Known> {
        self.steps = self.steps.max(other.steps);
        for source in other.sources {
            if !self.sources.contains(&source) {
                self.sources.push(source);
            }
        }
        (self.sources.len() <= MOST_SOURCES).then_some(self)
    }

    fn map(self, f: impl FnMut(Scalar) -> Scalar) -> Known {
        let sources = self.sources.into_iter().map(f).collect();
        Known { sources, ..self }
    }
}

impl Pass<'_> {
    /// The sum, over the first of these dims, of what is NaN where a value before it was rounded is and 0 elsewhere, at `at`
    /// along the others. All that read the grid share the buffer of it, and windows overlap in fewer elements.
    pub(super) fn nan_sum(
        &mut self,
        nest: &mut Nest,
        (stage, values): (&Stage, &OnGrid),
        dims: &(Vec<usize>, Vec<usize>),
        at: &[Scalar],
    ) -> Option<Scalar> {
        let (summed, kept) = dims;
        let known = match (self.known_nans(stage, summed), values) {
            (Some(known), _) => known,
            (None, OnGrid::Largest(_, window)) => {
                return self.nans_in(nest, (stage, window), dims, at);
            }
            (None, OnGrid::Rounded(rounded)) => {
                let nan = where_nan(&rounded.x);
                if !summed.is_empty() {
                    let sum = |axes| Scalar::reduce(Binary::Add, axes, zero(F32), nan);
                    let sums = self.nan_buffer(nest, stage, summed.clone(), kept, sum);
                    let at = kept.iter().map(|d| at[*d].clone());
                    return Some(nest.load(sums, at.collect()));
                }
                nan
            }
        };
        let definition = Definition {
            value: &known,
            ..Definition::of(stage)
        };
        Some(definition.instantiate(nest, at))
    }

    /// As [`Pass::nan_sum`], of the largest values in a window: NaN where one in the window is. `None` if the window does not go
    /// along the dims that are summed over as they are.
    fn nans_in(
        &mut self,
        nest: &mut Nest,
        (stage, window): (&Stage, &Window),
        dims: &(Vec<usize>, Vec<usize>),
        at: &[Scalar],
    ) -> Option<Scalar> {
        let (summed, kept) = dims;
        let of = self.definitions.get(&window.buffer)?.clone();
        let passes = |dim: &usize| window.passes(stage, &of, *dim);
        if !summed.iter().all(passes) {
            return None;
        }
        let values = self.grids.get(&window.buffer)?.clone();
        let one = self.nan_sum(nest, (&of, &values), dims, &window.at)?;
        let sum = window.fold(Binary::Add, zero(F32), window.guarded(one, zero(F32)));
        let sums = self.nan_buffer(nest, stage, summed.clone(), kept, |_| sum);
        Some(nest.load(sums, kept.iter().map(|d| at[*d].clone()).collect()))
    }

    /// `nan`, which is NaN or 0, summed over those of the axes of a sum of `stage` that it varies along: the others are summed over
    /// already.
    pub(super) fn nans_along(
        &mut self,
        nest: &mut Nest,
        stage: &Stage,
        name: &str,
        axes: &[Axis],
        nan: Scalar,
    ) -> Scalar {
        let of_one = |id: AxisId| axes.iter().any(|axis| axis.id == id && axis.extent == 1);
        let nan = rewrite(&nan, &mut |x| match x.kind() {
            Kind::Axis(id) if of_one(*id) => index(0),
            _ => x,
        });
        let mut axes = axes.to_vec();
        axes.retain(|axis| varies(&nan, &[*axis]));
        if axes.is_empty() {
            return nan;
        }
        let sum = self.fold(nest, stage, name, &axes, nan, None);
        if let Kind::Load { buffer, .. } = sum.kind() {
            self.nan_buffers.insert(*buffer);
        }
        sum
    }

    /// Keeps what follows of the values of a stage, as it is at the end, from what is known of those it reads.
    pub(super) fn note(&mut self, nest: &mut Nest, stage: &Stage) {
        let is_float = nest.buf(stage.target).ty == F32;
        let is_all = self.definitions.writer(&stage.target).is_some();
        // Nothing may be put between stages that take turns.
        if !is_float || self.grids.is_empty() || !is_all || stage.group.is_some() {
            return;
        }
        self.look_at_inputs(nest, stage);
        let known = self.attempt(nest, |pass, nest| {
            let visits = &mut { MOST_VISITS };
            let known = match pass.grids.get(&stage.target).cloned() {
                Some(OnGrid::Rounded(rounded)) => {
                    let known = pass.known(nest, &rounded.x, visits)?;
                    known.of_size(rounded.grid.largest())
                }
                Some(OnGrid::Largest(grid, window)) => {
                    let one = pass.known_load(nest, window.buffer, &window.at)?;
                    let in_window =
                        |nan| window.fold(Binary::Add, zero(F32), window.guarded(nan, zero(F32)));
                    one.map(in_window).of_size(grid.largest())
                }
                None => pass.known(nest, &stage.value, visits)?,
            };
            // Sums of sums would be computed for each element anew, and all that read codes add what tells where they are NaN.
            let are_several = known.sources.len() > 1 && pass.grids.contains_key(&stage.target);
            match are_several || known.sources.iter().any(Scalar::folds) {
                true => Some(pass.in_a_buffer(nest, stage, known)),
                false => Some(known),
            }
        });
        if let Some(known) = known {
            self.known.insert(stage.target, known);
        }
    }

    /// Looks where those of its operands are NaN that are inputs on a grid, if they have at most half as many elements as what the
    /// stage makes of them in a fold, so that nothing looks at that: what is found of them is stored, and summed over the fold.
    fn look_at_inputs(&mut self, nest: &mut Nest, stage: &Stage) {
        if !stage.value.folds() {
            return;
        }
        let elements = |nest: &Nest, buffer: BufferId| {
            let shape = nest.buf(buffer).shape.iter();
            let extents = shape.map(|extent| extent.example());
            extents.fold(1, usize::saturating_mul)
        };
        for buffer in stage.loads() {
            let Some(OnGrid::Rounded(rounded)) = self.grids.get(&buffer).cloned() else {
                continue;
            };
            let is_input = match rounded.x.kind() {
                Kind::Load { buffer, .. } => nest.buf(*buffer).role == Role::Input,
                _ => false,
            };
            let is_small = elements(nest, buffer).saturating_mul(2) <= elements(nest, stage.target);
            let pays = is_input && is_small && !self.known.contains_key(&buffer);
            let writer = self.definitions.get(&buffer).filter(|_| pays);
            if let Some(writer) = writer.cloned() {
                let known = Known {
                    largest: rounded.grid.largest(),
                    sources: vec![where_nan(&rounded.x)],
                    steps: 0,
                };
                let known = self.in_a_buffer(nest, &writer, known);
                self.known.insert(buffer, known);
            }
        }
    }

    /// The same, by a load from a buffer of its own.
    fn in_a_buffer(&mut self, nest: &mut Nest, stage: &Stage, known: Known) -> Known {
        let Some(value) = known.sources.into_iter().reduce(|a, b| a + b) else {
            return Known::finite(known.largest);
        };
        let free = free_axes(&value);
        let varies = |d: &usize| free.contains(&stage.domain[*d].id);
        let (kept, same): (Vec<usize>, Vec<usize>) = (0..stage.domain.len()).partition(varies);
        let buffer = self.nan_buffer(nest, stage, same, &kept, |_| value);
        let axes = kept.iter().map(|d| Scalar::axis(stage.domain[*d].id));
        Known {
            largest: known.largest,
            sources: vec![nest.load(buffer, axes.collect())],
            steps: 0,
        }
    }

    /// The bound of `x` and where it is NaN, unless finding out takes more than `visits` scalars.
    fn known(&self, nest: &mut Nest, x: &Scalar, visits: &mut usize) -> Option<Known> {
        *visits = visits.checked_sub(1)?;
        if x.ty() != F32 {
            return None;
        }
        let mut of = |x: &Scalar| self.known(nest, x, visits);
        match x.kind() {
            Kind::Const(_) => {
                let value = f64::from(f32::from_bits(x.as_const()? as u32)).abs();
                (!value.is_nan()).then(|| Known::finite(value))
            }
            Kind::Cast(inner) => largest_integer(inner.ty()).map(Known::finite),
            Kind::Load { buffer, at } => self.known_load(nest, *buffer, at),
            Kind::Unary(op, inner) => {
                let inner = of(inner)?;
                let largest = match op {
                    Unary::Neg | Unary::Abs => inner.largest,
                    Unary::Floor | Unary::Ceil | Unary::Trunc | Unary::Round => inner.largest + 1.0,
                    Unary::Tanh | Unary::Erf => 1.0,
                    Unary::Exp => inner.largest.exp() * EXP_ERROR,
                    _ => return None,
                };
                Some(inner.of_size(largest))
            }
            Kind::Binary(Binary::Div, a, b) => {
                let a = of(a)?;
                let (b, smallest) = match self.smallest(b) {
                    Some(smallest) => (Known::finite(0.0), smallest),
                    None => (of(b)?, above_exponential(b)?),
                };
                let largest = a.largest / smallest;
                // Infinity by infinity would be NaN.
                match a.largest.is_finite() {
                    true => Some(a.or(b)?.of_size(largest)),
                    false => None,
                }
            }
            Kind::Binary(op, a, b) => {
                let (a, b) = (of(a)?, of(b)?);
                let (m, n) = (a.largest, b.largest);
                match op {
                    // Infinity less itself would be NaN.
                    Binary::Add | Binary::Sub if m.is_finite() || n.is_finite() => {
                        Some(a.or(b)?.of_size(m + n))
                    }
                    // So would zero times infinity.
                    Binary::Mul | Binary::Term if m.is_finite() && n.is_finite() => {
                        Some(a.or(b)?.of_size(m * n))
                    }
                    // The second operand, if either is NaN.
                    Binary::Min | Binary::Max => Some(b.of_size(m.max(n))),
                    _ => None,
                }
            }
            Kind::Select(condition, yes, no) => {
                let (yes, no) = (of(yes)?, of(no)?);
                let largest = yes.largest.max(no.largest);
                let is_index = !condition.loads();
                if yes.sources == no.sources {
                    Some(yes.of_size(largest))
                } else if is_index && no.sources.is_empty() {
                    let guarded = |source| select(condition.clone(), source, zero(F32));
                    Some(yes.map(guarded).of_size(largest))
                } else if yes.sources.is_empty()
                    && self.is_false_where(nest, condition, &no, visits)
                {
                    Some(no.of_size(largest))
                } else {
                    None
                }
            }
            Kind::Reduce {
                op: Binary::Add,
                axes,
                init,
                body,
            } if init.as_const() == Some(0) => {
                let body = of(body)?;
                let mut count = 1.0;
                for axis in axes {
                    count *= axis.extent.number().filter(|n| *n > 0)? as f64;
                }
                let largest = body.largest * count;
                let is_simple = largest.is_finite() && !body.sources.iter().any(Scalar::folds);
                is_simple.then(|| body.map(|source| summed(source, axes)).of_size(largest))
            }
            _ => None,
        }
    }
}

impl Pass<'_> {
    /// The bound of a load of `buffer[at]`, and where it is NaN.
    fn known_load(&self, nest: &mut Nest, buffer: BufferId, at: &[Scalar]) -> Option<Known> {
        if at.iter().any(|index| index.loads() || index.may_fault()) {
            return None;
        }
        if self.nan_buffers.contains(&buffer) {
            return Some(Known {
                largest: 0.0,
                sources: vec![nest.load(buffer, at.to_vec())],
                steps: 0,
            });
        }
        if let Some(bytes) = self.constant_or_table(nest, buffer) {
            let largest = numbers(bytes)?.fold(0.0, |largest: f32, x| largest.max(x.abs()));
            return Some(Known::finite(largest.into()));
        }
        let (known, stage) = (self.known.get(&buffer)?, self.definitions.writer(&buffer)?);
        let at_index = |value: Scalar| {
            let definition = Definition {
                value: &value,
                ..Definition::of(stage)
            };
            definition.instantiate(nest, at)
        };
        let mut known = known.clone().map(at_index);
        known.steps += 1;
        (known.steps <= MOST_STEPS).then_some(known)
    }

    /// The bytes of a buffer that every run finds the same.
    fn constant_or_table<'n>(&'n self, nest: &'n Nest, buffer: BufferId) -> Option<&'n [u8]> {
        match &nest.buf(buffer).role {
            Role::Table(bytes) => Some(bytes),
            _ => (self.constant)(buffer),
        }
    }

    /// A positive number that no size of `x`, a constant or the difference of two, is below.
    fn smallest(&self, x: &Scalar) -> Option<f64> {
        let (values, _) = match x.kind() {
            Kind::Binary(Binary::Sub, a, b) => {
                let ((mut a, at), (b, same)) = (self.values(a)?, self.values(b)?);
                let is_same = at == same && a.len() == b.len();
                a.iter_mut().zip(b).for_each(|(a, b)| *a -= b);
                is_same.then_some((a, at))?
            }
            _ => self.values(x)?,
        };
        let sizes = || values.iter().map(|x| x.abs());
        // NaN is not.
        let are_positive = sizes().all(|size| size > 0.0);
        are_positive.then(|| sizes().fold(f32::INFINITY, f32::min).into())
    }

    /// The values that a constant, or a load from one, may have, and the indices of the load.
    fn values<'s>(&self, x: &'s Scalar) -> Option<(Vec<f32>, &'s [Scalar])> {
        match x.kind() {
            Kind::Const(_) => Some((vec![f32::from_bits(x.as_const()? as u32)], &[])),
            Kind::Load { buffer, at } => {
                let values = numbers((self.constant)(*buffer)?)?;
                Some((values.collect(), at))
            }
            _ => None,
        }
    }

    /// Whether `condition` is a comparison that is false where a value of which this is known is NaN.
    fn is_false_where(
        &self,
        nest: &mut Nest,
        condition: &Scalar,
        known: &Known,
        visits: &mut usize,
    ) -> bool {
        let Kind::Binary(Binary::Gt | Binary::Ge | Binary::Lt | Binary::Le | Binary::Eq, a, b) =
            condition.kind()
        else {
            return false;
        };
        let mut of = |x| self.known(nest, x, visits);
        let both = of(a).zip(of(b)).and_then(|(a, b)| a.or(b));
        both.is_some_and(|both| both.sources == known.sources)
    }

    /// A scalar by the axes of `stage` that is NaN where an element of it is, and 0 elsewhere; `None` if the sources of NaN are not
    /// known, or differ along the dims `summed`.
    fn known_nans(&self, stage: &Stage, summed: &[usize]) -> Option<Scalar> {
        let known = self.known.get(&stage.target)?;
        let is_summed = |x: &Scalar| {
            let free = free_axes(x);
            summed.iter().any(|d| free.contains(&stage.domain[*d].id))
        };
        let are_same = !known.sources.iter().any(is_summed);
        are_same.then(|| known.nan().unwrap_or_else(|| zero(F32)))
    }

    /// The buffer of what is NaN where one of the elements of `stage` along the dims `summed` is, by the others, `kept`. It is made
    /// with `value` of the axes of these dims, if there is none yet.
    fn nan_buffer(
        &mut self,
        nest: &mut Nest,
        stage: &Stage,
        summed: Vec<usize>,
        kept: &[usize],
        value: impl FnOnce(Vec<Axis>) -> Scalar,
    ) -> BufferId {
        let of = |dims: &[usize]| dims.iter().map(|d| stage.domain[*d]).collect();
        let axes: Vec<Axis> = of(&summed);
        let key = (stage.target, summed);
        if let Some(known) = self.nans.get(&key) {
            return *known;
        }
        let name = format!("{}.nan", nest.buf(stage.target).name);
        let kept: Vec<Axis> = of(kept);
        let made = self.store(nest, &name, stage, &kept, &value(axes));
        self.nans.insert(key, made);
        self.nan_buffers.insert(made);
        made
    }
}

/// NaN where `x` is, and 0 elsewhere.
fn where_nan(x: &Scalar) -> Scalar {
    select(x.ne(x.clone()), number(f64::NAN, F32), zero(F32))
}

/// The sum of `source` over those of these axes that it depends on. It is NaN where one is, and 0 elsewhere.
fn summed(source: Scalar, axes: &[Axis]) -> Scalar {
    let free = free_axes(&source);
    let along = axes.iter().filter(|axis| free.contains(&axis.id));
    let along: Vec<Axis> = along.copied().collect();
    match along.is_empty() {
        true => source,
        false => Scalar::reduce(Binary::Add, along, zero(F32), source),
    }
}

/// No integer of a type is larger.
fn largest_integer(ty: ElementType) -> Option<f64> {
    (!ty.is_float() && ty != ElementType::String).then(|| 2f64.powi(ty.bits() as i32))
}

/// A positive number that `x`, the sum of it and an exponential, is not below where it is not NaN, as in `1 / (1 + e^-x)`.
fn above_exponential(x: &Scalar) -> Option<f64> {
    let (a, b) = as_binary(Binary::Add, x)?;
    let is_exponential = |x: &Scalar| matches!(x.kind(), Kind::Unary(Unary::Exp, _));
    let least = match (is_exponential(a), is_exponential(b)) {
        (true, _) => float(b)?,
        (_, true) => float(a)?,
        _ => return None,
    };
    (least > 0.0).then_some(least)
}

/// The numbers of a constant, if these are few and none is NaN.
fn numbers(bytes: &[u8]) -> Option<impl ExactSizeIterator<Item = f32>> {
    let (numbers, _) = bytes.as_chunks::<4>();
    let all = numbers.iter().map(|x| f32::from_le_bytes(*x));
    let fits = numbers.len() <= MOST_NUMBERS && !all.clone().any(f32::is_nan);
    fits.then_some(all)
}
