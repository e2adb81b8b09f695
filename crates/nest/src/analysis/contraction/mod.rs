//! Contractions: stages that are sums of products over strided tensors.

mod border;
mod coded;
mod grouped;
mod numbered;

pub use border::Border;
use coded::LEAST_GROUP;
pub(crate) use coded::{CodedLoad, is_coded, narrow_step};
pub use coded::{Coding, Points};
use grouped::GroupedSum;
pub(crate) use grouped::is_integer_code;
pub use grouped::{GroupRows, Groups};
pub(crate) use numbered::Numbered;

use crate::analysis::Linear;
use crate::ir::{
    Axis, AxisId, Binary, BufferId, Kind, Mode, Nest, Scalar, Seen, Stage, row_major, visit,
};
use rustc_hash::FxHashMap;
use vinelift_tensor::ElementType::{self, F32, F64, I8, I32, U8};
use vinelift_tensor::{element_count, is_injective};

/// A stage that is a sum of products over strided tensors, and nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contraction {
    /// The type of the sums: `f32` or `f64`, which is then that of the factors, or `i32`, where one factor is `u8` and the
    /// other `i8`.
    pub ty: ElementType,
    /// Where the sums go.
    pub out: Strided,
    /// The first factor.
    pub left: Factor,
    /// The second factor.
    pub right: Factor,
    /// The groups of the axes summed over, if sums are scaled group by group: the second factor is coded then.
    pub groups: Option<Groups>,
    /// The axes of the domain, outermost first, and then those summed over, in order.
    pub axes: Vec<Stride>,
    /// How many of the axes are the domain's.
    pub outer: usize,
    /// The outermost axis of the domain, if the stage takes turns; it is none of `axes`.
    pub turn: Option<Stride>,
}

/// One factor of the products.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Factor {
    /// Where its elements are.
    pub tensor: Strided,
    /// The coding of the elements; `None` if they are stored as they are.
    pub coding: Option<Coding>,
}

/// A tensor in a buffer, from an element on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strided {
    /// The buffer.
    pub buffer: BufferId,
    /// The offset at the first point of all axes, in elements.
    pub base: usize,
}

/// How far the tensors step with an axis, in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stride {
    /// Number of points.
    pub extent: usize,
    /// The stride of the first factor.
    pub left: usize,
    /// The stride of the second factor.
    pub right: usize,
    /// The stride of the sums; 0 for an axis that is summed over.
    pub out: usize,
}

/// A sum of products is no contraction if the extents of all axes multiply to less than this: loops are as fast.
const LEAST_PRODUCTS: usize = 1024;

/// A sum of products is no contraction if neither `m` nor `n` is at least this: a tile would hold fewer results.
const LEAST_WIDTH: usize = 4;

/// A contraction whose results share only the operand that a window slides over (`min(m, n) = 1`) stays a fold,
/// which loops vectorise along the row, if the row has at least this many points …
const LEAST_ROW: usize = 3;

/// … and the window at most this many.
const MOST_WINDOW: usize = 49;

/// The same where the row is one of channels, as of depthwise convolutions with channels last: a kernel would pack each
/// window for a single result.
const MOST_OF_CHANNELS: usize = 1024;

impl Contraction {
    /// The contraction that `stage` is at the example, if it is one that is worth a kernel.
    pub fn of(nest: &Nest, stage: &Stage) -> Option<Contraction> {
        Contraction::of_numbered(Numbered::example(nest), stage)
    }

    /// As [`Contraction::of`] where the symbol of number `k` is `values[k]`: that of the nest which is
    /// [bound](Nest::bound_to) to them.
    pub fn at(nest: &Nest, stage: &Stage, values: &[usize]) -> Option<Contraction> {
        Contraction::of_numbered(Numbered::at(nest, values), stage)
    }

