//! How many operations on floats a nest asks for.

use crate::ir::{Axis, Binary, Kind, Nest, Scalar};
use rustc_hash::FxHashSet;

impl Nest {
    /// The operations on floats of all stages, as written: what is shared counts once, a function such as `exp` as one
    /// operation, and a multiply-add as two. Saturates.
    pub fn float_operations(&self) -> u64 {
        let stages = self.stages.iter();
        let counts = stages.map(|stage| count(&stage.value, points(&stage.domain)));
        counts.fold(0, u64::saturating_add)
    }
}

fn points(axes: &[Axis]) -> u64 {
    let extents = axes.iter().map(|a| a.extent.example() as u64);
    extents.fold(1, u64::saturating_mul)
}

/// The operations of `root` and of all that it is made of, each counted `times`, and inside a fold for each of its points.
fn count(root: &Scalar, times: u64) -> u64 {
    let (mut sum, mut seen) = (0u64, FxHashSet::default());
    let mut open = vec![(root, times)];
    while let Some((x, times)) = open.pop() {
        if !seen.insert(x.address()) {
            continue;
        }
        let mut inside = times;
        let each = match x.kind() {
            Kind::Binary(Binary::Term, ..) => 2,
            Kind::Binary(..) | Kind::Unary(..) => 1,
            Kind::Reduce { axes, body, .. } => {
                inside = times.saturating_mul(points(axes));
                let is_term = matches!(body.kind(), Kind::Binary(Binary::Term, ..));
                // The sum of a multiply-add is counted with its product.
                if body.ty().is_float() && !is_term {
                    sum = sum.saturating_add(inside);
                }
                0
            }
            _ => 0,
        };
        let is_float = x.ty().is_float() || x.children().any(|child| child.ty().is_float());
        if is_float {
            sum = sum.saturating_add(times.saturating_mul(each));
        }
        open.extend(x.children().map(|child| (child, inside)));
    }
    sum
}

#[cfg(test)]
mod tests {
    use crate::build::*;
    use crate::ir::{Binary, Nest, Role, Scalar};
    use vinelift_tensor::ElementType::F32;

    /// `y[i] = Σ_j (x[i, j] - 1)²`: three operations for each of 4 · 8 elements.
    #[test]
    fn folds_repeat_what_is_in_them() {
        let mut nest = Nest::new();
        let x = nest.buffer("x", F32, &[4, 8], Role::Input);
        let y = nest.buffer("y", F32, &[4], Role::Output);
        nest.define(vec![], y, |nest, at| {
            let j = nest.axis(8);
            let d = nest.load(x, vec![at[0].clone(), Scalar::axis(j.id)]) - number(1.0, F32);
            Scalar::reduce(Binary::Add, vec![j], zero(F32), d.clone() * d)
        });
        assert_eq!(nest.float_operations(), 3 * 4 * 8);
    }
}
