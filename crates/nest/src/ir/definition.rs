//! Substitution: the value of a stage in place of the loads of what it writes.

use crate::ir::{
    Axis, AxisId, BufferId, Kind, Nest, Scalar, Stage, Wrap, build, rebound, rewrite,
    rewrite_those, visit, visit_those,
};
use rustc_hash::FxHashMap;
use vinelift_tensor::ElementType;

/// A definition `target[axes] = value`, ready to be put in place of loads.
pub(crate) struct Definition<'a> {
    pub(crate) target: BufferId,
    pub(crate) axes: &'a [Axis],
    pub(crate) value: &'a Scalar,
}

impl<'a> Definition<'a> {
    /// The definition that a stage makes ([`Stage::is_definition`]).
    pub(crate) fn of(stage: &'a Stage) -> Definition<'a> {
        Definition {
            target: stage.target,
            axes: &stage.domain,
            value: &stage.value,
        }
    }

    /// Puts the definition in place of every load of its target in `stage`. The axes of reductions
    /// in it are made anew for each element that is loaded; loads of the same one stay one value.
    pub(crate) fn inline_into(&self, nest: &mut Nest, stage: &mut Stage) {
        let mut done: FxHashMap<Scalar, Scalar> = FxHashMap::default();
        rewrite_those(stage, Scalar::loads, &mut |x| match x.kind() {
            Kind::Load { buffer, at } if *buffer == self.target => {
                let value = done.get(&x).cloned();
                let value = value.unwrap_or_else(|| self.instantiate(nest, at));
                done.insert(x, value.clone());
                value
            }
            _ => x,
        });
    }

    /// The value with `at` in place of the axes: it replaces a load `target[at]`.
    pub(crate) fn instantiate(&self, nest: &mut Nest, at: &[Scalar]) -> Scalar {
        let mut by_axis: FxHashMap<AxisId, Scalar> = FxHashMap::default();
        let mut inside: Option<Scalar> = None;
        for (axis, index) in self.axes.iter().zip(at) {
            let index = match index.kind() {
                // A load reads zero there; what is computed from loads need not be zero.
                Kind::Wrap(w) if w.policy.zero && !self.is_index(axis.id) => {
                    let (condition, index) = checked(w);
                    inside = Some(match inside {
                        Some(others) => others & condition,
                        None => condition,
                    });
                    index
                }
                _ => index.clone(),
            };
            by_axis.insert(axis.id, index);
        }
        let mut fresh: FxHashMap<AxisId, Axis> = FxHashMap::default();
        for axis in reduce_axes(self.value) {
            let new = nest.axis(axis.extent);
            fresh.insert(axis.id, new);
            by_axis.insert(axis.id, Scalar::axis(new.id));
        }
        let value = rewrite(self.value, &mut |x| match x.kind() {
            Kind::Axis(id) => by_axis.get(id).cloned().unwrap_or(x),
            _ => rebound(x, &fresh),
        });
        match inside {
            Some(inside) => {
                let zero = build::zero(value.ty());
                Scalar::select(inside, value, zero)
            }
            None => value,
        }
    }

    /// Whether the value is a load that has the axis for an index, and elsewhere not.
    fn is_index(&self, axis: AxisId) -> bool {
        let Kind::Load { at, .. } = self.value.kind() else {
            return false;
        };
        let is_axis = |x: &Scalar| x.is_axis(axis);
        let mut uses = 0;
        for index in at.iter().filter(|x| !is_axis(x)) {
            visit(index, &mut |x| uses += usize::from(is_axis(x)));
        }
        uses == 0 && at.iter().filter(|x| is_axis(x)).count() == 1
    }
}

/// Whether a data-dependent index is in range, and the index if it is.
fn checked(w: &Wrap) -> (Scalar, Scalar) {
    let extent = Scalar::extent(w.extent);
    let inside = |index: &Scalar| index.ge(build::index(0)) & index.lt(extent.clone());
    if w.index.ty() == ElementType::U64 {
        let below = match w.extent.number() {
            Some(number) => build::integer(number as i64, ElementType::U64),
            None => extent.clone().cast(ElementType::U64),
        };
        let index = w.index.clone().cast(ElementType::I64);
        return (w.index.lt(below) & inside(&index), index);
    }
    let mut index = w.index.clone().cast(ElementType::I64);
    if w.policy.negative && !w.index.ty().is_unsigned_integer() {
        let from_end = &index + &extent;
        index = Scalar::select(index.lt(build::index(0)), from_end, index);
    }
    (inside(&index), index)
}

fn reduce_axes(x: &Scalar) -> Vec<Axis> {
    let mut axes = Vec::new();
    visit_those(x, Scalar::folds, &mut |x| {
        if let Kind::Reduce { axes: more, .. } = x.kind() {
            axes.extend(more.iter().copied());
        }
    });
    axes
}
