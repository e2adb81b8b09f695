//! Rewrites a nest so that only primitive scalars remain.
//!
//! After it, a nest holds only operations that code generators and the interpreter know:
//! * [`Unary`](crate::Unary) functions that are
//!   [primitive](crate::Unary::is_primitive), and [`Binary`] ones but [`Binary::Pow`], and but [`Binary::Div`] and
//!   [`Binary::Rem`] of integers of 8, 16 and 32 bits, and the latter of `f32`;
//! * casts among integers of any width, boolean, `f32` and `f64`;
//! * loads, stores, selects and bitcasts of any type.
//!
//! The definitions of the others are in `math`, one each, so that they agree to the bit wherever
//! a nest runs. Some read tables, which are added as buffers after those of the nest.

use crate::ir::{Binary, Kind, Mode, Nest, Scalar};
use crate::math::Math;
use crate::math::integer_division::rounded_down;
use rustc_hash::FxHashMap;
use vinelift_tensor::ElementType;

/// The same nest in primitive scalars. What was shared stays shared; buffers keep their ids, tables
/// may be added behind them. A nest of primitives stays as it is.
pub fn legalize(nest: &Nest) -> Nest {
    with(nest, Math::default())
}

/// As [`legalize`], for machines that convert between `f16` and `f32`: such casts are primitive too. They
/// round to nearest even, and a NaN becomes a quiet one that keeps its upper bits, as the definitions
/// say. `None` if the nest has no `f16`.
pub fn legalize_with_halves(nest: &Nest) -> Option<Nest> {
    let has_halves = nest.buffers.iter().any(|b| b.ty == ElementType::F16);
    has_halves.then(|| with(nest, Math::with_halves()))
}

fn with(nest: &Nest, math: Math) -> Nest {
    let mut legal = nest.clone();
    let mut rewrite = Rewrite {
        done: FxHashMap::default(),
        math,
    };
    for (k, stage) in nest.stages.iter().enumerate() {
        let at: Vec<Scalar> = stage
            .at
            .iter()
            .map(|index| rewrite.scalar(&mut legal, index))
            .collect();
        let mut value = rewrite.scalar(&mut legal, &stage.value);
        if let Mode::Combine(Binary::Pow) = stage.mode {
            let old = Scalar::load(stage.target, at.clone(), value.ty());
            if let Some(power) = rewrite.math.binary(Binary::Pow, &old, &value) {
                value = power;
                legal.stages[k].mode = Mode::Set;
            }
        }
        legal.stages[k].at = at;
        legal.stages[k].value = value;
    }
    legal
}

struct Rewrite {
    /// By the address of the original, which the original nest keeps alive.
    done: FxHashMap<usize, Scalar>,
    math: Math,
}

