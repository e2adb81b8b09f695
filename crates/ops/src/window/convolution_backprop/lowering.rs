//! Transposed convolutions as sums, in phases.
//!
//! Along a dim of stride `s` that begins behind `b` elements of padding, `out[y]` takes the taps `k` with `(y + b - k) % s == 0`.
//! So `y = s · q + r` tells the output apart into `s` phases `r`, each a convolution with every `s`-th tap alone:
//!
//! > `out[s · q + r] = Σ_t data[q + (b + r) / s - t] · filters[(b + r) % s + s · t]`
//!
//! Neighbouring phases that begin at the same element and have equally many taps are one stage. Where `y + b % s = s · q + r` tells
//! the output apart, all begin at the same element, but some of what is computed may lie before the output or behind it. A dilation
//! and a stride together are a convolution of the data with zeros spread between its elements; so are the few phases of channels
//! that are kept apart.

use crate::Lower;
use crate::elementwise::widened;
use crate::layout::index_map::{extent, within_extent};
use vinelift_nest::build::{boolean, index, select, zero};
use vinelift_nest::{BufferId, Mode, Scalar};
use vinelift_tensor::Extent;

#[cfg(test)]
mod tests;

/// For how many phases of all dims together the output is rounded up to whole strides: what is computed in vain is less than two
/// strides along each dim.
const MOST_PHASES: i64 = 4096;

/// For how many outputs of a phase one more does not count. With fewer, phases are more stages, and none computes more.
const MANY_OUTPUTS: usize = 16;

/// Fewer outputs of one place than this are few for a vector.
const FEW_OUTPUTS: usize = 8;

/// How element `i` and tap `k` of one spatial dim meet at `y + begin = stride · i + dilation · k`.
pub(super) struct Steps {
    pub(super) stride: i64,
    pub(super) dilation: i64,
    pub(super) begin: i64,
    pub(super) kernel: i64,
    pub(super) data: Extent,
    pub(super) out: Extent,
}

/// Stages that set the output of a transposed convolution with these steps.
pub(super) fn lower(cx: &mut Lower<'_>, dims: &[Steps], grouped: bool) {
    let phases: Option<Vec<Phases>> = dims.iter().map(Phases::of).collect();
    let filters = cx.shape("filters");
    let channels = &filters[usize::from(grouped)..][..2];
    let phases = phases.filter(|phases| !share_little(channels, phases));
    match phases {
        Some(phases) if phases.iter().all(Phases::are_one) => in_one_stage(cx, &phases, grouped),
        Some(phases) if count(&phases).is_some_and(|n| n <= MOST_PHASES) => {
            in_stages(cx, &phases, grouped);
        }
        _ => over_spread_data(cx, dims, grouped),
    }
}

/// The phases of one spatial dim: `y + begin = stride · q + r`.
struct Phases<'s> {
    steps: &'s Steps,
    /// Where the output begins among its phases, less than the stride.
    begin: i64,
    /// How many outputs of each phase there are.
    quotients: Extent,
    /// How many there are of all phases.
    whole: Extent,
}

/// Neighbouring phases of one dim that begin at the same element, and have equally many taps.
#[derive(Clone, Copy)]
struct Alike {
    first: i64,
    count: usize,
    taps: usize,
    /// The element that meets the first tap of output 0 of the first phase, and that tap.
    element: i64,
    tap: i64,
}

/// A place of the output along one dim.
struct Place<'p> {
    steps: &'p Steps,
    /// How many taps meet elements there.
    taps: usize,
    /// The element that meets the first of these taps.
    element: Scalar,
    /// The first of these taps.
    tap: Scalar,
    /// Whether elements that taps meet there may lie outside.
    may_be_outside: bool,
}

