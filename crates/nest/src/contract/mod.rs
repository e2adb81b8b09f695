//! Contractions: sums of products as stages of their own, over operands that are strided tensors.
//!
//! > `out[b, m, n] = Σ_k left[b, m, k] · right[b, k, n]`, every offset affine in the axes
//!
//! MatMul, Convolution, Einsum and the gates of recurrent cells are recognised by the shape of the
//! expression: a fold by [`Binary::Add`] over a [`Binary::Term`]. What else the stage computes stays
//! behind as an epilogue that loads the sum. A factor that is not simply a load of affine indices (padding,
//! a conversion, a slice of something computed) is stored first, once for each value that its index
//! arithmetic takes ([`operand`]). The result is still a nest of the same meaning; who runs
//! it may give a stage that [`Contraction::of`] describes to a kernel made for that. Windows that slide along
//! long rows with channels kept apart share too little for that: they stay folds, whose loops do several rows
//! at once.

mod coded;
pub(crate) mod operand;
#[cfg(test)]
mod tests;

use crate::linear::Linear;
use crate::nest::{Axis, BufferId, Mode, Nest, Role, Stage, row_major};
use crate::rewrite::{free_axes, loaded_by, replace_axes, rewrite_stage, visit};
use crate::scalar::{AxisId, Binary, Kind, Scalar};
use crate::simplify::simplify_stage;
use crate::verify::is_proven;
pub(crate) use coded::CodedLoad;
pub use coded::{Coding, Points};
use coded::{inline_coded, is_coded};
use operand::Operand;
use rustc_hash::{FxHashMap, FxHashSet};
use vinelift_tensor::ElementType::{self, F32, F64, I8, I32, U8};
use vinelift_tensor::element_count;

/// A stage that is a sum of products over strided tensors, and nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contraction {
    /// Of the sums: `f32` or `f64`, which is then that of the factors, or `i32`. Then one factor is `u8`, and the
    /// other `i8`.
    pub ty: ElementType,
    /// Where the sums go.
    pub out: Strided,
    /// The first factor.
    pub left: Factor,
    /// The second factor.
    pub right: Factor,
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
    /// What makes elements of what is there, if they are coded.
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
    /// Of the first factor.
    pub left: usize,
    /// Of the second factor.
    pub right: usize,
    /// Of the sums; 0 for an axis that is summed over.
    pub out: usize,
}

/// Fewer products than this are loops.
const LEAST_PRODUCTS: usize = 1024;

/// Fewer results than this from one row of an operand are loops.
const LEAST_WIDTH: usize = 4;

/// The sums of windows that slide over rows at least so long are loops, if their products share no more than
/// what the window slides over, of so many products at most.
const LEAST_ROW: usize = 3;
const MOST_WINDOW: usize = 49;

/// Makes a stage of its own of every sum of products that is worth one. `is_constant` tells of which
/// buffers the contents are known before the nest runs.
pub fn contract(nest: &mut Nest, is_constant: &dyn Fn(BufferId) -> bool) {
    inline_coded(nest, is_constant);
    let mut group_start = (None, 0);
    for mut stage in std::mem::take(&mut nest.stages) {
        if stage.group.is_none() || group_start.0 != stage.group {
            group_start = (stage.group, nest.stages.len());
        }
        split_axes(nest, &mut stage);
        let mut rest = Some(stage);
        while let Some(stage) = rest.take() {
            let extracted = sums(&stage)
                .iter()
                .find_map(|sum| extract(nest, &stage, sum, is_constant));
            let Some(extracted) = extracted else {
                nest.stages.push(stage);
                break;
            };
            // What is stored for all turns is stored before the first.
            let stored = extracted.stored.len();
            nest.stages
                .splice(group_start.1..group_start.1, extracted.stored);
            group_start.1 += stored;
            nest.stages.push(extracted.contraction);
            rest = extracted.epilogue;
        }
    }
}

/// What has become of a stage.
struct Extracted {
    /// Those that store operands.
    stored: Vec<Stage>,
    contraction: Stage,
    /// What is left of the stage, if it computes more than the sum.
    epilogue: Option<Stage>,
}

