//! Simplification of index arithmetic and of conditions over it.
//!
//! Values are left alone: this only touches `i64` index arithmetic, comparisons of indices, boolean
//! connectives and selects whose condition is known. Nothing here can change a result.

use crate::analysis::Ranges;
use crate::build::{boolean, index};
use crate::ir::{Binary, Kind, Nest, Scalar, Seen, Stage, Unary};
use rustc_hash::FxHashMap;
use vinelift_tensor::ElementType;

#[cfg(test)]
mod never_taken;

/// Simplifies every stage.
pub fn simplify(nest: &mut Nest) {
    for stage in &mut nest.stages {
        simplify_stage(stage);
    }
}

pub(crate) fn simplify_stage(stage: &mut Stage) {
    if stage.domain.iter().any(|a| a.extent == 0) {
        return;
    }
    let mut pass = Simplify {
        ranges: Ranges::of_stage(stage),
        memo: vec![FxHashMap::default()],
    };
    for at in &mut stage.at {
        *at = pass.scalar(at);
    }
    stage.value = pass.scalar(&stage.value);
}

struct Simplify {
    ranges: Ranges,
    /// By address, one table per guard in force; the scalar is kept so that its address stays its own.
    memo: Vec<FxHashMap<usize, (Scalar, Scalar)>>,
}

impl Simplify {
    fn scalar(&mut self, x: &Scalar) -> Scalar {
        match x.kind() {
            Kind::Const(_) | Kind::Extent(_) => return x.clone(),
            Kind::Axis(_) if self.ranges.of(x).high == 0 => return index(0),
            Kind::Axis(_) => return x.clone(),
            _ => {}
        }
        if let Some((_, done)) = self.memo.last().and_then(|m| m.get(&x.address())) {
            return done.clone();
        }
        let done = match x.kind() {
            Kind::Select(c, yes, no) => self.select(x, c, yes, no),
            Kind::Reduce { .. } => self.reduce(x),
            // A proof finds what a guard says of an index by the index's form: guards must not change its load.
            Kind::Load { .. } if x.ty().is_integer() && self.memo.len() > 1 => {
                self.unguarded(|pass| pass.scalar(x))
            }
            _ => {
                let inner = x.with_children(|child| self.scalar(child));
                self.checked_node(inner)
            }
        };
        // The pass meets a scalar that is not shared once.
        if (x.is_shared() || x.folds())
            && let Some(memo) = self.memo.last_mut()
        {
            memo.insert(x.address(), (x.clone(), done.clone()));
        }
        done
    }

    /// A fold is simplified without regard to the guards around it: one that is shared between
    /// them must stay one, or its axes would be bound twice.
    fn reduce(&mut self, x: &Scalar) -> Scalar {
        let known = self.memo.first().and_then(|m| m.get(&x.address()));
        if let Some((_, done)) = known {
            return done.clone();
        }
        let Kind::Reduce {
            op,
            axes,
            init,
            body,
        } = x.kind()
        else {
            return x.clone();
        };
        self.ranges.bind(axes);
        let done = self.unguarded(|pass| {
            let init = pass.scalar(init);
            let empty = axes.iter().any(|a| a.extent == 0);
            match empty {
                true => init,
                false => Scalar::reduce(*op, axes.clone(), init, pass.scalar(body)),
            }
        });
        if let Some(memo) = self.memo.first_mut() {
            memo.insert(x.address(), (x.clone(), done.clone()));
        }
        done
    }

    /// The result of `inner` where no guard is known.
    fn unguarded(&mut self, inner: impl FnOnce(&mut Self) -> Scalar) -> Scalar {
        let guarded = self.memo.split_off(1);
        let mut ranges = std::mem::take(&mut self.ranges);
        let done = ranges.unconditionally(|ranges| {
            std::mem::swap(&mut self.ranges, ranges);
            let done = inner(self);
            std::mem::swap(&mut self.ranges, ranges);
            done
        });
        self.ranges = ranges;
        self.memo.extend(guarded);
        done
    }

