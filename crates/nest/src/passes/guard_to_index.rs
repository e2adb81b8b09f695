//! Guard to index: the guard of a load that reads zero out of range becomes part of the load's index.
//!
//! ```text
//! select(c, x[wrap?(i, n), j], 0)  =  x[wrap?(select(c, i, least), n), j]
//! ```
//!
//! where `least` is out of range. Then the load is evaluated at every point, so that vector loops can run along `j`
//! wherever `c` does not depend on `j`. Fusing a gather into a gather makes selects of this form.

use crate::analysis::{Ranges, ranges_of};
use crate::build::{integer, select};
use crate::ir::{Buffer, Kind, Scalar, Stage, Wrap, rewrite_those, visit};
use vinelift_tensor::ElementType::{I32, I64};

/// Does that throughout a stage.
pub(crate) fn move_guards_to_indices(buffers: &[Buffer], stage: &mut Stage) {
    if !stage.wraps() {
        return;
    }
    let mut ranges = ranges_of(stage);
    rewrite_those(stage, Scalar::wraps, &mut |x| match x.kind() {
        Kind::Select(c, yes, no) if no.as_const() == Some(0) => {
            guarded(buffers, &mut ranges, c, yes).unwrap_or(x)
        }
        _ => x,
    });
}

/// `select(c, yes, 0)` as a load, if `yes` is one that can read zero instead.
fn guarded(buffers: &[Buffer], ranges: &mut Ranges, c: &Scalar, yes: &Scalar) -> Option<Scalar> {
    let Kind::Load { buffer, at } = yes.kind() else {
        return None;
    };
    let skips = |i: &Scalar| match i.kind() {
        Kind::Wrap(w) if w.policy.zero => Some(w.clone()),
        _ => None,
    };
    let (place, wrap) = at
        .iter()
        .enumerate()
        .find_map(|(d, i)| Some((d, skips(i)?)))?;
    // Below zero even if it counts from the end.
    let least = match wrap.index.ty() {
        I32 if wrap.extent <= 1 << 31 => i64::from(i32::MIN),
        I64 => i64::MIN,
        _ => return None,
    };
    // The other indices must be harmless without the guard.
    let shape = &buffers[buffer.0 as usize].shape;
    let mut others = at
        .iter()
        .zip(shape)
        .enumerate()
        .filter(|(d, _)| *d != place);
    let harmless = others.all(|(_, (i, &n))| !reads(i) && ranges.is_index(i, n));
    if !harmless {
        return None;
    }
    let least = integer(least, wrap.index.ty());
    // The guard is no longer around the position, which is for a message that such an index never has.
    let position = wrap.position.iter().map(|p| match reads(p) {
        true => integer(0, p.ty()),
        false => p.clone(),
    });
    let moved = Wrap {
        index: select(c.clone(), wrap.index.clone(), least),
        position: position.collect(),
        ..*wrap
    };
    let mut at = at.clone();
    at[place] = Scalar::wrap(moved);
    Some(Scalar::load(*buffer, at, yes.ty()))
}

/// Whether an index reads, so that a guard may have to be around it.
fn reads(i: &Scalar) -> bool {
    let mut reads = false;
    visit(i, &mut |x| {
        let is_read = matches!(
            x.kind(),
            Kind::Load { .. } | Kind::Wrap(_) | Kind::Reduce { .. }
        );
        reads |= is_read;
    });
    reads
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::verify;
    use crate::build::{inside, zero};
    use crate::ir::parse;
    use crate::ir::{Nest, Policy, Role, Site};
    use crate::passes::{fuse, schedule};
    use vinelift_tensor::ElementType::F32;

    fn skipped(column: impl Fn(&[Scalar]) -> Scalar) -> String {
        let mut nest = Nest::new();
        let x = nest.buffer("x", F32, &[9, 4], Role::Input);
        let k = nest.buffer("k", I64, &[5], Role::Input);
        let y = nest.buffer("y", F32, &[7, 4], Role::Output);
        let layer = nest.layer("g", "Gather, opset8");
        nest.define(vec![layer], y, |n, at| {
            let site = Site {
                layer,
                input: "indices".into(),
            };
            let guard = inside(&at[0], 1, 4);
            let found = n.load(k, vec![&at[0] - 1]);
            let policy = Policy {
                negative: true,
                zero: true,
            };
            let row = n.wrap(found, 9, policy, site, vec![at[0].clone()]);
            let read = n.load(x, vec![row, column(at)]);
            select(guard, read, zero(F32))
        });
        let mut stage = nest.stages[0].clone();
        move_guards_to_indices(&nest.buffers, &mut stage);
        let text = nest.display_stage(&stage).to_string();
        nest.stages = vec![stage];
        verify(&nest).unwrap();
        text
    }

    #[test]
    fn the_guard_becomes_part_of_the_index() {
        let expected =
            "x[wrap?(select(((i >= 1) & (i < 4)), k[(i - 1)], -9223372036854775808), 9 in";
        let text = skipped(|at| at[1].clone());
        assert!(text.contains(expected), "{text}");
    }

    #[test]
    fn what_needs_the_guard_keeps_it() {
        let text = skipped(|at| at[0].clone());
        assert!(
            text.contains("= select(((i >= 1) & (i < 4)), x[wrap?(k[(i - 1)]"),
            "{text}"
        );
    }

    /// Three gathers become one stage, whose innermost index is where a message would say that it is.
    #[test]
    fn positions_need_no_guard() {
        let text = "input x: f32[90]\ninput i: i32[80]\ntemporary a: f32[80]\ninput j: i64[70]\ntemporary b: f32[70]\n\
                    input k: i32[3]\noutput y: f32[3]\n\
                    for i<80: a[i] = x[wrap?(i[i], 90)]\n\
                    for i<70: b[i] = a[wrap?(j[i], 80)]\n\
                    for i<3: y[i] = b[wrap?(k[i], 70)]\n";
        let mut nest = parse(text).unwrap();
        fuse(&mut nest);
        schedule(&mut nest);
        assert_eq!(nest.stages.len(), 1, "{nest}");
        assert!(nest.to_string().contains("x[wrap?(select("), "{nest}");
        verify(&nest).unwrap_or_else(|e| panic!("{e:?}\n{nest}"));
    }
}