impl Contraction {
    /// What `stage` computes, if it is a contraction that is worth a kernel.
    pub fn of(nest: &Nest, stage: &Stage) -> Option<Contraction> {
        let Kind::Reduce { axes, body, .. } = sum_of_products(&stage.value)?.kind() else {
            return None;
        };
        let (left, right) = body.as_term()?;
        let (turn, domain) = match (stage.group, stage.domain.split_first()) {
            (Some(_), Some((turn, domain))) => (Some(turn), domain),
            _ => (None, stage.domain.as_slice()),
        };
        let (left, left_form) = factor(nest, left, domain)?;
        let (right, right_form) = factor(nest, right, domain)?;
        let out_form = offset(nest, stage.target, &stage.at)?;
        let reads_itself = stage.loads().contains(&stage.target);
        if stage.mode != Mode::Set || reads_itself {
            return None;
        }
        let stride = |axis: &Axis| Stride {
            extent: axis.extent,
            left: left_form.step(axis.id),
            right: right_form.step(axis.id),
            out: out_form.step(axis.id),
        };
        let contraction = Contraction {
            ty: stage.value.ty(),
            out: Strided {
                buffer: stage.target,
                base: out_form.base,
            },
            left,
            right,
            axes: domain.iter().chain(axes).map(stride).collect(),
            outer: domain.len(),
            turn: turn.map(stride),
        };
        let fits = contraction.is_injective() && contraction.codes_fit() && contraction.pays();
        fits.then_some(contraction)
    }

    /// Whether no two points of the domain share an element of the result.
    fn is_injective(&self) -> bool {
        let outer = self.axes[..self.outer].iter().filter(|a| a.extent > 1);
        let mut steps: Vec<(usize, usize)> = outer.map(|a| (a.out, a.extent)).collect();
        steps.sort_unstable();
        let mut reach = 0usize;
        steps.into_iter().all(|(step, extent)| {
            let apart = step > reach;
            reach = reach.saturating_add(step.saturating_mul(extent - 1));
            apart
        })
    }

    /// Whether zero points and scales belong to axes of one factor alone.
    fn codes_fit(&self) -> bool {
        let fits = |factor: &Factor, own: fn(&Stride) -> usize, other: fn(&Stride) -> usize| {
            let coding = factor
                .coding
                .iter()
                .flat_map(|c| c.zero.iter().chain(&c.scale));
            coding.into_iter().all(|points| match points {
                Points::Value(_) => true,
                Points::Tensor { steps, .. } => steps.iter().zip(&self.axes).all(|(step, axis)| {
                    *step == 0 || axis.extent == 1 || (own(axis) > 0 && other(axis) == 0)
                }),
            })
        };
        fits(&self.left, |a| a.left, |a| a.right) && fits(&self.right, |a| a.right, |a| a.left)
    }

    /// Whether a kernel has enough to do, and results that share what it loads.
    fn pays(&self) -> bool {
        let product = |mut extents: &mut dyn Iterator<Item = usize>| {
            (&mut extents).fold(1usize, usize::saturating_mul)
        };
        let products = product(&mut self.axes.iter().map(|a| a.extent));
        let outer = &self.axes[..self.outer];
        let only = |own: fn(&Stride) -> usize, other: fn(&Stride) -> usize| {
            let axes = outer.iter().filter(|a| own(a) > 0 && other(a) == 0);
            product(&mut axes.map(|a| a.extent))
        };
        let (m, n) = (only(|a| a.left, |a| a.right), only(|a| a.right, |a| a.left));
        let enough = products >= LEAST_PRODUCTS && m.max(n) >= LEAST_WIDTH;
        enough && !(m.min(n) == 1 && self.slides())
    }

    /// Whether it slides windows along long rows, as convolutions do that keep channels apart: loops over rows
    /// have whole vectors without a copy, and each vector once for several rows.
    fn slides(&self) -> bool {
        let (outer, inner) = self.axes.split_at(self.outer);
        let window: usize = inner.iter().map(|a| a.extent).product();
        let Some(row) = outer.iter().rfind(|a| a.extent > 1) else {
            return false;
        };
        let slides = |along: fn(&Stride) -> usize| {
            let steps = |a: &&Stride| a.extent > 1 && along(a) > 0;
            let mut taps = inner.iter().filter(steps);
            let is_along = |tap: &Stride| {
                let mut places = outer.iter().filter(steps);
                places.any(|place| {
                    (along(place) / along(tap)).clamp(1, 2) * along(tap) == along(place)
                })
            };
            (1..=2).contains(&along(row)) && taps.all(is_along)
        };
        let long = row.out == 1 && row.extent >= LEAST_ROW && window <= MOST_WINDOW;
        long && window > 1 && (slides(|a| a.left) || slides(|a| a.right))
    }
}

/// An affine offset: a base, and what each axis adds.
struct Form {
    base: usize,
    steps: FxHashMap<AxisId, usize>,
}

impl Form {
    fn step(&self, axis: AxisId) -> usize {
        self.steps.get(&axis).copied().unwrap_or(0)
    }

