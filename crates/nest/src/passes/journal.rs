//! Journals: what an update is about to overwrite is written down first, so that a run that fails can restore it.
//!
//! > `x[p(i)] = …` becomes `old[i] = x[p(i)]`, `places[i] = offset of x[p(i)]`, and then itself
//!
//! so that memory that holds something from one run to the next can be updated where it is.

use crate::analysis::{Effects, Linear};
use crate::ir::{
    Axis, BufferId, Kind, Mode, Nest, Role, Scalar, Stage, replace_axes, row_major, visit_stage,
};
use rustc_hash::FxHashMap;
use vinelift_tensor::ElementType::I64;
use vinelift_tensor::{Extent, element_count, numbers};

/// The elements that an update overwrites, and their offsets: two outputs of the nest, with an element for each
/// point of the update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Journal {
    /// The elements.
    pub old: BufferId,
    /// Where each of them was: flat offsets, of `i64`.
    pub places: BufferId,
}

/// A journal is kept if the updates write at most `1 / ONE_IN` of the elements; otherwise a copy of the whole is faster.
const ONE_IN: usize = 16;

/// If the nest makes `to` from a copy of all of `from`, and updates only few of its elements: keeps a journal of
/// each update, in their order. Then `to` may be `from` itself, and the stage left out that
/// [copies](Nest::copies) it.
pub fn keep_journals(nest: &mut Nest, from: BufferId, to: BufferId) -> Option<Vec<Journal>> {
    let copy = nest.stages.iter().position(|s| nest.copies(s, from, to))?;
    let before = Effects::of(&nest.stages[..copy]);
    let after = Effects::of(&nest.stages[copy + 1..]);
    if before.uses(to) || after.uses(from) || nest.buf(to).ty.is_packed() {
        return None;
    }
    let updates: Vec<usize> = (copy + 1..nest.stages.len())
        .filter(|k| nest.stages[*k].target == to)
        .collect();
    let points = updates.iter().map(|k| points(&nest.stages[*k].domain));
    let points = points.fold(0, usize::saturating_add);
    let whole = element_count(&numbers(&nest.buf(to).shape)?)?;
    let few = points.saturating_mul(ONE_IN) <= whole;
    if !few || !updates.iter().all(|k| is_plain(&nest.stages[*k])) {
        return None;
    }
    let mut journals = Vec::with_capacity(updates.len());
    // Two stages before each update move those that follow.
    for (k, before) in updates.into_iter().enumerate() {
        journals.push(keep(nest, before + 2 * k));
    }
    Some(journals)
}

impl Nest {
    /// Whether a stage makes `to` a copy of all of `from`.
    pub fn copies(&self, stage: &Stage, from: BufferId, to: BufferId) -> bool {
        let (source, target) = (self.buf(from), self.buf(to));
        let offset = |at: &[Scalar], shape: &[usize]| Linear::of_access(at, &row_major(shape));
        let is_same = |at: &[Scalar]| match (numbers(&source.shape), numbers(&target.shape)) {
            (Some(from), Some(to)) => {
                element_count(&from) == element_count(&to)
                    && offset(at, &from).plus(&offset(&stage.at, &to), -1) == Linear::default()
            }
            _ => source.shape == target.shape && *at == stage.at,
        };
        stage.target == to
            && stage.mode == Mode::Set
            && stage.group.is_none()
            && matches!(stage.value.kind(), Kind::Load { buffer, at } if *buffer == from && is_same(at))
            && source.ty == target.ty
            && stage.covers(&target.shape)
    }
}

fn points(domain: &[Axis]) -> usize {
    domain
        .iter()
        .fold(1, |n, a| n.saturating_mul(a.extent.example()))
}

/// Whether the places of an update can be told apart from it: nothing is left out of it, and it takes no turns.
fn is_plain(stage: &Stage) -> bool {
    let mut zero = false;
    visit_stage(stage, &mut |x| {
        zero |= x.reads_zero();
    });
    !zero && stage.group.is_none() && !stage.at.iter().any(Scalar::folds)
}