    fn select(&mut self, x: &Scalar, c: &Scalar, yes: &Scalar, no: &Scalar) -> Scalar {
        // A guard of an access in a fold must keep the form of that access: folds know of no guards.
        let c = match yes.folds() || no.folds() {
            true => self.unguarded(|pass| pass.scalar(c)),
            false => self.scalar(c),
        };
        match c.as_const() {
            Some(0) => return self.scalar(no),
            Some(_) => return self.scalar(yes),
            None => {}
        }
        let yes = self.assuming(&c, true, yes);
        let no = self.assuming(&c, false, no);
        // A condition that may fault must stay, whatever it chooses.
        if yes == no && x.ty() == ElementType::I64 && !c.wraps() {
            return yes;
        }
        Scalar::select(c, yes, no)
    }

    fn assuming(&mut self, c: &Scalar, holds: bool, side: &Scalar) -> Scalar {
        let mut ranges = std::mem::take(&mut self.ranges);
        let done = ranges.assuming(c, holds, |ranges, learnt| {
            std::mem::swap(&mut self.ranges, ranges);
            if learnt {
                self.memo.push(FxHashMap::default());
            }
            let done = self.scalar(side);
            if learnt {
                self.memo.pop();
            }
            std::mem::swap(&mut self.ranges, ranges);
            done
        });
        self.ranges = ranges;
        done
    }

    /// A node over simplified children, as it is if its simplest form had fewer wraps: one that may fault must stay, whatever
    /// its value is. Only what is evaluated counts: wraps in a side of a select that is never taken are gone before.
    fn checked_node(&mut self, x: Scalar) -> Scalar {
        if !x.wraps() {
            return self.node(x);
        }
        let done = self.node(x.clone());
        match done == x || checks(&done) == checks(&x) {
            true => done,
            false => x,
        }
    }

    fn node(&mut self, x: Scalar) -> Scalar {
        match x.kind() {
            Kind::Binary(op, a, b) if a.ty() == ElementType::I64 => {
                if op.is_comparison() {
                    self.compare(*op, a, b).map_or(x.clone(), boolean)
                } else {
                    self.ranges.simplest_binary(&x, *op, a, b)
                }
            }
            Kind::Binary(Binary::And, a, b) if x.ty() == ElementType::Boolean => {
                match (a.as_const(), b.as_const()) {
                    (Some(0), _) | (_, Some(0)) => boolean(false),
                    (Some(_), _) => b.clone(),
                    (_, Some(_)) => a.clone(),
                    _ => x,
                }
            }
            Kind::Binary(Binary::Or, a, b) if x.ty() == ElementType::Boolean => {
                match (a.as_const(), b.as_const()) {
                    (Some(0), _) => b.clone(),
                    (_, Some(0)) => a.clone(),
                    (Some(_), _) | (_, Some(_)) => boolean(true),
                    _ => x,
                }
            }
            Kind::Unary(Unary::Not, a) if x.ty() == ElementType::Boolean => match a.as_const() {
                Some(bits) => boolean(bits == 0),
                None => x,
            },
            _ => x,
        }
    }

    fn compare(&mut self, op: Binary, a: &Scalar, b: &Scalar) -> Option<bool> {
        let (ra, rb) = (self.ranges.of(a), self.ranges.of(b));
        let (lt, ge) = (ra.high < rb.low, ra.low >= rb.high);
        let (gt, le) = (ra.low > rb.high, ra.high <= rb.low);
        let apart = lt || gt;
        let equal = ra.low == ra.high && rb.low == rb.high && ra.low == rb.low;
        let known = |yes: bool, no: bool| if yes { Some(true) } else { no.then_some(false) };
        match op {
            Binary::Lt => known(lt, ge),
            Binary::Ge => known(ge, lt),
            Binary::Gt => known(gt, le),
            Binary::Le => known(le, gt),
            Binary::Eq => known(equal, apart),
            Binary::Ne => known(apart, equal),
            _ => None,
        }
    }
}