    fn of_numbered(nest: Numbered<'_>, stage: &Stage) -> Option<Contraction> {
        let Kind::Reduce { axes, body, .. } = sum_of_products(&stage.value)?.kind() else {
            return None;
        };
        let (left, right) = body.as_term()?;
        let (turn, domain) = match (stage.group, stage.domain.split_first()) {
            (Some(_), Some((turn, domain))) => (Some(turn), domain),
            _ => (None, stage.domain.as_slice()),
        };
        let grouped = GroupedSum::of(&stage.value);
        let sum_axes = grouped.as_ref().map_or(axes, |grouped| &grouped.axes);
        let all: Vec<Axis> = domain.iter().chain(sum_axes).copied().collect();
        let ids: Vec<AxisId> = all.iter().map(|a| a.id).collect();
        let ([(left, left_form), (right, right_form)], groups) = match &grouped {
            Some(grouped) => {
                let (factors, groups) = grouped.factors(nest, &ids)?;
                (factors, Some(groups))
            }
            None => (
                [factor(nest, left, &all)?, factor(nest, right, &all)?],
                None,
            ),
        };
        let out_form = offset(nest, stage.target, &stage.at)?;
        let reads_itself = stage.loads().contains(&stage.target);
        if stage.mode != Mode::Set || reads_itself {
            return None;
        }
        let stride = |axis: &Axis| {
            Some(Stride {
                extent: nest.number(axis.extent)?,
                left: left_form.step(axis.id),
                right: right_form.step(axis.id),
                out: out_form.step(axis.id),
            })
        };
        let turn = match turn {
            Some(turn) => Some(stride(turn)?),
            None => None,
        };
        let contraction = Contraction {
            ty: stage.value.ty(),
            out: Strided {
                buffer: stage.target,
                base: out_form.base,
            },
            left,
            right,
            groups,
            axes: all.iter().map(stride).collect::<Option<_>>()?,
            outer: domain.len(),
            turn,
        };
        let fits = contraction.is_injective() && contraction.codes_fit() && contraction.pays();
        fits.then_some(contraction)
    }

    /// How many consecutive points of the axes summed over share the zero points and scales of a factor: the product of the
    /// extents after the last axis that one of them steps with.
    pub fn group(&self, coding: &Coding) -> usize {
        let points = coding.zero.iter().chain(&coding.scale);
        let last = points.map(|points| match points {
            Points::Value(_) => 0,
            Points::Tensor { steps, .. } => {
                let mut inner = steps.iter().skip(self.outer);
                inner.rposition(|step| *step > 0).map_or(0, |at| at + 1)
            }
        });
        let inner = self.axes[self.outer..].iter().skip(last.max().unwrap_or(0));
        inner.map(|axis| axis.extent).product()
    }

    /// Whether vector loops can read a factor as it is: it has whole vectors, and each element is used once. `step` is how far the
    /// factor steps with an axis.
    pub fn suits_loops(&self, step: fn(&Stride) -> usize) -> bool {
        let outer = &self.axes[..self.outer];
        let innermost = outer.iter().rfind(|axis| axis.extent > 1);
        let mut others = outer.iter().filter(|axis| step(axis) == 0);
        innermost.is_some_and(|axis| step(axis) == 1) && others.all(|axis| axis.extent == 1)
    }

    /// Whether no two points of the domain share an element of the result.
    fn is_injective(&self) -> bool {
        let outer = &self.axes[..self.outer];
        is_injective(outer.iter().map(|axis| (axis.out, axis.extent)))
    }

    /// Whether zero points and scales belong to axes of one factor alone, or to axes summed over.
    fn codes_fit(&self) -> bool {
        let fits = |factor: &Factor, own: fn(&Stride) -> usize, other: fn(&Stride) -> usize| {
            let coding = factor
                .coding
                .iter()
                .flat_map(|c| c.zero.iter().chain(&c.scale));
            coding.into_iter().all(|points| match points {
                Points::Value(_) => true,
                Points::Tensor { steps, .. } => {
                    steps
                        .iter()
                        .zip(&self.axes[..self.outer])
                        .all(|(step, axis)| {
                            *step == 0 || axis.extent == 1 || (own(axis) > 0 && other(axis) == 0)
                        })
                }
            })
        };
        let sums: usize = self.axes[self.outer..].iter().map(|a| a.extent).product();
        let codings = [&self.left, &self.right]
            .into_iter()
            .flat_map(|f| &f.coding);
        let mut groups = codings.map(|coding| self.group(coding));
        groups.all(|group| group == sums || group >= LEAST_GROUP)
            && fits(&self.left, |a| a.left, |a| a.right)
            && fits(&self.right, |a| a.right, |a| a.left)
    }

