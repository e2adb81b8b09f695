//! In-place: a copy of a temporary that dies is removed.
//!
//! An operator that changes some elements starts with a copy of its operand. If the operand is a temporary that
//! no later stage uses, the stages that compute it write the target of the copy instead, and the operator changes
//! that in place.

use crate::analysis::Effects;
use crate::ir::{BufferId, Kind, Mode, Nest, Role, Scalar, Stage, rewrite_those};

/// Drops every stage that copies a whole temporary which no later stage uses; the stages before it write
/// and read the target of the copy instead.
pub(crate) fn reuse_in_place(nest: &mut Nest) {
    let mut effects: Vec<Effects> = nest.stages.iter().map(Effects::of_stage).collect();
    let mut k = 0;
    while k < nest.stages.len() {
        let Some(from) = moved(nest, &effects, k) else {
            k += 1;
            continue;
        };
        let dropped = nest.stages.remove(k);
        effects.remove(k);
        for (stage, effects) in nest.stages[..k].iter_mut().zip(&mut effects) {
            if effects.uses(from) {
                rename(stage, from, dropped.target);
                *effects = Effects::of_stage(stage);
            }
        }
        let mut writers = nest.stages[..k].iter_mut().rev();
        if let Some(writer) = writers.find(|s| s.target == dropped.target) {
            for layer in dropped.layers {
                if !writer.layers.contains(&layer) {
                    writer.layers.push(layer);
                }
            }
        }
    }
}

/// The temporary that stage `k` copies whole, if nothing uses it afterwards, nor the target before. `effects` are
/// those of each stage.
fn moved(nest: &Nest, effects: &[Effects], k: usize) -> Option<BufferId> {
    let stage = &nest.stages[k];
    let Kind::Load { buffer: from, at } = stage.value.kind() else {
        return None;
    };
    let (source, target) = (nest.buf(*from), nest.buf(stage.target));
    let alike = source.ty == target.ty && source.shape == target.shape;
    let is_copy = stage.mode == Mode::Set
        && stage.group.is_none()
        && stage.at == *at
        && stage.covers(&target.shape);
    if !alike || !is_copy {
        return None;
    }
    let (before, after) = (&effects[..k], &effects[k + 1..]);
    let is_free = source.role == Role::Temporary
        && matches!(target.role, Role::Temporary | Role::Output)
        && before.iter().any(|effects| effects.writes(*from))
        && !before.iter().any(|effects| effects.uses(stage.target))
        && !after.iter().any(|effects| effects.uses(*from));
    is_free.then_some(*from)
}

fn rename(stage: &mut Stage, from: BufferId, to: BufferId) {
    if stage.target == from {
        stage.target = to;
    }
    rewrite_those(stage, Scalar::loads, &mut |x| match x.kind() {
        Kind::Load { buffer, at } if *buffer == from => Scalar::load(to, at.clone(), x.ty()),
        _ => x,
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::verify;
    use crate::build::*;
    use crate::ir::Binary;
    use vinelift_tensor::ElementType::F32;

    /// `t = x; t[0] += 1; y = t; y[1] += t[0]` or `… += 1`.
    fn chain(still_used: bool) -> Nest {
        let mut nest = Nest::new();
        let x = nest.buffer("x", F32, &[4, 1], Role::Input);
        let t = nest.buffer("t", F32, &[4, 1], Role::Temporary);
        let y = nest.buffer("y", F32, &[4, 1], Role::Output);
        let layer = nest.layer("s", "Scatter, opset1");
        let change = |nest: &mut Nest, target, source, row: i64, value: Scalar| {
            nest.define(vec![layer], target, |n, at| n.load(source, at.to_vec()));
            nest.stages.push(Stage {
                domain: vec![],
                target,
                at: vec![index(row), index(0)],
                mode: Mode::Combine(Binary::Add),
                value,
                layers: vec![layer],
                group: None,
            });
        };
        change(&mut nest, t, x, 0, number(1.0, F32));
        let value = match still_used {
            true => nest.load(t, vec![index(0), index(0)]),
            false => number(1.0, F32),
        };
        change(&mut nest, y, t, 1, value);
        nest
    }

    #[test]
    fn what_nobody_uses_any_more_is_changed_in_place() {
        let mut nest = chain(false);
        reuse_in_place(&mut nest);
        verify(&nest).unwrap();
        assert_eq!(
            nest.stage_texts(),
            [
                "for i<4, j<1: y[i, j] = x[i, j]",
                "for : y[0, 0] add= 1.0",
                "for : y[1, 0] add= 1.0"
            ]
        );
    }

    #[test]
    fn what_is_used_later_is_copied() {
        let mut nest = chain(true);
        let before = nest.clone();
        reuse_in_place(&mut nest);
        assert_eq!(nest, before);
        // Nor is an input ever written.
        assert_eq!(nest.stages[0].value.kind(), before.stages[0].value.kind());
    }
}
