//! The loop nests: one that picks the nearest elements, or one for each axis that mixes elements.

use super::coordinates::{Nearest, Transform};
use super::formulas::Formulas;
use super::mix::Mix;
use super::positions::Positions;
use super::resized::Resized;
use super::taps::{Filter, Taps};
use super::windows::Windows;
use crate::Lower;
use crate::elementwise::widened;
use crate::layout::index_map::extent;
use crate::window::mixing::{mixing_type, stored, whole};
use std::cmp::Reverse;
use vinelift_nest::build::{index, select, zero};
use vinelift_nest::{BufferId, Scalar};
use vinelift_tensor::ElementType;

/// The axes that are resized, and how.
pub(super) struct Resize {
    pub(super) data: BufferId,
    /// How many zeros lie before each dim of the data.
    pub(super) pads_begin: Vec<usize>,
    /// How many lie after it.
    pub(super) pads_end: Vec<usize>,
    /// In the order of the model.
    pub(super) axes: Vec<Resized>,
    pub(super) transform: Transform,
}

impl Resize {
    /// Each element is that of the input nearest to its coordinate.
    pub(super) fn nearest(&self, cx: &mut Lower<'_>, nearest: Nearest) {
        let positions: Vec<(usize, Positions)> = (self.axes.iter())
            .filter(|axis| !axis.from.same(axis.to))
            .map(|axis| {
                if let Some(formulas) = Formulas::new(axis, self.transform, None) {
                    return (
                        axis.dim,
                        Positions::of_formulas(cx, &formulas, nearest, axis),
                    );
                }
                let axis = axis.pinned();
                let of = |o| axis.nearest(self.transform, nearest, o);
                let all: Vec<usize> = (0..axis.to).map(of).collect();
                (axis.dim, Positions::new(cx, &all, axis.from - 1))
            })
            .collect();
        cx.define(cx.output(0), |cx, at| {
            let mut from = at.to_vec();
            for (dim, positions) in &positions {
                from[*dim] = positions.at(cx, &at[*dim]);
            }
            self.read(cx, from)
        });
    }

    /// Each element is a weighted sum of neighbours along one axis after the other.
    pub(super) fn filtered(&self, cx: &mut Lower<'_>, filter: Filter) {
        let (out, pillow) = (cx.output(0), matches!(filter, Filter::Pillow { .. }));
        let (ty, target) = (cx.type_of(out), cx.extents_of(out));
        let wide = mixing_type(ty);
        let mut axes: Vec<&Resized> = self.axes.iter().collect();
        axes.retain(|axis| !axis.from.same(axis.to));
        if pillow {
            axes.reverse();
        } else if axes.len() > 1 {
            // Axes that shrink come first, so that what is in between is small, and the innermost last, which sums within rows.
            // Of axes that grow the innermost comes first, whose elements are picked one by one: fewer are picked for fewer
            // rows. By how much they grow or shrink does not count: a plan for many shapes would be for one order of these alone.
            let (mut shrinking, mut growing): (Vec<&Resized>, Vec<&Resized>) =
                axes.into_iter().partition(|axis| axis.shrinks());
            shrinking.sort_by_key(|axis| axis.dim);
            growing.sort_by_key(|axis| Reverse(axis.dim));
            axes = [shrinking, growing].concat();
        }
        let Some((last, others)) = axes.split_last() else {
            cx.define(out, |cx, at| self.read(cx, at.to_vec()));
            return;
        };
        let mut shape = target.clone();
        axes.iter().for_each(|axis| shape[axis.dim] = axis.from);
        let mut source = None;
        let pass = |cx: &mut Lower<'_>, source: Option<BufferId>, axis: &Resized, to: BufferId| {
            let mix = self.mix(cx, filter, axis, wide);
            let is_whole = pillow || to == out;
            cx.define(to, |cx, at| {
                let (o, start) = (&at[axis.dim], mix.starts.at(cx, &at[axis.dim]));
                let sum = mix.sum(cx, wide, |cx, k| {
                    let mut from = at.to_vec();
                    from[axis.dim] = mix.place(&start, k, axis);
                    let x = match source {
                        Some(source) => cx.load_from(source, &from),
                        None => widened(self.read(cx, from)).cast(wide),
                    };
                    x * cx.load_from(mix.weights, &[k * &Scalar::extent(axis.to) + o])
                });
                let sum = match is_whole {
                    true => whole(sum, ty, Scalar::round),
                    false => sum,
                };
                match to == out {
                    true => stored(sum, ty),
                    false => sum,
                }
            });
        };
        for axis in others {
            shape[axis.dim] = axis.to;
            let between = cx.temporary("resized", wide, &shape);
            pass(cx, source, axis, between);
            source = Some(between);
        }
        pass(cx, source, last, out);
    }

    /// Which elements make up those of the output along `axis`, with weights of type `wide`.
    fn mix(&self, cx: &mut Lower<'_>, filter: Filter, axis: &Resized, wide: ElementType) -> Mix {
        let exact = wide == ElementType::F64;
        let shrinks = self.axes.iter().any(Resized::shrinks);
        let formulas = Formulas::new(axis, self.transform, Some(filter));
        match (&formulas, filter.fewest()) {
            (Some(formulas), Some(_)) => {
                return Mix::of_formulas(cx, formulas, filter, axis, wide);
            }
            (Some(formulas), None) => {
                if let Some(windows) = Windows::new(formulas, axis, filter, shrinks, exact) {
                    return Mix::of_windows(windows.tables(cx, wide), axis);
                }
            }
            (None, _) => {}
        }
        let axis = axis.pinned();
        let taps = Taps::new(filter, &axis, self.transform, shrinks, exact);
        Mix {
            count: taps.count,
            counted: None,
            starts: Positions::new(cx, &taps.starts, axis.from - taps.count),
            weights: cx.weights("weights", wide, &taps.weights),
        }
    }

    /// The data at `from`, where pads count.
    fn read(&self, cx: &Lower<'_>, from: Vec<Scalar>) -> Scalar {
        let shape = cx.extents_of(self.data);
        let mut guard: Option<Scalar> = None;
        let mut at = from;
        for (d, i) in at.iter_mut().enumerate() {
            let (begin, end) = (self.pads_begin[d], self.pads_end[d]);
            if begin + end == 0 {
                continue;
            }
            *i = &*i - extent(begin);
            let here = i.ge(index(0)) & i.lt(Scalar::extent(shape[d]));
            guard = Some(guard.map_or(here.clone(), |guard| guard & here));
        }
        if shape.iter().any(|n| *n == 0) {
            return zero(cx.type_of(self.data));
        }
        let x = cx.load_from(self.data, &at);
        match guard {
            Some(guard) => select(guard, x, zero(cx.type_of(self.data))),
            None => x,
        }
    }
}
