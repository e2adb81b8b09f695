//! Windows that grow as the output shrinks, along an axis whose extents have symbols: what `taps` works out for numbers,
//! as stages that give the same bits.
//!
//! Which elements of a window have weights depends on the extents. A window has room for those that any extents of the
//! plan may ask for, and its weights begin with the first that is not 0, as those of numbers do. How many count is a number
//! of the run, so that no element counts whose table would not have it.

use super::formulas::{Formulas, convolution};
use super::resized::Resized;
use super::taps::Filter;
use crate::Lower;
use crate::layout::index_map::extent;
use vinelift_nest::build::{index, number, select, zero};
use vinelift_nest::{Binary, BufferId, Mode, Scalar};
use vinelift_tensor::ElementType::{F64, I64};
use vinelift_tensor::{ElementType, Extent};

/// Longer windows are left to the tables: their sums are divided into parts.
const MOST_ROOM: usize = 23;

/// The windows of each element of the output along an axis.
pub(super) struct Windows<'a> {
    formulas: &'a Formulas<'a>,
    axis: &'a Resized,
    filter: Filter,
    /// Whether the output is smaller along some axis.
    shrinks: bool,
    /// Whether coordinates are `f64`.
    exact: bool,
    room: usize,
}

/// The tables of [`Windows`].
pub(super) struct WindowTables {
    /// How many elements there is room for.
    pub(super) room: usize,
    /// How many elements count: one number.
    pub(super) count: BufferId,
    /// The first element of each window.
    pub(super) starts: BufferId,
    /// The weight of element `k` for output `o` is at `k · extent + o`.
    pub(super) weights: BufferId,
}

/// A window before elements without weight at its ends are left out: of output `o`, the elements from `low` to before
/// `high`.
struct Wide {
    low: Scalar,
    high: Scalar,
    /// Where its middle is.
    middle: Scalar,
    /// How far its elements are apart, where those next to each other are 1 apart.
    stretch: Scalar,
}