/// How many checked indices of `x`, and selects that have some, are evaluated whatever else is.
fn checks(x: &Scalar) -> usize {
    let mut count = 0;
    let mut seen = Seen::default();
    let mut open = vec![x];
    while let Some(x) = open.pop() {
        if !x.wraps() || !seen.insert(x.address()) {
            continue;
        }
        match x.kind() {
            Kind::Select(condition, ..) => {
                count += 1;
                open.push(condition);
            }
            kind => {
                count += usize::from(matches!(kind, Kind::Wrap(_)));
                open.extend(x.children());
            }
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::{flat_offset, verify};
    use crate::build::{inside, number, select};
    use crate::ir::{Policy, Role, Site, row_major};
    use vinelift_tensor::ElementType::F32;

    /// The simplified text of an index over axes `i`, `j`, … of the given extents.
    fn simple(extents: &[usize], x: impl Fn(&[Scalar]) -> Scalar) -> String {
        let mut nest = Nest::new();
        let out = nest.buffer("out", ElementType::I64, extents, Role::Output);
        nest.define(vec![], out, |_, at| x(at));
        simplify(&mut nest);
        let text = nest.display_stage(&nest.stages[0]).to_string();
        text.split(" = ").nth(1).unwrap().to_owned()
    }

    /// An element of the first row is at an index, of the others counted from the end: the guard around both names the index.
    #[test]
    fn an_index_in_a_row_that_is_known_is_still_guarded() {
        let mut nest = Nest::new();
        let data = nest.buffer("data", F32, &[4], Role::Input);
        let indices = nest.buffer("indices", ElementType::I64, &[6], Role::Input);
        let out = nest.buffer("out", F32, &[2, 3], Role::Output);
        nest.define(vec![], out, |nest, at| {
            let loaded = nest.load(indices, vec![&at[0] * 3 + &at[1]]);
            let found = select(loaded.lt(index(0)), &loaded + 4, loaded.clone());
            let place = select(at[0].eq(index(0)), found.clone(), index(3) - &found);
            let element = nest.load(data, vec![place]);
            select(inside(&found, 0, 4), element, number(0.0, F32))
        });
        assert_eq!(verify(&nest), Ok(()));
        simplify(&mut nest);
        assert_eq!(verify(&nest), Ok(()), "{nest}");
    }

    /// A scan of the rows of a padded and reshaped matrix: where a row begins, the guard of the padding is simpler than the index.
    #[test]
    fn a_guard_that_another_one_simplifies_is_still_one() {
        for ty in [ElementType::I32, F32] {
            let mut nest = Nest::new();
            let data = nest.buffer("data", ty, &[4, 5], Role::Input);
            let out = nest.buffer("out", ty, &[15, 2], Role::Output);
            nest.define(vec![], out, |nest, at| {
                let flat = &at[0] * 2 + &at[1];
                let row = &flat / 5 - 1;
                let element = nest.load(data, vec![row.clone(), flat.rem(index(5))]);
                let padded = select(inside(&row, 0, 4), element, number(0.0, ty));
                select(at[1].gt(index(0)), &padded * 2.0, padded)
            });
            assert_eq!(verify(&nest), Ok(()));
            simplify(&mut nest);
            assert_eq!(verify(&nest), Ok(()), "{nest}");
        }
    }

    #[test]
    fn division_of_a_flat_index() {
        assert_eq!(simple(&[3, 5], |a| (&a[0] * 5 + &a[1]) / 5), "i");
        assert_eq!(simple(&[3, 5], |a| (&a[0] * 5 + &a[1]).rem(index(5))), "j");
        assert_eq!(
            simple(&[3, 5], |a| (&a[0] * 10 + &a[1] + 7) / 5),
            "(((i * 2) + ((j + 2) / 5)) + 1)"
        );
        assert_eq!(simple(&[24], |a| (&a[0] / 4) / 3), "(i / 12)");
        // Of two values, the quotient is a line.
        assert_eq!(simple(&[2], |a| (&a[0] + 1) / 2), "i");
        assert_eq!(simple(&[2], |a| (&a[0] * 9 + 4) / 5), "(i * 2)");
        assert_eq!(simple(&[3], |a| (&a[0] + 1) / 2), "((i + 1) / 2)");
        // Not where the dividend may be negative.
        assert_eq!(
            simple(&[3, 5], |a| (&a[0] * 5 - &a[1]) / 5),
            "(((i * 5) + (j * -1)) / 5)"
        );
    }

    #[test]
    fn taking_apart_and_joining_again_is_nothing() {
        let apart = |f: &Scalar| (f / 12) * 12 + ((f / 4).rem(index(3))) * 4 + f.rem(index(4));
        assert_eq!(simple(&[24], |a| apart(&a[0])), "i");
        assert_eq!(
            simple(&[6, 4], |a| apart(&(&a[0] * 4 + &a[1]))),
            "((i * 4) + j)"
        );
        // Of more than one axis, too, but not where a quotient would stay.
        let rest = |f: &Scalar, by: i64| (f / 96) * by + f.rem(index(96));
        let flat = |a: &[Scalar]| &a[0] * 64 + &a[1];
        assert_eq!(simple(&[4, 64], |a| rest(&flat(a), 96)), "((i * 64) + j)");
        assert_eq!(
            simple(&[200], |a| rest(&a[0], 90)),
            "(((i / 96) * 90) + (i % 96))"
        );
        let (mut ranges, [i]) = Ranges::over([24]);
        let at = [&i / 12, (&i / 4).rem(index(3)), i.rem(index(4))];
        assert_eq!(flat_offset(&at, &row_major(&[2, 3, 4]), &mut ranges), i);
    }

    #[test]
    fn conditions_that_always_hold_go() {
        assert_eq!(
            simple(&[4], |a| select(inside(&a[0], 0, 4), &a[0] + 0, index(7))),
            "i"
        );
        assert_eq!(
            simple(&[4], |a| select(
                a[0].ge(index(2)),
                (&a[0] - 2).max(index(0)),
                index(7)
            )),
            "select((i >= 2), (i - 2), 7)"
        );
    }

    #[test]
    fn a_check_is_not_simplified_away() {
        let mut nest = Nest::new();
        let x = nest.buffer("x", ElementType::I64, &[4], Role::Input);
        let out = nest.buffer("out", ElementType::I64, &[4], Role::Output);
        let layer = nest.layer("g", "Gather, opset7");
        nest.define(vec![layer], out, |n, at| {
            let site = Site {
                layer,
                input: "x".into(),
            };
            let i = n.load(x, at.to_vec());
            let checked = n.wrap(i, 1, Policy::CHECK, site, at.to_vec());
            checked.clone().min(index(9)).max(index(0)) - &checked
        });
        simplify(&mut nest);
        assert!(nest.to_string().contains("check(x[i], 1)"), "{nest}");
    }

    #[test]
    fn a_shared_fold_stays_one() {
        let mut nest = Nest::new();
        let x = nest.buffer("x", F32, &[4, 8], Role::Input);
        let out = nest.buffer("out", F32, &[4], Role::Output);
        nest.define(vec![], out, |n, at| {
            let axes = n.axes(&[8]);
            let k = Scalar::axis(axes[0].id).max(index(0));
            let body = n.load(x, vec![at[0].min(index(2)), k]);
            let sum = Scalar::reduce(Binary::Add, axes, number(0.0, F32), body);
            let nested = select(at[0].lt(index(1)), sum.clone(), &sum * 2.0);
            select(at[0].lt(index(2)), nested, &sum * 3.0)
        });
        simplify(&mut nest);
        verify(&nest).unwrap();
    }

    #[test]
    fn values_stay_as_they_are() {
        let mut nest = Nest::new();
        let x = nest.buffer("x", F32, &[4], Role::Input);
        let out = nest.buffer("out", F32, &[4], Role::Output);
        nest.define(vec![], out, |n, at| n.load(x, at.to_vec()) + 0.0);
        let before = nest.to_string();
        simplify(&mut nest);
        assert_eq!(nest.to_string(), before);
    }
}