    /// Whether there is enough work for a kernel, and results share what it loads.
    fn pays(&self) -> bool {
        let product = |mut extents: &mut dyn Iterator<Item = usize>| {
            (&mut extents).fold(1usize, usize::saturating_mul)
        };
        let products = product(&mut self.axes.iter().map(|a| a.extent));
        let (outer, inner) = self.axes.split_at(self.outer);
        let adds = inner.iter().any(|a| a.extent > 1);
        let only = |own: fn(&Stride) -> usize, other: fn(&Stride) -> usize| {
            let axes = outer.iter().filter(|a| own(a) > 0 && other(a) == 0);
            product(&mut axes.map(|a| a.extent))
        };
        let (m, n) = (only(|a| a.left, |a| a.right), only(|a| a.right, |a| a.left));
        let enough = products >= LEAST_PRODUCTS && m.max(n) >= LEAST_WIDTH && adds;
        enough && !(m.min(n) == 1 && self.slides())
    }

    /// Whether it slides windows along long rows, as depthwise convolutions do. Vector loops then read whole vectors without a copy,
    /// and each vector once for several rows.
    fn slides(&self) -> bool {
        let (outer, inner) = self.axes.split_at(self.outer);
        let window: usize = inner.iter().map(|a| a.extent).product();
        let Some(row) = outer.iter().rfind(|a| a.extent > 1) else {
            return false;
        };
        let slides = |along: fn(&Stride) -> usize| {
            let steps = |a: &&Stride| a.extent > 1 && along(a) > 0;
            let mut taps = inner.iter().filter(steps);
            // The window moves by one of its points or two, or is dilated.
            let is_along = |tap: &Stride| {
                let mut places = outer.iter().filter(steps).map(along);
                places.any(|place| place == 2 * along(tap) || along(tap).is_multiple_of(place))
            };
            (1..=2).contains(&along(row)) && taps.all(is_along)
        };
        let are_lanes_channels = row.left > 0 && row.right > 0;
        let most = match are_lanes_channels {
            true => MOST_OF_CHANNELS,
            false => MOST_WINDOW,
        };
        let long = row.out == 1 && row.extent >= LEAST_ROW && window <= most;
        long && window > 1 && (slides(|a| a.left) || slides(|a| a.right))
    }
}

/// An affine offset: a base, and what each axis adds.
pub(crate) struct Form {
    base: usize,
    steps: FxHashMap<AxisId, usize>,
}

impl Form {
    pub(crate) fn step(&self, axis: AxisId) -> usize {
        self.steps.get(&axis).copied().unwrap_or(0)
    }

    pub(crate) fn axes(&self) -> impl Iterator<Item = &AxisId> {
        self.steps.keys()
    }
}

/// The offset of `buffer[at]`, if it is affine and steps forward with every axis.
pub(crate) fn offset(nest: Numbered<'_>, buffer: BufferId, at: &[Scalar]) -> Option<Form> {
    let shape = nest.shape(buffer)?;
    element_count(&shape).filter(|n| *n > 0)?;
    let sum = Linear::of_access(at, &row_major(&shape));
    let mut steps = FxHashMap::default();
    for (atom, k) in &sum.terms {
        let Kind::Axis(id) = atom.kind() else {
            return None;
        };
        steps.insert(*id, usize::try_from(*k).ok()?);
    }
    Some(Form {
        base: usize::try_from(sum.constant).ok()?,
        steps,
    })
}

