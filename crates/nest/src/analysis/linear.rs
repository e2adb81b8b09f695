//! Linear forms of index arithmetic: `c + k0·a0 + k1·a1 + …` over atoms that are not linear.

use crate::build::index;
use crate::ir::{Binary, Kind, Scalar};
use vinelift_tensor::ElementType;

/// `constant + Σ coefficient · atom`, with no atom twice and no coefficient 0.
///
/// Index arithmetic wraps, so a form equals the expression it came from whatever the values are.
/// Division does not commute with wrapping: its rules, in `quotients`, ask for ranges first.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Linear {
    pub(crate) terms: Vec<(Scalar, i64)>,
    pub(crate) constant: i64,
}

impl Linear {
    /// The form of an `i64` scalar whose children are simplified already.
    pub(crate) fn of(x: &Scalar) -> Linear {
        if let Some(constant) = x.as_index() {
            return Linear {
                terms: Vec::new(),
                constant,
            };
        }
        match x.kind() {
            Kind::Binary(Binary::Add, a, b) => Linear::of(a).plus_scalar(b, 1),
            Kind::Binary(Binary::Sub, a, b) => Linear::of(a).plus_scalar(b, -1),
            Kind::Binary(Binary::Mul, a, b) => match (a.as_index(), b.as_index()) {
                (_, Some(k)) => Linear::default().plus_scalar(a, k),
                (Some(k), _) => Linear::default().plus_scalar(b, k),
                _ => Linear::atom(x),
            },
            _ => Linear::atom(x),
        }
    }

    pub(crate) fn atom(x: &Scalar) -> Linear {
        Linear {
            terms: vec![(x.clone(), 1)],
            constant: 0,
        }
    }

    /// `Σ at[d] · strides[d]`: the offset of an access in elements.
    pub(crate) fn of_access(at: &[Scalar], strides: &[usize]) -> Linear {
        let terms = at.iter().zip(strides);
        terms.fold(Linear::default(), |sum, (i, &stride)| {
            sum.plus_scalar(i, stride as i64)
        })
    }

    /// `self + factor · x`; without a form of its own for an `x` that is one term, as most are.
    fn plus_scalar(mut self, x: &Scalar, factor: i64) -> Linear {
        let times = |k: i64| k.wrapping_mul(factor);
        if let Some(constant) = x.as_index() {
            self.constant = self.constant.wrapping_add(times(constant));
            return self;
        }
        let (atom, k) = match x.kind() {
            Kind::Binary(Binary::Add | Binary::Sub | Binary::Mul, a, b) => match b.as_index() {
                Some(k) if matches!(a.kind(), Kind::Axis(_)) && is_product(x) => (a, times(k)),
                _ => return self.plus(&Linear::of(x), factor),
            },
            _ => (x, factor),
        };
        self.add_term(atom, k);
        self.terms.retain(|(_, k)| *k != 0);
        self
    }

    fn add_term(&mut self, atom: &Scalar, k: i64) {
        match self.terms.iter_mut().find(|(a, _)| a == atom) {
            Some((_, known)) => *known = known.wrapping_add(k),
            None => self.terms.push((atom.clone(), k)),
        }
    }

    /// `self + factor · other`
    pub(crate) fn plus(mut self, other: &Linear, factor: i64) -> Linear {
        self.constant = self
            .constant
            .wrapping_add(other.constant.wrapping_mul(factor));
        for (atom, k) in &other.terms {
            self.add_term(atom, k.wrapping_mul(factor));
        }
        self.terms.retain(|(_, k)| *k != 0);
        self
    }

    /// The form that is not negative where `a op b` holds.
    pub(crate) fn of_comparison(op: Binary, a: &Scalar, b: &Scalar) -> Option<Linear> {
        let (more, less, by) = match op {
            Binary::Ge => (a, b, 0),
            Binary::Gt => (a, b, 1),
            Binary::Le => (b, a, 0),
            Binary::Lt => (b, a, 1),
            _ => return None,
        };
        let mut form = Linear::of(more).plus(&Linear::of(less), -1);
        form.constant = form.constant.checked_sub(by)?;
        Some(form)
    }

    /// The forms that are not negative where all conditions hold, of those that compare indices.
    pub(crate) fn of_conditions(mut conditions: Vec<Scalar>) -> Vec<Linear> {
        let mut forms = Vec::new();
        while let Some(condition) = conditions.pop() {
            match condition.kind() {
                Kind::Binary(Binary::And, a, b) => conditions.extend([a.clone(), b.clone()]),
                Kind::Binary(op, a, b) if a.ty() == ElementType::I64 => {
                    forms.extend(Linear::of_comparison(*op, a, b));
                }
                _ => {}
            }
        }
        forms
    }

    /// The `n` for which `other` has each atom of this form with `n` times the coefficient that it has here, if there is one.
    pub(crate) fn factor_in(&self, other: &Linear) -> Option<i64> {
        let of = |atom: &Scalar| other.terms.iter().find(|(a, _)| a == atom).map(|(_, k)| *k);
        let (first, k) = self.terms.first()?;
        let times = of(first)?.checked_div_euclid(*k)?;
        let fits = |(atom, k): &(Scalar, i64)| of(atom) == k.checked_mul(times);
        (times != 0 && self.terms.iter().all(fits)).then_some(times)
    }

    /// `(quotient, rest)` with `self = c · quotient + rest`, coefficient by coefficient.
    pub(crate) fn split_by(&self, c: i64) -> (Linear, Linear) {
        let mut quotient = Linear {
            terms: Vec::new(),
            constant: self.constant.div_euclid(c),
        };
        let mut rest = Linear {
            terms: Vec::new(),
            constant: self.constant.rem_euclid(c),
        };
        for (atom, k) in &self.terms {
            // Towards zero: `-1·a` belongs to the rest whole, not as `c-1` less one quotient.
            let (q, r) = (k / c, k % c);
            if q != 0 {
                quotient.terms.push((atom.clone(), q));
            }
            if r != 0 {
                rest.terms.push((atom.clone(), r));
            }
        }
        (quotient, rest)
    }

    /// The scalar that it stands for: terms in the order in which they came in, the constant last.
    pub(crate) fn into_scalar(self) -> Scalar {
        let mut terms = self
            .terms
            .into_iter()
            .map(|(atom, k)| if k == 1 { atom } else { atom * k });
        let Some(first) = terms.next() else {
            return index(self.constant);
        };
        let sum = terms.fold(first, |sum, term| sum + term);
        match self.constant {
            0 => sum,
            c @ i64::MIN..0 if c != i64::MIN => sum - (-c),
            c => sum + c,
        }
    }
}

fn is_product(x: &Scalar) -> bool {
    matches!(x.kind(), Kind::Binary(Binary::Mul, ..))
}

/// Takes from `low..high` where `factor · a + constant` is negative.
pub(crate) fn narrow(factor: i64, constant: i64, (low, high): &mut (i64, i64)) -> Option<()> {
    if factor > 0 {
        // factor · a >= -constant
        let least = constant.checked_neg()?;
        let rounds_up = i64::from(least.rem_euclid(factor) != 0);
        *low = (*low).max(least.div_euclid(factor) + rounds_up);
    } else {
        // -factor · a <= constant
        let most = constant.div_euclid(factor.checked_neg()?);
        *high = (*high).min(most.checked_add(1)?);
    }
    Some(())
}