impl Phases<'_> {
    /// `None` where taps of a phase do not follow each other in steps of the stride, or where the number of outputs of a phase
    /// is no formula.
    fn of(steps: &Steps) -> Option<Phases<'_>> {
        if steps.out == 0 || (steps.stride > 1 && steps.dilation > 1) {
            return None;
        }
        let padding = steps.begin.rem_euclid(steps.stride);
        let (own, all) = (steps.phases_from(0)?, steps.phases_from(padding)?);
        let has_fewer = match (own.quotients.number(), all.quotients.number()) {
            (Some(own), Some(all)) => own < all && own < MANY_OUTPUTS,
            _ => false,
        };
        let phases = match own.are_one() || has_fewer {
            true => own,
            false => all,
        };
        // `quotient` and `product` note conditions that the plan relies on, so they are asked about the chosen phases alone.
        let stride = natural(steps.stride)?;
        let quotients = phases.whole.quotient(stride);
        Some(Phases {
            quotients,
            whole: quotients.product(stride),
            ..phases
        })
    }

    /// The phases in groups, one after the other.
    fn groups(&self) -> Vec<Alike> {
        let Steps {
            stride,
            kernel,
            begin,
            ..
        } = *self.steps;
        let shift = begin - self.begin;
        // The first phase, that of tap 0, and the first one of fewer taps than it.
        let mut firsts = vec![
            0,
            (-shift).rem_euclid(stride),
            (kernel - shift).rem_euclid(stride),
        ];
        firsts.sort_unstable();
        firsts.dedup();
        let ends = firsts.iter().skip(1).chain([&stride]);
        let group = |(&first, &end): (&i64, &i64)| {
            let tap = (shift + first).rem_euclid(stride);
            let step = usize::try_from(stride).unwrap_or(usize::MAX);
            Alike {
                first,
                count: usize::try_from(end - first).unwrap_or(0),
                taps: usize::try_from(kernel - tap).unwrap_or(0).div_ceil(step),
                element: (shift + first).div_euclid(stride),
                tap,
            }
        };
        firsts.iter().zip(ends).map(group).collect()
    }

    /// Whether all elements that meet taps of a group are elements of the data.
    fn are_inside(&self, group: &Alike) -> bool {
        let Steps { dilation, data, .. } = *self.steps;
        let reach = (group.taps as i64 - 1).checked_mul(dilation);
        let behind = data.formula().minus(self.quotients.formula());
        let left = behind.and_then(|behind| behind.as_number());
        reach.is_some_and(|reach| group.element >= reach)
            && left.is_some_and(|left| left >= group.element)
    }

    /// Whether the output is all outputs of all phases.
    fn are_whole(&self) -> bool {
        self.begin == 0 && self.steps.out == self.whole
    }

    /// The same, and one expression says which elements and taps meet in all phases: where they begin is linear in the phase.
    fn are_one(&self) -> bool {
        let Steps { stride, kernel, .. } = *self.steps;
        let is_linear = stride == 2 || self.groups().len() == 1;
        is_linear && kernel % stride == 0 && self.are_whole()
    }
}

impl Steps {
    /// The phases, if the output begins at `begin` among them; `None` if there is no formula for them.
    fn phases_from(&self, begin: i64) -> Option<Phases<'_>> {
        let missing = (-self.out.formula().constant()).checked_sub(begin)?;
        let more = begin.checked_add(missing.rem_euclid(self.stride))?;
        let whole = self.out.plus(natural(more)?)?;
        Some(Phases {
            steps: self,
            begin,
            quotients: whole.over(natural(self.stride)?)?,
            whole,
        })
    }
}

fn natural(n: i64) -> Option<Extent> {
    usize::try_from(n).ok().map(Extent::from)
}

impl Place<'_> {
    /// The element and the tap that meet here, the `t`-th of them; the last tap first: it meets the first of the elements, which
    /// may lie outside.
    fn meets(&self, t: &Scalar) -> (Scalar, Scalar) {
        let t = index(self.taps as i64 - 1) - t;
        let element = &self.element - &t * self.steps.dilation;
        (element, &self.tap + t * self.steps.stride)
    }
}