    fn axes(&self) -> impl Iterator<Item = &AxisId> {
        self.steps.keys()
    }
}

/// The offset of `buffer[at]`, if it is affine and steps forward with every axis.
fn offset(nest: &Nest, buffer: BufferId, at: &[Scalar]) -> Option<Form> {
    let shape = &nest.buf(buffer).shape;
    element_count(shape).filter(|n| *n > 0)?;
    let sum = Linear::of_access(at, &row_major(shape));
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

/// A factor, and how it steps: a load whose offset is affine, or one of coded numbers.
fn factor(nest: &Nest, x: &Scalar, domain: &[Axis]) -> Option<(Factor, Form)> {
    let x = byte(x).unwrap_or(x);
    let coded = CodedLoad::of(x);
    let (tensor, form) = strided_load(nest, coded.as_ref().map_or(x, |c| c.numbers))?;
    let outer: Vec<AxisId> = domain.iter().map(|a| a.id).collect();
    let coding = match coded {
        Some(coded) => Some(coded.coding(nest, &outer)?),
        None => None,
    };
    Some((Factor { tensor, coding }, form))
}

/// A load whose offset is affine.
fn strided_load(nest: &Nest, x: &Scalar) -> Option<(Strided, Form)> {
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
fn byte(x: &Scalar) -> Option<&Scalar> {
    match x.kind() {
        Kind::Cast(byte) if x.ty() == I32 && matches!(byte.ty(), U8 | I8) => Some(byte),
        _ => None,
    }
}

/// `x`, if it is a sum of products from zero over at least one point, of floats, or of one `u8` and one `i8`.
fn sum_of_products(x: &Scalar) -> Option<&Scalar> {
    let Kind::Reduce {
        op: Binary::Add,
        axes,
        init,
        body,
    } = x.kind()
    else {
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
    let fits = is_known && init.as_const() == Some(0) && axes.iter().all(|a| a.extent > 0);
    fits.then_some(x)
}

/// The sums of products in a stage's value that stand in no other fold, do not read what the stage
/// writes, and can be computed whether they are needed or not.
pub(crate) fn sums(stage: &Stage) -> Vec<Scalar> {
    let mut found: Vec<Scalar> = Vec::new();
    let mut seen = FxHashSet::default();
    let mut open = vec![&stage.value];
    while let Some(x) = open.pop() {
        if !seen.insert(x.address()) {
            continue;
        }
        match x.kind() {
            Kind::Reduce { .. } => {
                let mut fits = sum_of_products(x).is_some();
                visit(x, &mut |y| match y.kind() {
                    Kind::Load { buffer, .. } => fits &= *buffer != stage.target,
                    Kind::Wrap(w) => fits &= w.policy.zero,
                    Kind::Reduce { .. } => fits &= y.address() == x.address(),
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

/// A sum of products of `stage` on its own, if it is worth it.
fn extract(
    nest: &mut Nest,
    stage: &Stage,
    sum: &Scalar,
    is_constant: &dyn Fn(BufferId) -> bool,
) -> Option<Extracted> {
    let (buffers, next_axis) = (nest.buffers.len(), nest.next_axis);
    let extracted = try_extract(nest, stage, sum, is_constant).filter(|extracted| {
        // A guard around the sum stays with the epilogue, and may be what proves the accesses in the sum.
        let mut alone = extracted.stored.iter().chain([&extracted.contraction]);
        alone.all(|stage| is_proven(nest, stage))
    });
    if extracted.is_none() {
        nest.truncate_buffers(buffers);
        nest.next_axis = next_axis;
    }
    extracted
}

/// As [`extract`]; leaves new buffers and axes behind where nothing comes of it.
fn try_extract(
    nest: &mut Nest,
    stage: &Stage,
    sum: &Scalar,
    is_constant: &dyn Fn(BufferId) -> bool,
) -> Option<Extracted> {
    let Kind::Reduce { axes, body, .. } = sum.kind() else {
        return None;
    };
    let (left, right) = body.as_term()?;
    let free = free_axes(sum);
    let mut outer = stage.domain.clone();
    outer.retain(|a| free.contains(&a.id));
    let turn = stage.domain.first().filter(|_| stage.group.is_some());
    outer.retain(|a| turn.is_none_or(|turn| turn.id != a.id));
    let products = outer.iter().chain(axes).map(|a| a.extent);
    let products = products.fold(1usize, usize::saturating_mul);
    let mut stored = Vec::new();
    let mut factor = |nest: &mut Nest, side: &str, x: &Scalar, other: &Scalar| {
        let whole = x;
        let x = byte(x).unwrap_or(x);
        let wide = |x: Scalar| x.cast(whole.ty());
        if strided_load(nest, x).is_some() {
            return Some(whole.clone());
        }
        let operand = Operand::of(x, other, &outer, axes);
        // Each element should be used a few times; what is constant is stored before the first run.
        let constant = loaded_by([x]).into_iter().all(is_constant);
        if constant && is_coded(nest, x, other, &outer) {
            return Some(x.clone());
        }
        let is_much = operand.elements().saturating_mul(2) > products;
        let in_turns = turn.is_some_and(|turn| !constant || free_axes(x).contains(&turn.id));
        if in_turns || (!constant && is_much) {
            return None;
        }
        let name = format!("{}.{side}", nest.buf(stage.target).name);
        let (store, load) = operand.store(nest, &name, stage, x);
        stored.push(store);
        Some(wide(load))
    };
    let (left, right) = (
        factor(nest, "left", left, right)?,
        factor(nest, "right", right, left)?,
    );
    let term = Scalar::binary(Binary::Term, left, right);
    let init = Scalar::constant(0, sum.ty());
    let value = Scalar::reduce(Binary::Add, axes.clone(), init, term);
    let is_whole = stage.value == *sum
        && stage.mode == Mode::Set
        && offset(nest, stage.target, &stage.at).is_some();
    if is_whole {
        let whole = Stage {
            value,
            ..stage.clone()
        };
        Contraction::of(nest, &whole)?;
        return Some(Extracted {
            stored,
            contraction: whole,
            epilogue: None,
        });
    }
    let name = format!("{}.sum", nest.buf(stage.target).name);
    let shape: Vec<usize> = outer.iter().map(|a| a.extent).collect();
    let target = nest.buffer(&name, sum.ty(), &shape, Role::Temporary);
    let at: Vec<Scalar> = outer.iter().map(|a| Scalar::axis(a.id)).collect();
    let load = nest.load(target, at.clone());
    let own = Stage {
        domain: turn.copied().into_iter().chain(outer).collect(),
        target,
        at,
        mode: Mode::Set,
        value,
        layers: stage.layers.clone(),
        group: stage.group,
    };
    Contraction::of(nest, &own)?;
    let contraction = with_fresh_domain(nest, own);
    let mut epilogue = stage.clone();
    rewrite_stage(&mut epilogue, &mut |x| match x == *sum {
        true => load.clone(),
        false => x,
    });
    Some(Extracted {
        stored,
        contraction,
        epilogue: Some(epilogue),
    })
}

/// The stage over axes of its own: those that it has stay with its epilogue.
fn with_fresh_domain(nest: &mut Nest, mut stage: Stage) -> Stage {
    let mut by_axis: FxHashMap<AxisId, Scalar> = FxHashMap::default();
    for axis in &mut stage.domain {
        let fresh = nest.axis(axis.extent);
        by_axis.insert(axis.id, Scalar::axis(fresh.id));
        *axis = fresh;
    }
    replace_axes(&mut stage, &by_axis);
    stage
}

/// Divides axes of the domain that a sum of products only knows by quotient and rest: output
/// channels of a grouped convolution become groups, and channels in a group.
fn split_axes(nest: &mut Nest, stage: &mut Stage) {
    while let Some((position, c)) = divided_axis(stage) {
        let axis = stage.domain[position];
        let (outer, inner) = (nest.axis(axis.extent / c), nest.axis(c));
        let whole = Scalar::axis(outer.id) * c as i64 + Scalar::axis(inner.id);
        replace_axes(stage, &[(axis.id, whole)].into_iter().collect());
        stage.domain.splice(position..=position, [outer, inner]);
        simplify_stage(stage);
    }
}

/// An axis of the domain that a sum of products divides by a constant.
fn divided_axis(stage: &Stage) -> Option<(usize, usize)> {
    let mut found = None;
    for sum in sums(stage) {
        visit(&sum, &mut |x| {
            let Kind::Binary(Binary::Div | Binary::Rem, a, c) = x.kind() else {
                return;
            };
            let (Kind::Axis(id), Some(c)) = (a.kind(), c.as_index()) else {
                return;
            };
            let position = stage.domain.iter().position(|axis| axis.id == *id);
            let (Some(position), Ok(c)) = (position, usize::try_from(c)) else {
                return;
            };
            if position == 0 && stage.group.is_some() {
                return;
            }
            let extent = stage.domain[position].extent;
            if c > 1 && c < extent && extent.is_multiple_of(c) {
                found = Some((position, c));
            }
        });
    }
    found
}
