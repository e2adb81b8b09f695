//! Equality of scalars: whether they are the same operations on equal operands.

use crate::ir::{Kind, Scalar, Wrap};
use rustc_hash::FxHashSet;

/// Two scalars that were made apart may each use a part of theirs again and again. Pairs of such parts are compared once: along
/// all ways to them there may be any number.
impl PartialEq for Scalar {
    fn eq(&self, other: &Scalar) -> bool {
        let mut met: FxHashSet<(usize, usize)> = FxHashSet::default();
        let mut open: Vec<(&Scalar, &Scalar)> = Vec::new();
        let mut next = Some((self, other));
        while let Some((a, b)) = next {
            if a.address() != b.address() {
                if !a.looks_like(b) || !are_same_operation(a.kind(), b.kind()) {
                    return false;
                }
                let is_shared = a.is_shared() || b.is_shared();
                if !is_shared || met.insert((a.address(), b.address())) {
                    open.extend(a.children().zip(b.children()));
                }
            }
            next = open.pop();
        }
        true
    }
}

impl Eq for Scalar {}

/// Whether two operations are the same, and have as many operands.
fn are_same_operation(a: &Kind, b: &Kind) -> bool {
    match (a, b) {
        (Kind::Const(a), Kind::Const(b)) => a == b,
        (Kind::Axis(a), Kind::Axis(b)) => a == b,
        (Kind::Extent(a), Kind::Extent(b)) => a == b,
        (
            Kind::Load { buffer, at },
            Kind::Load {
                buffer: other,
                at: other_at,
            },
        ) => buffer == other && at.len() == other_at.len(),
        (Kind::Unary(a, _), Kind::Unary(b, _)) => a == b,
        (Kind::Binary(a, ..), Kind::Binary(b, ..)) => a == b,
        (Kind::Select(..), Kind::Select(..))
        | (Kind::Cast(_), Kind::Cast(_))
        | (Kind::Bitcast(_), Kind::Bitcast(_)) => true,
        (
            Kind::Reduce { op, axes, .. },
            Kind::Reduce {
                op: other,
                axes: other_axes,
                ..
            },
        ) => op == other && axes == other_axes,
        (Kind::Wrap(a), Kind::Wrap(b)) => {
            let rule = |w: &Wrap| (w.extent, w.policy, w.site, w.position.len());
            rule(a) == rule(b)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::*;
    use crate::ir::{AxisId, Binary, Nest, Role};
    use vinelift_tensor::ElementType::F32;

    /// Sums of sums, each of which uses the one before twice.
    fn doubled(times: usize, from: Scalar, last: f64) -> Scalar {
        let twice = |x: Scalar, _| &x * 2.0 + &x.abs();
        (0..times).fold(from, twice) + number(last, F32)
    }

    #[test]
    fn parts_that_are_used_again_and_again_are_compared_once() {
        let mut nest = Nest::new();
        let x = nest.buffer("x", F32, &[4], Role::Input);
        let load = |nest: &Nest| nest.load(x, vec![Scalar::axis(AxisId(0))]);
        let (a, b) = (load(&nest), load(&nest));
        assert!(a.address() != b.address());
        assert_eq!(doubled(80, a.clone(), 1.0), doubled(80, b.clone(), 1.0));
        assert_ne!(doubled(80, a.clone(), 1.0), doubled(80, b.clone(), 2.0));
        assert_ne!(doubled(80, a, 1.0), doubled(79, b, 1.0));
    }

    /// Whatever an operation is made of counts.
    #[test]
    fn operations_that_differ_in_anything_are_not_equal() {
        let mut nest = Nest::new();
        let buffers = ["x", "y"].map(|name| nest.buffer(name, F32, &[4, 4], Role::Input));
        let [i, j] = [0, 1].map(|n| Scalar::axis(AxisId(n)));
        let load =
            |b: usize, at: [&Scalar; 2]| nest.load(buffers[b], at.map(Scalar::clone).to_vec());
        let x = load(0, [&i, &j]);
        let all = [
            x.clone(),
            load(1, [&i, &j]),
            load(0, [&j, &i]),
            &x + 1.0,
            &x + 2.0,
            &x - 1.0,
            x.abs(),
            x.floor(),
            x.clone().cast(vinelift_tensor::ElementType::F64),
            x.clone().cast(vinelift_tensor::ElementType::I32),
            Scalar::binary(Binary::Max, x.clone(), x.abs()),
            Scalar::binary(Binary::Min, x.clone(), x.abs()),
            select(x.le(zero(F32)), x.clone(), x.abs()),
            select(x.le(zero(F32)), x.abs(), x.clone()),
        ];
        for (k, a) in all.iter().enumerate() {
            for (l, b) in all.iter().enumerate() {
                assert_eq!(a == b, k == l, "{k} and {l}");
            }
        }
    }
}