impl<'a> Windows<'a> {
    /// `None` if windows may be too long.
    pub(super) fn new(
        formulas: &'a Formulas<'a>,
        axis: &'a Resized,
        filter: Filter,
        shrinks: bool,
        exact: bool,
    ) -> Option<Windows<'a>> {
        let ratio = axis.from.example().div_ceil(axis.to.example().max(1));
        let is_bounded = axis.from.at_most(axis.to.product(ratio.into()));
        let by_scale = axis.scale.map_or(1, |scale| (1.0 / scale).ceil() as usize);
        let reach = match filter {
            Filter::Pillow { cubic: Some(_) } => 2 * ratio,
            Filter::Pillow { cubic: None } => ratio,
            _ => ratio.max(by_scale),
        };
        let room = 2 * reach + 3;
        (is_bounded && room <= MOST_ROOM).then_some(Windows {
            formulas,
            axis,
            filter,
            shrinks,
            exact,
            room,
        })
    }

    /// Appends the stages that work out the tables, with weights of type `wide`.
    pub(super) fn tables(&self, cx: &mut Lower<'_>, wide: ElementType) -> WindowTables {
        let (to, room) = (self.axis.to, self.room);
        let low = self.per_output(cx, "low", I64, |_, o| self.wide(o).low);
        let raw = cx.temporary("raw", F64, &[to, room.into()]);
        cx.define(raw, |cx, at| self.weight(cx, low, &at[0], &at[1]));
        let fold = |cx: &mut Lower<'_>,
                    op,
                    init: Scalar,
                    f: &dyn Fn(Scalar, &Scalar) -> Scalar,
                    o: &Scalar| {
            cx.reduce(op, &[room], init, |cx, k| {
                f(cx.load_from(raw, &[o.clone(), k[0].clone()]), &k[0])
            })
        };
        let has_weight = |weight: Scalar| weight.ne(zero(F64));
        let sum = self.per_output(cx, "sum", F64, |cx, o| {
            fold(cx, Binary::Add, zero(F64), &|weight, _| weight, o)
        });
        let skipped = self.per_output(cx, "skipped", I64, |cx, o| {
            let all = self.wide(o).high - cx.load_from(low, std::slice::from_ref(o));
            let first =
                |weight, k: &Scalar| select(has_weight(weight), k.clone(), index(extent(room)));
            let first = fold(cx, Binary::Min, index(extent(room)), &first, o);
            first.min(all.max(index(0)))
        });
        let kept = self.per_output(cx, "kept", I64, |cx, o| {
            let last = |weight, k: &Scalar| select(has_weight(weight), k + 1, index(0));
            fold(cx, Binary::Max, index(0), &last, o)
        });
        let count = cx.temporary("count", I64, &[1]);
        cx.define(count, |cx, _| {
            let most = cx.reduce(Binary::Max, &[to], index(1), |cx, o| {
                cx.load_from(kept, o) - cx.load_from(skipped, o)
            });
            most.min(Scalar::extent(self.axis.from))
        });
        let starts = self.per_output(cx, "starts", I64, |cx, o| {
            let o = std::slice::from_ref(o);
            let start = cx.load_from(low, o) + cx.load_from(skipped, o);
            start.min(Scalar::extent(self.axis.from) - cx.load_from(count, &[index(0)]))
        });
        let weights = cx.temporary("weights", wide, &[to.product(room.into())]);
        cx.stage(&[room.into(), to], weights, Mode::Set, |cx, at| {
            let o = std::slice::from_ref(&at[1]);
            let k = &at[0] + cx.load_from(starts, o) - cx.load_from(low, o);
            let is_there = k.ge(index(0)) & k.lt(index(extent(room)));
            let inside = k.max(index(0)).min(index(extent(room) - 1));
            let weight = cx.load_from(raw, &[at[1].clone(), inside]);
            let sum = cx.load_from(sum, o);
            let weight = select(sum.ne(zero(F64)), &weight / &sum, weight);
            let weight = select(is_there, weight, zero(F64)).cast(wide);
            (vec![&at[0] * &Scalar::extent(to) + &at[1]], weight)
        });
        WindowTables {
            room,
            count,
            starts,
            weights,
        }
    }

    /// A temporary with a value for each element of the output.
    fn per_output(
        &self,
        cx: &mut Lower<'_>,
        name: &str,
        ty: ElementType,
        value: impl FnOnce(&mut Lower<'_>, &Scalar) -> Scalar,
    ) -> BufferId {
        let target = cx.temporary(name, ty, &[self.axis.to]);
        cx.define(target, |cx, at| value(cx, &at[0]));
        target
    }

    fn wide(&self, o: &Scalar) -> Wide {
        let one = || number(1.0, F64);
        let within = |x: Scalar| {
            let x = x.max(zero(F64)).cast(I64);
            x.min(Scalar::extent(self.axis.from))
        };
        let Filter::Pillow { cubic } = self.filter else {
            let middle = self.formulas.coordinate(o, self.exact);
            let a = match self.shrinks {
                true => self.formulas.scale(self.float()).cast(F64),
                false => one(),
            };
            let reach = one() / &a;
            return Wide {
                low: within((&middle - &reach).floor()),
                high: within((&middle + &reach).ceil() + 1.0),
                middle,
                stretch: a,
            };
        };
        let float = |n: Extent| Scalar::extent(n).cast(F64);
        let scale = float(self.axis.from) / float(self.axis.to);
        let stretch = scale.clone().max(one());
        let support = &stretch * if cubic.is_some() { 2.0 } else { 1.0 };
        let middle = (o.clone().cast(F64) + 0.5) * scale;
        Wide {
            low: within(&middle - &support + 0.5),
            high: within(&middle + &support + 0.5),
            middle,
            stretch,
        }
    }

    /// The weight of element `k` of the window of output `o`, not normalized.
    fn weight(&self, cx: &Lower<'_>, low: BufferId, o: &Scalar, k: &Scalar) -> Scalar {
        let Wide {
            high,
            middle,
            stretch,
            ..
        } = self.wide(o);
        let place = cx.load_from(low, std::slice::from_ref(o)) + k;
        let i = place.clone().cast(F64);
        let weight = match self.filter {
            Filter::Pillow { cubic } => {
                let distance = ((i - middle + 0.5) / stretch).abs();
                match cubic {
                    Some(a) => convolution(&distance, a),
                    None => (number(1.0, F64) - distance).max(zero(F64)),
                }
            }
            _ => {
                let round = |x: Scalar| x.cast(self.float());
                let distance = round(stretch) * round(middle - i);
                let weight = number(1.0, self.float()) - distance.abs();
                weight.max(zero(self.float())).cast(F64)
            }
        };
        select(place.lt(high), weight, zero(F64))
    }

    /// The type in which coordinates are worked out.
    fn float(&self) -> ElementType {
        match self.exact {
            true => F64,
            false => ElementType::F32,
        }
    }
}