/// Whether the outputs of a place share too little of the data for phases to pay, as they do where channels are kept apart:
/// `channels` are the inputs and outputs of a group. Windows over spread data then run along whole lines.
fn share_little(channels: &[usize], phases: &[Phases<'_>]) -> bool {
    let has_phases = phases.iter().any(|phases| phases.steps.stride > 1);
    let count = count(phases).and_then(|n| usize::try_from(n).ok());
    let outputs = count.map_or(usize::MAX, |n| n.saturating_mul(channels[1]));
    has_phases && channels[0] == 1 && outputs < FEW_OUTPUTS
}

/// How many phases all dims have together.
fn count(phases: &[Phases<'_>]) -> Option<i64> {
    let mut strides = phases.iter().map(|phases| phases.steps.stride);
    strides.try_fold(1, i64::checked_mul)
}

/// One stage over the elements of the output.
fn in_one_stage(cx: &mut Lower<'_>, phases: &[Phases<'_>], grouped: bool) {
    cx.define(cx.output(0), |cx, at| {
        let places = phases.iter().zip(&at[2..]).map(|(phases, y)| {
            let steps = phases.steps;
            let Steps {
                stride,
                begin,
                kernel,
                ..
            } = *steps;
            let (element, tap) = match stride {
                1 => (y + begin, index(0)),
                _ => {
                    let phase = y.rem(index(stride)) + begin.rem_euclid(stride);
                    let element = y / stride + begin.div_euclid(stride) + &phase / stride;
                    (element, phase.rem(index(stride)))
                }
            };
            Place {
                steps,
                taps: usize::try_from(kernel / stride).unwrap_or(0),
                element,
                tap,
                may_be_outside: true,
            }
        });
        let places: Vec<Place> = places.collect();
        sum(cx, &at[..2], &places, grouped)
    });
}

/// A stage for all phases that are alike in each dim; if these are more than the output, into a temporary that it is taken out of.
fn in_stages(cx: &mut Lower<'_>, phases: &[Phases<'_>], grouped: bool) {
    let (out, ty) = (cx.output(0), cx.type_of(cx.output(0)));
    let outer = cx.extents_of(out)[..2].to_vec();
    let is_whole = phases.iter().all(Phases::are_whole);
    let target = match is_whole {
        true => out,
        false => {
            let dims = phases.iter().map(|p| p.whole);
            let shape: Vec<Extent> = outer.iter().copied().chain(dims).collect();
            cx.temporary("phases", ty, &shape)
        }
    };
    let groups: Vec<Vec<Alike>> = phases.iter().map(Phases::groups).collect();
    for groups in combinations(&groups) {
        let own = phases
            .iter()
            .zip(&groups)
            .flat_map(|(phases, group)| [phases.quotients, group.count.into()]);
        let domain: Vec<Extent> = outer.iter().copied().chain(own).collect();
        cx.stage(&domain, target, Mode::Set, |cx, point| {
            let axes = point[2..].chunks_exact(2);
            let dims = phases.iter().zip(&groups).zip(axes);
            let places = dims.clone().map(|((phases, group), axes)| Place {
                steps: phases.steps,
                taps: group.taps,
                element: &axes[0] + group.element,
                tap: &axes[1] + group.tap,
                may_be_outside: !phases.are_inside(group),
            });
            let places: Vec<Place> = places.collect();
            let indices = dims.map(|((phases, group), axes)| {
                &axes[0] * phases.steps.stride + (&axes[1] + group.first)
            });
            let at = point[..2].iter().cloned().chain(indices).collect();
            (at, sum(cx, &point[..2], &places, grouped))
        });
    }
    if !is_whole {
        cx.define(out, |cx, at| {
            let shifted = at[2..].iter().zip(phases).map(|(y, p)| y + p.begin);
            let from: Vec<Scalar> = at[..2].iter().cloned().chain(shifted).collect();
            cx.load_from(target, &from)
        });
    }
}

/// One of each dim's groups, in every way.
fn combinations(groups: &[Vec<Alike>]) -> Vec<Vec<Alike>> {
    groups.iter().fold(vec![vec![]], |before, groups| {
        let with = |before: &Vec<Alike>, group: &Alike| [&before[..], &[*group]].concat();
        let all = before.iter();
        all.flat_map(|before| groups.iter().map(|group| with(before, group)))
            .collect()
    })
}

/// The sum of products of one output: `outer` are its image and channel, `places` its coordinates.
fn sum(cx: &mut Lower<'_>, outer: &[Scalar], places: &[Place<'_>], grouped: bool) -> Scalar {
    let ty = cx.element("data");
    let taps: Vec<usize> = places.iter().map(|place| place.taps).collect();
    if taps.contains(&0) {
        return zero(ty);
    }
    let sum = sum_over(cx, outer, &taps, grouped, |cx, from, taps| {
        let (mut at, mut guards) = (from.to_vec(), Vec::new());
        let mut met = Vec::with_capacity(places.len());
        for (place, t) in places.iter().zip(taps) {
            let (element, tap) = place.meets(t);
            if place.may_be_outside {
                guards.push(within_extent(&element, place.steps.data));
            }
            at.push(element);
            met.push(tap);
        }
        let x = cx.load("data", &at);
        let x = match guards.into_iter().reduce(|a, b| a & b) {
            Some(is_inside) => select(is_inside, x, zero(ty)),
            None => x,
        };
        (x, met)
    });
    sum.cast(ty)
}