/// Puts the stages that keep the journal of an update before it.
fn keep(nest: &mut Nest, update: usize) -> Journal {
    let stage = nest.stages[update].clone();
    let target = nest.buf(stage.target).clone();
    let shape: Vec<Extent> = stage.domain.iter().map(|a| a.extent).collect();
    let mut write_down = |at_update: usize, name: &str, ty, value: &dyn Fn(&[Scalar]) -> Scalar| {
        let buffer = nest.buffer(name, ty, &shape, Role::Output);
        let domain = nest.axes(&shape);
        let axes: Vec<Scalar> = domain.iter().map(|a| Scalar::axis(a.id)).collect();
        let by = stage.domain.iter().map(|a| a.id).zip(axes.clone());
        let mut written = Stage {
            domain: domain.clone(),
            target: buffer,
            mode: Mode::Set,
            value: value(&stage.at),
            ..stage.clone()
        };
        replace_axes(&mut written, &by.collect::<FxHashMap<_, _>>());
        written.at = axes;
        nest.stages.insert(at_update, written);
        buffer
    };
    let old = write_down(update, "old", target.ty, &|at| {
        Scalar::load(stage.target, at.to_vec(), target.ty)
    });
    let places = write_down(update + 1, "places", I64, &|at| {
        Linear::of_access(at, &row_major(&target.example())).into_scalar()
    });
    Journal { old, places }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::verify;
    use crate::build::index;
    use crate::ir::{Binary, LayerId, Policy, Site};
    use vinelift_tensor::ElementType::F32;

    /// `new = held; new[wrap(indices[i]), j] += updates[i, j]`, with `rows` rows of updates.
    fn nest(rows: usize, policy: Policy) -> Nest {
        let mut nest = Nest::new();
        let layer = nest.layer("s", "ScatterNDUpdate, opset15");
        let held = nest.buffer("held", F32, &[200], Role::Input);
        let indices = nest.buffer("indices", I64, &[rows, 1], Role::Input);
        let updates = nest.buffer("updates", F32, &[rows, 2], Role::Input);
        let new = nest.buffer("new", F32, &[100, 2], Role::Output);
        nest.define(vec![layer], new, |n, at| {
            n.load(held, vec![&at[0] * 2 + at[1].clone()])
        });
        let site = Site {
            layer,
            input: "indices".to_owned(),
        };
        update(&mut nest, layer, |nest, at| {
            let place = vec![at[0].clone(), index(0)];
            let found = nest.load(indices, place.clone());
            let row = nest.wrap(found, 100, policy, site, place);
            (vec![row, at[1].clone()], nest.load(updates, at.to_vec()))
        });
        nest
    }

    fn update(
        nest: &mut Nest,
        layer: LayerId,
        stage: impl FnOnce(&mut Nest, &[Scalar]) -> (Vec<Scalar>, Scalar),
    ) {
        let shape = nest.buffers[2].shape.clone();
        let domain = nest.axes(&shape);
        let axes: Vec<Scalar> = domain.iter().map(|a| Scalar::axis(a.id)).collect();
        let (at, value) = stage(nest, &axes);
        nest.stages.push(Stage {
            domain,
            target: BufferId(3),
            at,
            mode: Mode::Combine(Binary::Add),
            value,
            layers: vec![layer],
            group: None,
        });
    }

    #[test]
    fn what_is_changed_is_written_down_before() {
        let mut nest = nest(3, Policy::WRAP);
        let journals = keep_journals(&mut nest, BufferId(0), BufferId(3)).unwrap();
        verify(&nest).unwrap();
        let (old, places) = (BufferId(4), BufferId(5));
        assert_eq!(journals, [Journal { old, places }]);
        assert_eq!(
            nest.stage_texts(),
            [
                "for i<100, j<2: new[i, j] = held[((i * 2) + j)]",
                "for i<3, j<2: old[i, j] = new[wrap(indices[i, 0], 100), j]",
                "for i<3, j<2: places[i, j] = ((wrap(indices[i, 0], 100) * 2) + j)",
                "for i<3, j<2: new[wrap(indices[i, 0], 100), j] add= updates[i, j]",
            ]
        );
    }

    #[test]
    fn nothing_is_written_down_where_a_copy_is_needed() {
        // Most elements change; an update may leave elements out; the copied is used later; it is not all copied.
        let all = [
            nest(7, Policy::WRAP),
            nest(3, Policy::WRAP_OR_ZERO),
            {
                let mut later = nest(3, Policy::WRAP);
                let out = later.buffer("out", F32, &[1], Role::Output);
                later.define(vec![], out, |n, at| n.load(BufferId(0), at.to_vec()));
                later
            },
            {
                let mut part = nest(3, Policy::WRAP);
                part.stages[0].domain[0].extent = 99.into();
                part
            },
        ];
        for nest in all {
            let mut kept = nest.clone();
            assert_eq!(keep_journals(&mut kept, BufferId(0), BufferId(3)), None);
            assert_eq!(kept, nest);
        }
    }
}
