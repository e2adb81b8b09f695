//! Stages that go on from what they have written: `y[i, j] = f(y[i, j - 1], …)`.

use crate::analysis::{Linear, Ranges, flat_offset};
use crate::ir::{Axis, BufferId, Kind, Mode, Nest, Scalar, Stage, visit_stage};
use vinelift_tensor::is_injective;

/// How a stage reads its own target: each point reads the element that the point before it along one axis has written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scan {
    /// The axis of the recurrence.
    pub axis: Axis,
    /// Elements from a point to the next along it.
    pub step: i64,
    /// Whether the points of the other axes neither write nor read what others of them write, so that
    /// their order does not matter.
    pub is_apart: bool,
}

impl Scan {
    /// How `stage` goes on from itself; `None` if it does not read its target, or in any other way.
    pub fn of(nest: &Nest, stage: &Stage) -> Option<Scan> {
        if stage.mode != Mode::Set || stage.group.is_some() {
            return None;
        }
        let has_symbols = stage.domain.iter().any(|axis| axis.extent.is_symbolic())
            || nest.buf(stage.target).shape.iter().any(|n| n.is_symbolic());
        if has_symbols {
            return None;
        }
        let mut ranges = Ranges::of_stage(stage);
        let store = steps(nest, stage, stage.target, &stage.at, &mut ranges)?;
        let mut back: Option<i64> = None;
        let mut fits = true;
        visit_stage(stage, &mut |x| {
            let Kind::Load { buffer, at } = x.kind() else {
                return;
            };
            if *buffer != stage.target {
                return;
            }
            let load = steps(nest, stage, *buffer, at, &mut ranges);
            let load = load.filter(|load| load.axes == store.axes);
            let from = load.and_then(|load| load.constant.checked_sub(store.constant));
            fits &= from.is_some() && back.is_none_or(|known| Some(known) == from);
            back = from;
        });
        let step = back.filter(|_| fits)?.checked_neg()?;
        let along = |k: &usize| store.axes[*k] == step && stage.domain[*k].extent > 1;
        let position = (0..stage.domain.len()).rev().find(along)?;
        let axes = stage.domain.iter().zip(&store.axes).enumerate();
        let is_apart = is_injective(axes.map(|(k, (axis, step))| {
            // Along the axis itself, the element before the first is read too.
            let extent = axis
                .extent
                .example()
                .saturating_add(usize::from(k == position));
            (step.unsigned_abs() as usize, extent)
        }));
        Some(Scan {
            axis: stage.domain[position],
            step,
            is_apart,
        })
    }
}

/// An offset that is linear in the axes of a domain.
struct Steps {
    /// The step of each axis.
    axes: Vec<i64>,
    constant: i64,
}

fn steps(
    nest: &Nest,
    stage: &Stage,
    buffer: BufferId,
    at: &[Scalar],
    ranges: &mut Ranges,
) -> Option<Steps> {
    let form = flat_offset(at, &nest.buf(buffer).strides(), ranges);
    let form = Linear::of(&form);
    let mut axes = vec![0; stage.domain.len()];
    for (atom, k) in &form.terms {
        let Kind::Axis(id) = atom.kind() else {
            return None;
        };
        axes[stage.domain.iter().position(|a| a.id == *id)?] = *k;
    }
    Some(Steps {
        axes,
        constant: form.constant,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::*;
    use crate::ir::Role;
    use vinelift_tensor::ElementType::F32;

    /// `y[at] = y[from] + 1` over a domain of `extents`.
    fn scan(
        shape: &[usize],
        extents: &[usize],
        f: impl Fn(&[Scalar]) -> [Vec<Scalar>; 2],
    ) -> Option<(usize, i64, bool)> {
        let mut nest = Nest::new();
        let y = nest.buffer("y", F32, shape, Role::Output);
        let domain = nest.axes(extents);
        let point: Vec<Scalar> = domain.iter().map(|a| Scalar::axis(a.id)).collect();
        let [at, from] = f(&point);
        let stage = Stage {
            target: y,
            at,
            mode: Mode::Set,
            value: nest.load(y, from) + number(1.0, F32),
            layers: vec![],
            group: None,
            domain,
        };
        let scan = Scan::of(&nest, &stage)?;
        let position = stage.domain.iter().position(|a| a.id == scan.axis.id)?;
        Some((position, scan.step, scan.is_apart))
    }

    #[test]
    fn along_either_axis_and_backwards() {
        let of = |f: &dyn Fn(&Scalar, &Scalar) -> [[Scalar; 2]; 2], extents: [usize; 2]| {
            scan(&[4, 6], &extents, |p| f(&p[0], &p[1]).map(|at| at.to_vec()))
        };
        let along_rows = of(&|i, j| [[i.clone(), j + 1], [i.clone(), j.clone()]], [4, 5]);
        assert_eq!(along_rows, Some((1, 1, true)));
        let down = of(&|i, j| [[i + 1, j.clone()], [i.clone(), j.clone()]], [3, 6]);
        assert_eq!(down, Some((0, 6, true)));
        let back = of(
            &|i, j| {
                [
                    [i.clone(), index(4) - j.clone()],
                    [i.clone(), index(5) - j.clone()],
                ]
            },
            [4, 5],
        );
        assert_eq!(back, Some((1, -1, true)));
        let two_back = of(&|i, j| [[i.clone(), j + 2], [i.clone(), j.clone()]], [4, 4]);
        assert_eq!(two_back, None);
    }

    /// The first of a row would read what the last of the row before has written.
    #[test]
    fn rows_that_touch_are_not_apart() {
        let touching = |p: &[Scalar]| {
            let at = &p[0] * 6 + p[1].clone();
            [vec![&at + 1], vec![at]]
        };
        assert_eq!(scan(&[25], &[4, 6], touching), Some((1, 1, false)));
        assert_eq!(scan(&[25], &[4, 5], touching), Some((1, 1, true)));
    }
}