/// `Σ data · filters` over input channels and `taps`: `of` gives the factor from the data, whose image and channel are given, and
/// the tap, for a point of the box of taps.
fn sum_over(
    cx: &mut Lower<'_>,
    outer: &[Scalar],
    taps: &[usize],
    grouped: bool,
    of: impl Fn(&mut Lower<'_>, &[Scalar], &[Scalar]) -> (Scalar, Vec<Scalar>),
) -> Scalar {
    let (filters, ty) = (cx.shape("filters"), cx.element("data"));
    let skip = usize::from(grouped);
    let (inputs, each) = (filters[skip], extent(filters[skip + 1].max(1)));
    let box_of = [&[inputs][..], taps].concat();
    cx.sum_of_products(&box_of, ty.compute(), |cx, k| {
        let (mut from, mut filter) = (vec![outer[0].clone()], vec![]);
        if grouped {
            let group = &outer[1] / each;
            from.push(&group * extent(inputs) + &k[0]);
            filter.extend([group, k[0].clone(), outer[1].rem(index(each))]);
        } else {
            from.push(k[0].clone());
            filter.extend([k[0].clone(), outer[1].clone()]);
        }
        let (x, tap) = of(cx, &from, &k[1..]);
        filter.extend(tap);
        (widened(x), widened(cx.load("filters", &filter)))
    })
}

/// A convolution of the [spread] data, whatever the steps.
fn over_spread_data(cx: &mut Lower<'_>, dims: &[Steps], grouped: bool) {
    let ty = cx.element("data");
    let spread = spread(cx, dims);
    let taps = dims
        .iter()
        .map(|dim| usize::try_from(dim.kernel).unwrap_or(0));
    let taps: Vec<usize> = taps.collect();
    cx.define(cx.output(0), |cx, at| {
        let sum = sum_over(cx, &at[..2], &taps, grouped, |cx, from, taps| {
            let dims = dims.iter().zip(&at[2..]).zip(taps);
            let (place, tap): (Vec<Scalar>, Vec<Scalar>) = dims
                .map(|((dim, y), k)| (y + k * dim.dilation, index(dim.kernel - 1) - k))
                .unzip();
            let at = [from, &place].concat();
            (cx.load_from(spread, &at), tap)
        });
        sum.cast(ty)
    });
}

impl Steps {
    /// Behind the last element, where `stride - 1` zeros lie between neighbours.
    fn end(&self) -> Scalar {
        match self.data.number() {
            Some(n) => index(extent(n).saturating_sub(1).saturating_mul(self.stride) + 1),
            None => (Scalar::extent(self.data) - 1) * self.stride + 1,
        }
    }

    fn reach(&self) -> i64 {
        (self.kernel - 1).max(0) * self.dilation
    }
}

/// The input with `stride - 1` zeros between its elements, and zeros around it.
fn spread(cx: &mut Lower<'_>, dims: &[Steps]) -> BufferId {
    let (data, ty) = (cx.extents("data"), cx.element("data"));
    let reach = |dim: &Steps| usize::try_from(dim.reach()).unwrap_or(0);
    let space = dims.iter().map(|dim| dim.out.sum(reach(dim).into()));
    let shape: Vec<Extent> = data[..2].iter().copied().chain(space).collect();
    let spread = cx.temporary("spread", ty, &shape);
    cx.define(spread, |cx, at| {
        let (mut from, mut guard) = (at[..2].to_vec(), boolean(true));
        for (place, dim) in at[2..].iter().zip(dims) {
            let Steps { stride, .. } = *dim;
            let ahead = place + (dim.begin - dim.reach());
            guard = guard & (ahead.ge(index(0)) & ahead.lt(dim.end()));
            if stride == 1 {
                from.push(ahead);
            } else {
                guard = guard & ahead.rem(index(stride)).eq(index(0));
                from.push(ahead / stride);
            }
        }
        select(guard, cx.load("data", &from), zero(ty))
    });
    spread
}
