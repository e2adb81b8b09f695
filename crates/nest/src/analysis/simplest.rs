//! Index arithmetic in its simplest form, by what is known where it stands.

use crate::analysis::{Linear, Ranges, divide, remainder};
use crate::ir::build::index;
use crate::ir::{Binary, Kind, Scalar};
use rustc_hash::FxHashMap;
use vinelift_tensor::ElementType;

impl Ranges {
    /// `x`, which is `op(a, b)` of type `i64` over simplest operands, in its simplest form.
    pub(crate) fn simplest_binary(
        &mut self,
        x: &Scalar,
        op: Binary,
        a: &Scalar,
        b: &Scalar,
    ) -> Scalar {
        use Binary::*;
        let form = match (op, b.as_index()) {
            (Add | Sub, _) => Some(Linear::of(x).recombined(self)),
            (Mul, _) => Some(Linear::of(x)),
            (Div, Some(c)) if c > 0 => divide(a, c, self),
            (Rem, Some(c)) if c > 0 => remainder(a, c, self),
            _ => None,
        };
        if let Some(form) = form {
            return form.into_scalar();
        }
        let (of_a, of_b) = (self.of(a), self.of(b));
        match op {
            Min if of_a.high <= of_b.low => a.clone(),
            Min if of_b.high <= of_a.low => b.clone(),
            Max if of_a.low >= of_b.high => a.clone(),
            Max if of_b.low >= of_a.high => b.clone(),
            _ => x.clone(),
        }
    }

    /// `x` in the simplest form that the conditions allow, and the indices of what it loads. The same index has one form then, where
    /// a condition was simplified by another one around it (`j = 0`) and an index below was not.
    pub(super) fn simplest(&mut self, x: &Scalar, known: &mut FxHashMap<usize, Scalar>) -> Scalar {
        if let Some(known) = known.get(&x.address()) {
            return known.clone();
        }
        let done = match x.kind() {
            Kind::Axis(_) => {
                let range = self.of(x);
                match range.low == range.high {
                    true => index(range.low),
                    false => x.clone(),
                }
            }
            Kind::Binary(..) if x.ty() == ElementType::I64 => {
                let x = x.with_children(|child| self.simplest(child, known));
                match x.kind() {
                    Kind::Binary(op, a, b) => self.simplest_binary(&x, *op, a, b),
                    _ => x,
                }
            }
            Kind::Load { .. } | Kind::Cast(_) => {
                x.with_children(|child| self.simplest(child, known))
            }
            _ => x.clone(),
        };
        known.insert(x.address(), done.clone());
        done
    }
    /// Facts about the same values, each in its simplest form.
    pub(super) fn simplest_facts<T>(
        &mut self,
        facts: Vec<(Scalar, T)>,
        known: &mut FxHashMap<usize, Scalar>,
    ) -> Vec<(Scalar, T)> {
        let simplest = |(x, fact)| (self.simplest(&x, known), fact);
        facts.into_iter().map(simplest).collect()
    }
}