enum Visit<'s> {
    Enter(&'s Scalar),
    Leave(&'s Scalar),
}

impl Rewrite {
    /// Rewrites bottom up; not by recursion, for chains may be long.
    fn scalar(&mut self, nest: &mut Nest, root: &Scalar) -> Scalar {
        let mut stack = vec![Visit::Enter(root)];
        while let Some(visit) = stack.pop() {
            match visit {
                Visit::Enter(scalar) if self.done.contains_key(&scalar.address()) => {}
                Visit::Enter(scalar) => {
                    stack.push(Visit::Leave(scalar));
                    stack.extend(scalar.children().map(Visit::Enter));
                }
                Visit::Leave(scalar) => {
                    let new = scalar.with_children(|child| self.done[&child.address()].clone());
                    let new = self.node(nest, new, scalar);
                    self.done.insert(scalar.address(), new);
                }
            }
        }
        self.done[&root.address()].clone()
    }

    /// Rewrites a scalar whose children are primitive; `original` has those that it had.
    fn node(&mut self, nest: &mut Nest, scalar: Scalar, original: &Scalar) -> Scalar {
        let definition = match scalar.kind() {
            Kind::Unary(op, x) => match self.math.log1p_of_part(original, x) {
                Some(shorter) => Some(shorter),
                None => self.math.unary(nest, *op, x),
            },
            Kind::Binary(op, x, y) => self.math.binary(*op, x, y),
            Kind::Cast(x) => self.math.cast(nest, x, scalar.ty()),
            Kind::Select(..) => rounded_down(original).and_then(|(op, x, y)| {
                let [x, y] = [x, y].map(|x| &self.done[&x.address()]);
                self.math.rounded_down(op, x, y)
            }),
            _ => None,
        };
        definition.unwrap_or(scalar)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::verify;
    use crate::ir::{Role, Unary};
    use rustc_hash::FxHashSet;
    use vinelift_tensor::ElementType::*;

    /// All scalars of a nest, shared ones once.
    fn scalars(nest: &Nest) -> Vec<Scalar> {
        let (mut seen, mut all) = (FxHashSet::default(), vec![]);
        let mut stack: Vec<Scalar> = nest
            .stages
            .iter()
            .flat_map(|s| s.at.iter().chain([&s.value]).cloned())
            .collect();
        while let Some(scalar) = stack.pop() {
            if seen.insert(scalar.address()) {
                stack.extend(scalar.children().cloned());
                all.push(scalar);
            }
        }
        all
    }

    fn is_primitive(scalar: &Scalar) -> bool {
        let castable = |x: &Scalar| x.ty().is_integer() || [Boolean, F32, F64].contains(&x.ty());
        match scalar.kind() {
            Kind::Unary(op, _) => op.is_primitive(),
            Kind::Binary(Binary::Div, x, _) => x.ty().is_float() || x.ty().bits() == 64,
            Kind::Binary(Binary::Rem, x, _) => x.ty().bits() == 64,
            Kind::Binary(op, ..) => *op != Binary::Pow,
            Kind::Cast(x) => castable(x) && castable(scalar),
            _ => true,
        }
    }

    fn nest(ty: vinelift_tensor::ElementType, value: impl Fn(Scalar) -> Scalar) -> Nest {
        let mut nest = Nest::new();
        let x = nest.buffer("x", ty, &[4], Role::Input);
        let y = nest.buffer("y", ty, &[4], Role::Output);
        nest.define(vec![], y, |nest, at| value(nest.load(x, at.to_vec())));
        nest
    }

    #[test]
    fn only_primitives_remain_and_they_verify() {
        use Unary::*;
        let functions = [
            Exp, Expm1, Log, Log1p, Sin, Cos, Tan, Asin, Acos, Atan, Sinh, Cosh, Tanh, Asinh,
            Acosh, Atanh, Erf,
        ];
        let storage = [F16, BF16, F8E4M3, F8E5M2, F8E8M0, F4E2M1, NF4];
        let of_functions = [F32, F64].into_iter().flat_map(|ty| {
            let pow = nest(ty, |x| x.pow(&x + 1.5));
            functions
                .iter()
                .map(move |&op| nest(ty, |x| Scalar::unary(op, x)))
                .chain([pow])
        });
        let of_formats = storage
            .into_iter()
            .map(|ty| nest(ty, |x| (x.cast(F32) + 1.0).cast(ty)));
        let of_integers = [I8, U64]
            .into_iter()
            .map(|ty| nest(ty, |x| x.pow(x.clone())));
        let of_divisions = [I8, U16, I32, U32, I64, F32, F64]
            .into_iter()
            .map(|ty| nest(ty, |x| (&x / &x).rem(x)));
        let of_integers = of_integers.chain(of_divisions);
        for nest in of_functions.chain(of_formats).chain(of_integers) {
            let legal = legalize(&nest);
            assert!(scalars(&legal).iter().all(is_primitive), "{nest:?}");
            assert_eq!(verify(&legal), Ok(()), "{nest:?}");
            assert_eq!(legalize(&legal), legal);
        }
    }

    #[test]
    fn tables_are_added_once() {
        let legal = legalize(&nest(F64, |x| {
            Scalar::unary(Unary::Sin, x.clone()) + Scalar::unary(Unary::Cos, x)
        }));
        let names: Vec<&str> = legal.buffers.iter().map(|b| &*b.name).collect();
        assert_eq!(names, ["x", "y", "two_over_pi"]);
    }

    #[test]
    fn what_is_shared_stays_shared() {
        // Each step doubles what a tree would hold.
        let legal = legalize(&nest(F32, |x| {
            (0..100).fold(x, |x, _| {
                let y = x.tanh();
                &y + &y
            })
        }));
        assert!(scalars(&legal).len() < 100 * 150);
    }

    #[test]
    fn a_power_combines_as_a_load_and_store() {
        let mut nest = nest(F32, |x| x);
        nest.stages[0].mode = Mode::Combine(Binary::Pow);
        let legal = legalize(&nest);
        assert_eq!(legal.stages[0].mode, Mode::Set);
        assert!(scalars(&legal).iter().all(is_primitive));
    }

    #[test]
    fn long_chains_do_not_overflow_the_stack() {
        let legal = legalize(&nest(F32, |x| (0..10_000).fold(x.exp(), |x, _| -x)));
        assert!(scalars(&legal).iter().all(is_primitive));
    }
}
