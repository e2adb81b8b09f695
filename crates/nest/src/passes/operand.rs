//! Operands: a factor or a guarded input, stored as a tensor over the values that its index arithmetic takes.
//!
//! The index arithmetic of a padded convolution uses `oh` and `kh` only as `oh · stride + kh - pad`. So the tensor
//! has one dim for that sum, not two: it is the padded input, and not every window of it.

use crate::analysis::Linear;
use crate::ir::{Axis, AxisId, Kind, Mode, Nest, Role, Scalar, Stage, free_axes};
use crate::passes::simplify::simplify_stage;
use rustc_hash::{FxHashMap, FxHashSet};
use vinelift_tensor::{ElementType, Extent, Formula};

/// The dims of a tensor that holds all values of a factor.
pub(crate) struct Operand {
    dims: Vec<Core>,
}

/// `Σ coefficient · axis`, without a constant.
#[derive(Clone, PartialEq)]
struct Core {
    terms: Vec<(Axis, i64)>,
}

impl Operand {
    /// For the factor `x` of a product with `other`, over axes of the domain (`outer`) and axes summed over
    /// (`inner`).
    pub(crate) fn of(x: &Scalar, other: &Scalar, outer: &[Axis], inner: &[Axis]) -> Operand {
        Operand::over(dims_of(x, outer, inner), x, other, outer, inner)
    }

    /// As [`Operand::of`], with dims that no axis goes back along, as a contraction needs them. The taps of a transposed
    /// convolution start at the last, and at which one depends on where between two elements of the input a result lies.
    pub(crate) fn forward(x: &Scalar, other: &Scalar, outer: &[Axis], inner: &[Axis]) -> Operand {
        let mut dims: Vec<Core> = Vec::new();
        for core in dims_of(x, outer, inner).into_iter().flat_map(Core::forward) {
            if !dims.contains(&core) {
                dims.push(core);
            }
        }
        Operand::over(dims, x, other, outer, inner)
    }

    fn over(
        mut dims: Vec<Core>,
        x: &Scalar,
        other: &Scalar,
        outer: &[Axis],
        inner: &[Axis],
    ) -> Operand {
        let mut used = FxHashSet::default();
        let apart = dims
            .iter()
            .flat_map(|core| &core.terms)
            .all(|(axis, _)| used.insert(axis.id));
        if !apart {
            let free = free_axes(x);
            let known = outer.iter().chain(inner).filter(|a| free.contains(&a.id));
            dims = known.map(|axis| Core::axis(*axis)).collect();
        }
        // First what both factors have, as batches do. Then, if the sums lie along an axis of this factor,
        // axes that are only summed over and the domain's in its order, so that vectors of sums need vectors of
        // the factor; otherwise axes of the domain alone, those only summed over, and what slides.
        let both = free_axes(other);
        let innermost = outer.iter().rfind(|a| a.extent > 1).map(|a| a.id);
        let has_innermost = |core: &Core| core.terms.iter().any(|(a, _)| Some(a.id) == innermost);
        let along = dims.iter().any(has_innermost);
        let position = |core: &Core| {
            let of = |a: &Axis| outer.iter().position(|o| o.id == a.id);
            let last = core.terms.iter().filter_map(|(a, _)| of(a)).max();
            let kind = match (last, core.terms.as_slice()) {
                (Some(_), [(axis, _)]) if Some(axis.id) == innermost => 3,
                (Some(_), [(axis, _)]) if both.contains(&axis.id) => 0,
                (Some(_), [_]) if !along => 1,
                (None, _) => 2,
                (Some(_), _) => 3,
            };
            (kind, last)
        };
        dims.sort_by_key(position);
        Operand { dims }
    }

    /// The number of elements, at the example.
    pub(crate) fn elements(&self) -> usize {
        let extents = self.dims.iter().map(Core::example);
        extents.fold(1usize, usize::saturating_mul)
    }

    /// The stage that stores `x` in a new buffer, and the load that stands for `x`. `None` if there is no formula for
    /// the extent of a dim.
    pub(crate) fn store(
        &self,
        nest: &mut Nest,
        name: &str,
        stage: &Stage,
        x: &Scalar,
    ) -> Option<(Stage, Scalar)> {
        let shape: Vec<Extent> = self.dims.iter().map(Core::extent).collect::<Option<_>>()?;
        let target = nest.buffer(name, x.ty(), &shape, Role::Temporary);
        let domain = nest.axes(&shape);
        let places: Vec<Scalar> = self
            .dims
            .iter()
            .zip(&domain)
            .map(|(core, axis)| Scalar::axis(axis.id) + core.low())
            .collect();
        let value = self.substitute(x, &places, &mut FxHashMap::default());
        let load = nest.load(target, self.dims.iter().map(Core::index).collect());
        let at = domain.iter().map(|a| Scalar::axis(a.id)).collect();
        let mut stored = Stage {
            domain,
            target,
            at,
            mode: Mode::Set,
            value,
            layers: stage.layers.clone(),
            group: None,
        };
        simplify_stage(&mut stored);
        Some((stored, load))
    }

    /// `x` with `places` for the dims.
    fn substitute(
        &self,
        x: &Scalar,
        places: &[Scalar],
        memo: &mut FxHashMap<usize, Scalar>,
    ) -> Scalar {
        if let Some(done) = memo.get(&x.address()) {
            return done.clone();
        }
        let affine = Affine::of(x);
        let place = affine.as_ref().and_then(|x| self.place(x, places));
        let done = match (place, affine) {
            (Some(place), Some(affine)) => (affine.rest.iter()).fold(place, |sum, (atom, k)| {
                sum + self.substitute(atom, places, memo) * *k
            }),
            _ => x.with_children(|child| self.substitute(child, places, memo)),
        };
        memo.insert(x.address(), done.clone());
        done
    }