/// A factor, and how it steps: a load whose offset is affine, or one of coded numbers. `axes` are all of the contraction.
pub(crate) fn factor(nest: Numbered<'_>, x: &Scalar, axes: &[Axis]) -> Option<(Factor, Form)> {
    let x = byte(x).unwrap_or(x);
    let coded = CodedLoad::of(x);
    let (tensor, form) = strided_load(nest, coded.as_ref().map_or(x, |c| c.numbers))?;
    let axes: Vec<AxisId> = axes.iter().map(|a| a.id).collect();
    let coding = match coded {
        Some(coded) => Some(coded.coding(nest, &axes)?),
        None => None,
    };
    Some((Factor { tensor, coding }, form))
}

/// A load whose offset is affine.
pub(crate) fn strided_load(nest: Numbered<'_>, x: &Scalar) -> Option<(Strided, Form)> {
    let Kind::Load { buffer, at } = x.kind() else {
        return None;
    };
    let form = offset(nest, *buffer, at)?;
    let base = form.base;
    let strided = Strided {
        buffer: *buffer,
        base,
    };
    Some((strided, form))
}

/// The number of 8 bits that `x` is as an `i32`.
pub(crate) fn byte(x: &Scalar) -> Option<&Scalar> {
    match x.kind() {
        Kind::Cast(byte) if x.ty() == I32 && matches!(byte.ty(), U8 | I8) => Some(byte),
        _ => None,
    }
}

/// `x`, if it is a sum of products from zero over at least one point, of floats, or of one `u8` and one `i8`.
pub(crate) fn sum_of_products(x: &Scalar) -> Option<&Scalar> {
    let Kind::Reduce { body, .. } = x.kind() else {
        return None;
    };
    let (left, right) = body.as_term()?;
    let is_known = match x.ty() {
        F32 | F64 => true,
        I32 => byte(left)
            .zip(byte(right))
            .is_some_and(|(left, right)| left.ty() != right.ty()),
        _ => false,
    };
    (is_known && is_sum_of_terms(x)).then_some(x)
}

/// Whether `x` is a sum of products of any type from zero over at least one point.
pub(crate) fn is_sum_of_terms(x: &Scalar) -> bool {
    let Kind::Reduce {
        op: Binary::Add,
        axes,
        init,
        body,
    } = x.kind()
    else {
        return false;
    };
    body.as_term().is_some() && init.as_const() == Some(0) && axes.iter().all(|a| a.extent > 0)
}

/// The sums of products in a stage's value that stand in no other fold and have none in them but that of
/// [groups](GroupedSum), do not read what the stage writes, and can be computed whether they are needed or not.
pub(crate) fn sums(stage: &Stage) -> Vec<Scalar> {
    sums_that(stage, |x| sum_of_products(x).is_some())
}

/// Whether `x` is a sum of products in groups that are scaled after they are summed.
pub(crate) fn is_grouped(x: &Scalar) -> bool {
    GroupedSum::of(x).is_some()
}

/// As [`sums`], of the folds that `is_sum` is true of.
pub(crate) fn sums_that(stage: &Stage, is_sum: impl Fn(&Scalar) -> bool) -> Vec<Scalar> {
    let mut found: Vec<Scalar> = Vec::new();
    if !stage.value.folds() {
        return found;
    }
    let mut seen = Seen::default();
    let mut open = vec![&stage.value];
    while let Some(x) = open.pop() {
        if !x.folds() || !seen.insert(x.address()) {
            continue;
        }
        match x.kind() {
            Kind::Reduce { .. } => {
                let mut fits = is_sum(x);
                let may_nest = is_grouped(x);
                visit(x, &mut |y| match y.kind() {
                    Kind::Load { buffer, .. } => fits &= *buffer != stage.target,
                    Kind::Wrap(_) => fits &= !y.may_fault(),
                    Kind::Reduce { .. } => fits &= may_nest || y.address() == x.address(),
                    _ => {}
                });
                if fits {
                    found.push(x.clone());
                }
            }
            _ => open.extend(x.children()),
        }
    }
    found
}