    /// The index that replaces `x` without its rest, if that is a multiple of one of the dims, and a constant.
    fn place(&self, x: &Affine, places: &[Scalar]) -> Option<Scalar> {
        let (terms, constant) = (&x.terms, x.constant);
        let is_dim = |core: &Core| {
            let (known, _) = core.terms.first()?;
            let (_, k) = terms.iter().find(|(id, _)| *id == known.id)?;
            let times = k / core.terms.first()?.1;
            let fits = core.terms.len() == terms.len()
                && core
                    .terms
                    .iter()
                    .all(|(a, c)| terms.iter().any(|(id, k)| *id == a.id && *k == c * times));
            fits.then_some(times)
        };
        self.dims.iter().zip(places).find_map(|(core, place)| {
            let times = is_dim(core)?;
            Some(place.clone() * times + constant)
        })
    }
}

impl Core {
    fn axis(axis: Axis) -> Core {
        Core {
            terms: vec![(axis, 1)],
        }
    }

    /// Dims for the same values that no axis goes back along.
    fn forward(mut self) -> Vec<Core> {
        let back = self.terms.iter().filter(|(_, k)| *k < 0).count();
        if back == 0 {
            return vec![self];
        }
        if back < self.terms.len() {
            let apart = self.terms.iter().map(|(axis, _)| Core::axis(*axis));
            return apart.collect();
        }
        for (_, k) in &mut self.terms {
            *k = k.saturating_neg();
        }
        vec![self]
    }

    /// The least value, a number wherever there is an [`Core::extent`].
    fn low(&self) -> i64 {
        let reach = |(a, k): &(Axis, i64)| k.min(&0).saturating_mul(last(a));
        self.terms.iter().map(reach).fold(0, i64::saturating_add)
    }

    /// The number of values at the example.
    fn example(&self) -> usize {
        let reach = |(a, k): &(Axis, i64)| k.unsigned_abs() as usize * last(a) as usize;
        let reach = self.terms.iter().map(reach).fold(0, usize::saturating_add);
        reach.saturating_add(1)
    }

    /// The number of values, `1 + Σ |coefficient| · (extent - 1)`; `None` if there is no formula for it, or the least
    /// value is a formula.
    fn extent(&self) -> Option<Extent> {
        if !self.terms.iter().any(|(a, _)| a.extent.is_symbolic()) {
            return Some(self.example().into());
        }
        let mut sum = Formula::number(1);
        for (axis, k) in &self.terms {
            if axis.extent.is_symbolic() && *k < 0 {
                return None;
            }
            let last = axis.extent.formula().minus(&Formula::number(1))?;
            sum = sum.plus(&last.times(&Formula::number(k.checked_abs()?))?)?;
        }
        let extent = Extent::new(sum, self.example());
        Extent::may_be(extent.example()).then_some(extent)
    }

    /// The index into the dim.
    fn index(&self) -> Scalar {
        let terms = self.terms.iter().map(|(a, k)| match k {
            1 => Scalar::axis(a.id),
            k => Scalar::axis(a.id) * *k,
        });
        let sum = terms.reduce(|sum, term| sum + term);
        let sum = sum.unwrap_or_else(|| crate::build::index(0));
        match self.low() {
            0 => sum,
            low => sum - low,
        }
    }
}

fn last(axis: &Axis) -> i64 {
    i64::try_from(axis.extent.example()).map_or(i64::MAX / 2, |n| n.max(1) - 1)
}

/// Index arithmetic: `constant + Σ coefficient · axis + Σ coefficient · rest`, with at least one axis.
struct Affine {
    terms: Vec<(AxisId, i64)>,
    /// The terms that are no axes, such as multiples of extents with symbols.
    rest: Vec<(Scalar, i64)>,
    constant: i64,
}

impl Affine {
    fn of(x: &Scalar) -> Option<Affine> {
        if x.ty() != ElementType::I64 {
            return None;
        }
        let form = Linear::of(x);
        let mut affine = Affine {
            terms: Vec::new(),
            rest: Vec::new(),
            constant: form.constant,
        };
        for (atom, k) in form.terms {
            match atom.kind() {
                Kind::Axis(id) => affine.terms.push((*id, k)),
                _ => affine.rest.push((atom, k)),
            }
        }
        Some(affine).filter(|affine| !affine.terms.is_empty())
    }
}

/// The dims that the index arithmetic in `x` knows.
fn dims_of(x: &Scalar, outer: &[Axis], inner: &[Axis]) -> Vec<Core> {
    let axes: FxHashMap<AxisId, Axis> = outer.iter().chain(inner).map(|a| (a.id, *a)).collect();
    let mut dims: Vec<Core> = Vec::new();
    collect(x, &axes, &mut dims, &mut FxHashSet::default());
    dims
}

fn collect(
    x: &Scalar,
    axes: &FxHashMap<AxisId, Axis>,
    dims: &mut Vec<Core>,
    seen: &mut FxHashSet<usize>,
) {
    if !seen.insert(x.address()) {
        return;
    }
    let Some(Affine { terms, rest, .. }) = Affine::of(x) else {
        x.children().for_each(|c| collect(c, axes, dims, seen));
        return;
    };
    rest.iter()
        .for_each(|(atom, _)| collect(atom, axes, dims, seen));
    let terms: Option<Vec<(Axis, i64)>> = terms
        .into_iter()
        .map(|(id, k)| Some((*axes.get(&id)?, k)))
        .collect();
    let Some(mut terms) = terms else { return };
    terms.sort_by_key(|(a, _)| a.id);
    if let [(axis, _)] = terms[..] {
        terms = vec![(axis, 1)];
    }
    let core = Core { terms };
    if !dims.contains(&core) {
        dims.push(core);
    }
}
