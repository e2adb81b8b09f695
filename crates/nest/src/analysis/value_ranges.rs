//! Value range analysis: intervals that hold the elements of tensors whose contents are not known.
//!
//! A nest is evaluated as the interpreter does it, over bounds in place of numbers. This is for the few
//! integers that shapes are computed from; what it does not follow is [`ValueRange::Unknown`].
//!
//! `i64::MAX` and `i64::MIN` stand for "not bounded": arithmetic on them saturates. Where finite bounds
//! overflow, the result is unknown, since the numbers wrap.

mod formulas;
mod ratios;

use crate::analysis::Interval;
use crate::ir::{
    Axis, AxisId, Binary, BufferId, Kind, Mode, Nest, Policy, Role, Scalar, Stage, Unary,
};
use rustc_hash::FxHashMap;
use vinelift_tensor::{ElementType, Formula, numbers, symbols};

/// The values that one element may have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ValueRange {
    /// An integer or boolean in an interval.
    Integer(Interval),
    /// Exactly the integer that a formula over symbols gives.
    Formula(Formula),
    /// A number from the first to the second.
    Float(f64, f64),
    /// Exactly the quotient of two integers that a type of floats holds, rounded to it.
    Ratio(Formula, Formula, ElementType),
    /// A number that is computed from two integers: which one, is not known before their symbols are pinned.
    Behind(Formula, Formula),
    /// Nothing.
    Unknown,
}

/// How many scalars are evaluated at most.
const BUDGET: usize = 200_000;

/// Evaluates the stages of `nest`. `buffers` has the bounds of the elements of each buffer that is known;
/// the others start as unknown. Gives the bounds of all buffers that are no larger than `limit`; `None`
/// if that takes too long.
pub fn value_ranges(
    nest: &Nest,
    buffers: FxHashMap<BufferId, Vec<ValueRange>>,
    limit: usize,
) -> Option<FxHashMap<BufferId, Vec<ValueRange>>> {
    let mut machine = Machine {
        nest,
        buffers,
        axes: FxHashMap::default(),
        budget: BUDGET,
    };
    for stage in &nest.stages {
        let shape = numbers(&nest.buf(stage.target).shape)?;
        let count = vinelift_tensor::element_count(&shape)?;
        if count > limit {
            return None;
        }
        let unknown = || vec![ValueRange::Unknown; count];
        machine.buffers.entry(stage.target).or_insert_with(unknown);
        machine.stage(stage)?;
    }
    Some(machine.buffers)
}

impl ValueRange {
    /// Exactly this integer.
    pub fn exactly(value: i64) -> ValueRange {
        ValueRange::Integer(Interval {
            low: value,
            high: value,
        })
    }

    /// The interval, if it is one of integers.
    pub fn integer(self) -> Option<Interval> {
        match self {
            ValueRange::Integer(interval) => Some(interval),
            _ => None,
        }
    }

    /// The formula of an integer that is known exactly.
    pub fn formula(self) -> Option<Formula> {
        match self {
            ValueRange::Formula(formula) => Some(formula),
            ValueRange::Ratio(..) | ValueRange::Behind(..) => None,
            _ => self.exact().map(Formula::number),
        }
    }

    /// Whether it is a formula that has symbols.
    pub fn is_symbolic(&self) -> bool {
        matches!(self, ValueRange::Formula(formula) if formula.as_number().is_none())
    }

    /// Itself without symbols: a formula is pinned.
    pub fn pinned(self) -> ValueRange {
        match self {
            ValueRange::Formula(formula) => {
                symbols::pin(&formula).map_or(ValueRange::Unknown, ValueRange::exactly)
            }
            ValueRange::Ratio(a, b, ty) => ratios::pinned(&a, &b, ty),
            ValueRange::Behind(a, b) => {
                // What is computed from numbers is known where they are.
                let _ = (symbols::pin(&a), symbols::pin(&b));
                ValueRange::Unknown
            }
            other => other,
        }
    }

    fn has_formulas(&self) -> bool {
        use ValueRange::{Behind, Formula, Ratio};
        matches!(self, Formula(_) | Ratio(..) | Behind(..))
    }

    fn exact(self) -> Option<i64> {
        let interval = self.pinned().integer()?;
        (interval.low == interval.high).then_some(interval.low)
    }

    fn hull(self, other: ValueRange) -> ValueRange {
        match (self, other) {
            (ValueRange::Integer(a), ValueRange::Integer(b)) => ValueRange::Integer(a.union(b)),
            (ValueRange::Float(a, b), ValueRange::Float(c, d)) => {
                ValueRange::Float(a.min(c), b.max(d))
            }
            (a, b) if a.has_formulas() || b.has_formulas() => match a == b {
                true => a,
                false => a.pinned().hull(b.pinned()),
            },
            _ => ValueRange::Unknown,
        }
    }

    /// Itself if it is a bound of numbers of the type, rounded to it.
    fn of_type(self, ty: ElementType) -> ValueRange {
        match self {
            ValueRange::Integer(i) => {
                let all = Interval::of_type(ty);
                let fits = i.low >= all.low && i.high <= all.high;
                // An open bound stays open in narrower types: extents are taken to fit.
                let open = Interval {
                    low: i.low.max(all.low),
                    high: if i.high == i64::MAX { all.high } else { i.high },
                };
                match (fits, open.high <= all.high && i.low >= all.low) {
                    (true, _) => self,
                    (false, true) => ValueRange::Integer(open),
                    _ => ValueRange::Unknown,
                }
            }
            ValueRange::Float(a, b) if ty == ElementType::F32 => {
                ValueRange::Float(f64::from(a as f32), f64::from(b as f32))
            }
            ValueRange::Formula(formula) => match formulas::is_of_type(&formula, ty) {
                true => self,
                false => self.pinned().of_type(ty),
            },
            other => other,
        }
    }
}

struct Machine<'a> {
    nest: &'a Nest,
    buffers: FxHashMap<BufferId, Vec<ValueRange>>,
    axes: FxHashMap<AxisId, usize>,
    budget: usize,
}

impl Machine<'_> {
    fn stage(&mut self, stage: &Stage) -> Option<()> {
        let points = points(&stage.domain)?;
        for point in 0..points {
            self.bind(&stage.domain, point);
            let value = self.of(&stage.value)?;
            let Some(at) = self.position(stage.target, &stage.at)? else {
                // It may be written anywhere.
                for element in self.buffers.get_mut(&stage.target)? {
                    *element = ValueRange::Unknown;
                }
                continue;
            };
            let ty = self.nest.buf(stage.target).ty;
            let element = self.buffers.get_mut(&stage.target)?.get_mut(at)?;
            *element = match stage.mode {
                Mode::Set => value,
                Mode::Combine(op) => binary(op, *element, value).of_type(ty),
            };
        }
        Some(())
    }

    /// Sets the axes to a point of their domain.
    fn bind(&mut self, domain: &[Axis], mut point: usize) {
        for axis in domain.iter().rev() {
            self.axes.insert(axis.id, point % axis.extent.example());
            point /= axis.extent.example();
        }
    }

    /// The flat position of an element, `Some(None)` if it is not known which one it is.
    fn position(&mut self, buffer: BufferId, at: &[Scalar]) -> Option<Option<usize>> {
        let mut position = 0;
        for (index, &extent) in at.iter().zip(&self.nest.buf(buffer).shape) {
            let index = self.of(index)?.exact();
            let Some(index) = index.and_then(|i| usize::try_from(i).ok()) else {
                return Some(None);
            };
            let Some(extent) = extent.number().filter(|n| index < *n) else {
                return Some(None);
            };
            position = position * extent + index;
        }
        Some(Some(position))
    }

    /// The range of `x`; `None` if the budget is spent.
    fn of(&mut self, x: &Scalar) -> Option<ValueRange> {
        self.budget = self.budget.checked_sub(1)?;
        let ty = x.ty();
        Some(match x.kind() {
            Kind::Const(c) => constant(c.0, ty),
            Kind::Axis(id) => match self.axes.get(id) {
                Some(&i) => ValueRange::exactly(i64::try_from(i).ok()?),
                None => ValueRange::Unknown,
            },
            Kind::Extent(extent) => ValueRange::Formula(*extent.formula()),
            Kind::Load { buffer, at } => self.load(*buffer, at)?,
            Kind::Unary(op, y) => unary(*op, self.of(y)?).of_type(ty),
            Kind::Binary(op, a, b) => {
                let (a, b) = (self.of(a)?, self.of(b)?);
                binary(*op, a, b).of_type(ty)
            }
            Kind::Select(c, yes, no) => match self.of(c)?.exact() {
                Some(0) => self.of(no)?,
                Some(_) => self.of(yes)?,
                None => self.of(yes)?.hull(self.of(no)?),
            },
            Kind::Cast(y) => cast(self.of(y)?, ty),
            Kind::Bitcast(_) => ValueRange::Unknown,
            Kind::Reduce {
                op,
                axes,
                init,
                body,
            } => {
                let mut sum = self.of(init)?;
                for point in 0..points(axes)? {
                    self.bind(axes, point);
                    let next = self.of(body)?;
                    sum = binary(*op, sum, next).of_type(ty);
                }
                sum
            }
            Kind::Wrap(w) => match self.of(&w.index)?.exact() {
                Some(index) => match w.extent.number() {
                    Some(extent) => wrap(index, extent, w.policy),
                    None => ValueRange::Unknown,
                },
                None => ValueRange::Unknown,
            },
        })
    }

    fn load(&mut self, buffer: BufferId, at: &[Scalar]) -> Option<ValueRange> {
        let b = self.nest.buf(buffer);
        let table = match &b.role {
            Role::Table(bytes) if b.ty == ElementType::I64 => Some(bytes),
            _ => None,
        };
        // Where nothing is known of any element, no symbol is pinned to find out which one it is.
        if table.is_none() && !self.buffers.contains_key(&buffer) {
            return Some(ValueRange::Unknown);
        }
        let Some(position) = self.position(buffer, at)? else {
            return Some(ValueRange::Unknown);
        };
        if let Some(bytes) = table {
            let word = bytes.as_chunks::<8>().0.get(position)?;
            return Some(ValueRange::exactly(i64::from_le_bytes(*word)));
        }
        let known = self.buffers.get(&buffer).and_then(|all| all.get(position));
        Some(known.copied().unwrap_or(ValueRange::Unknown))
    }
}

/// The number of points of a domain, if it is not too large to go through.
fn points(domain: &[Axis]) -> Option<usize> {
    let count = domain
        .iter()
        .try_fold(1usize, |n, a| n.checked_mul(a.extent.number()?))?;
    (count <= BUDGET).then_some(count)
}

fn constant(bits: u64, ty: ElementType) -> ValueRange {
    match ty {
        ElementType::F32 => {
            let x = f64::from(f32::from_bits(bits as u32));
            ValueRange::Float(x, x)
        }
        ElementType::F64 => ValueRange::Float(f64::from_bits(bits), f64::from_bits(bits)),
        ElementType::Boolean => ValueRange::exactly(bits as i64),
        ElementType::U64 => i64::try_from(bits).map_or(ValueRange::Unknown, ValueRange::exactly),
        _ if ty.is_signed_integer() => {
            let unused = 64 - ty.bits();
            ValueRange::exactly((bits << unused) as i64 >> unused)
        }
        _ if ty.is_unsigned_integer() => ValueRange::exactly(bits as i64),
        _ => ValueRange::Unknown,
    }
}

fn wrap(index: i64, extent: usize, policy: Policy) -> ValueRange {
    let n = i64::try_from(extent).unwrap_or(i64::MAX);
    let index = if policy.negative && index < 0 {
        index.saturating_add(n)
    } else {
        index
    };
    match (0..n).contains(&index) {
        true => ValueRange::exactly(index),
        false => ValueRange::Unknown,
    }
}

fn unary(op: Unary, x: ValueRange) -> ValueRange {
    match (op, x) {
        (Unary::Neg, ValueRange::Formula(_)) => binary(Binary::Sub, ValueRange::exactly(0), x),
        (Unary::Floor | Unary::Ceil | Unary::Trunc | Unary::Round, ValueRange::Ratio(_, b, _))
            if b.as_number() == Some(1) =>
        {
            x
        }
        (_, ValueRange::Ratio(a, b, _) | ValueRange::Behind(a, b)) => ValueRange::Behind(a, b),
        (_, ValueRange::Formula(_)) => unary(op, x.pinned()),
        (Unary::Neg, ValueRange::Integer(_)) => binary(Binary::Sub, ValueRange::exactly(0), x),
        (Unary::Not, ValueRange::Integer(i)) if i.low >= 0 && i.high <= 1 => {
            ValueRange::Integer(Interval {
                low: 1 - i.high,
                high: 1 - i.low,
            })
        }
        (Unary::Abs, ValueRange::Integer(i)) if i.low >= 0 => x,
        (Unary::Neg, ValueRange::Float(a, b)) => ValueRange::Float(-b, -a),
        (Unary::Floor, ValueRange::Float(a, b)) => ValueRange::Float(a.floor(), b.floor()),
        (Unary::Ceil, ValueRange::Float(a, b)) => ValueRange::Float(a.ceil(), b.ceil()),
        (Unary::Trunc, ValueRange::Float(a, b)) => ValueRange::Float(a.trunc(), b.trunc()),
        (Unary::Round, ValueRange::Float(a, b)) => {
            ValueRange::Float(a.round_ties_even(), b.round_ties_even())
        }
        (Unary::Sqrt, ValueRange::Float(a, b)) if a >= 0.0 => ValueRange::Float(a.sqrt(), b.sqrt()),
        (Unary::Abs, ValueRange::Float(a, _)) if a >= 0.0 => x,
        _ => ValueRange::Unknown,
    }
}

fn binary(op: Binary, a: ValueRange, b: ValueRange) -> ValueRange {
    let is_integer = |x| matches!(x, ValueRange::Formula(_));
    if is_integer(a) || is_integer(b) {
        return formulas::binary(op, a, b).unwrap_or_else(|| binary(op, a.pinned(), b.pinned()));
    }
    if a.has_formulas() || b.has_formulas() {
        return ratios::binary(op, a, b).unwrap_or_else(|| binary(op, a.pinned(), b.pinned()));
    }
    match (a, b) {
        (ValueRange::Integer(a), ValueRange::Integer(b)) => integers(op, a, b),
        (ValueRange::Float(a, b), ValueRange::Float(c, d)) => floats(op, (a, b), (c, d)),
        _ => ValueRange::Unknown,
    }
}

fn integers(op: Binary, a: Interval, b: Interval) -> ValueRange {
    let corners = |f| corners(a, b, f);
    match op {
        Binary::Add => corners(|x, y| x + y),
        Binary::Sub => corners(|x, y| x - y),
        Binary::Mul | Binary::Term => corners(|x, y| x.saturating_mul(y)),
        Binary::Div if b.low > 0 => corners(|x, y| x / y),
        Binary::Min => ValueRange::Integer(Interval {
            low: a.low.min(b.low),
            high: a.high.min(b.high),
        }),
        Binary::Max => ValueRange::Integer(Interval {
            low: a.low.max(b.low),
            high: a.high.max(b.high),
        }),
        Binary::Rem if a.low >= 0 && b.low > 0 => {
            let exact = a.low == a.high && b.low == b.high;
            ValueRange::Integer(match exact {
                true => Interval {
                    low: a.low % b.low,
                    high: a.low % b.low,
                },
                false => Interval {
                    low: 0,
                    high: a.high.min(b.high.saturating_sub(1)),
                },
            })
        }
        Binary::Lt => truth(a.high < b.low, a.low >= b.high),
        Binary::Le => truth(a.high <= b.low, a.low > b.high),
        Binary::Gt => truth(a.low > b.high, a.high <= b.low),
        Binary::Ge => truth(a.low >= b.high, a.high < b.low),
        Binary::Eq | Binary::Ne => {
            let apart = a.high < b.low || b.high < a.low;
            let same = a.low == a.high && a == b && a.low != i64::MAX;
            match op {
                Binary::Eq => truth(same, apart),
                _ => truth(apart, same),
            }
        }
        Binary::And if is_truth(a) && is_truth(b) => integers(Binary::Min, a, b),
        Binary::Or if is_truth(a) && is_truth(b) => integers(Binary::Max, a, b),
        _ => ValueRange::Unknown,
    }
}

/// The values of `f`, which is monotonic in each operand, over both intervals.
fn corners(a: Interval, b: Interval, f: fn(i128, i128) -> i128) -> ValueRange {
    // Far beyond all numbers, and yet such that sums and products fit.
    let wide = |x: i64| match x {
        i64::MAX => 1i128 << 62 << 30,
        i64::MIN => -(1i128 << 62 << 30),
        _ => i128::from(x),
    };
    let [p, q, r, s] = [
        f(wide(a.low), wide(b.low)),
        f(wide(a.low), wide(b.high)),
        f(wide(a.high), wide(b.low)),
        f(wide(a.high), wide(b.high)),
    ];
    let (low, high) = (p.min(q).min(r).min(s), p.max(q).max(r).max(s));
    let is_finite = |x: i64| x != i64::MAX && x != i64::MIN;
    let finite = [a.low, a.high, b.low, b.high].into_iter().all(is_finite);
    let narrow = |x: i128| i64::try_from(x).ok();
    match (narrow(low), narrow(high)) {
        (Some(low), Some(high)) => ValueRange::Integer(Interval { low, high }),
        _ if finite => ValueRange::Unknown,
        (low, high) => ValueRange::Integer(Interval {
            low: low.unwrap_or(i64::MIN),
            high: high.unwrap_or(i64::MAX),
        }),
    }
}

/// The range of a comparison that holds `always`, `never`, or for some operands.
fn truth(always: bool, never: bool) -> ValueRange {
    ValueRange::Integer(Interval {
        low: always.into(),
        high: (!never).into(),
    })
}

fn is_truth(x: Interval) -> bool {
    x.low >= 0 && x.high <= 1
}

fn floats(op: Binary, (a, b): (f64, f64), (c, d): (f64, f64)) -> ValueRange {
    let all = |f: fn(f64, f64) -> f64| {
        let corners = [f(a, c), f(a, d), f(b, c), f(b, d)];
        if corners.iter().any(|x| x.is_nan()) {
            return ValueRange::Unknown;
        }
        let low = corners.into_iter().fold(f64::INFINITY, f64::min);
        let high = corners.into_iter().fold(f64::NEG_INFINITY, f64::max);
        ValueRange::Float(low, high)
    };
    match op {
        Binary::Add => all(|x, y| x + y),
        Binary::Sub => all(|x, y| x - y),
        Binary::Mul | Binary::Term => all(|x, y| x * y),
        Binary::Div if c > 0.0 || d < 0.0 => all(|x, y| x / y),
        Binary::Min => all(f64::min),
        Binary::Max => all(f64::max),
        _ => ValueRange::Unknown,
    }
}

fn cast(x: ValueRange, ty: ElementType) -> ValueRange {
    let is_float = matches!(ty, ElementType::F32 | ElementType::F64);
    let to_float = |i: i64| match i {
        i64::MAX => f64::INFINITY,
        i64::MIN => f64::NEG_INFINITY,
        _ => i as f64,
    };
    let to_integer = |x: f64| match x.trunc() {
        x if x >= i64::MAX as f64 => i64::MAX,
        x if x <= i64::MIN as f64 => i64::MIN,
        x => x as i64,
    };
    match x {
        ValueRange::Formula(_) if ty.is_integer() => x.of_type(ty),
        ValueRange::Formula(formula) => {
            ratios::of(&formula, ty).unwrap_or_else(|| cast(x.pinned(), ty))
        }
        ValueRange::Ratio(a, b, _) if b.as_number() == Some(1) => cast(ValueRange::Formula(a), ty),
        ValueRange::Ratio(a, b, _) | ValueRange::Behind(a, b) => ValueRange::Behind(a, b),
        ValueRange::Integer(i) if is_float => {
            ValueRange::Float(to_float(i.low), to_float(i.high)).of_type(ty)
        }
        ValueRange::Integer(i) if ty == ElementType::Boolean => {
            binary(Binary::Ne, ValueRange::Integer(i), ValueRange::exactly(0))
        }
        ValueRange::Integer(_) if ty.is_integer() => x.of_type(ty),
        ValueRange::Float(..) if is_float => x.of_type(ty),
        ValueRange::Float(a, b) if ty.is_integer() => ValueRange::Integer(Interval {
            low: to_integer(a),
            high: to_integer(b),
        })
        .of_type(ty),
        _ => ValueRange::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::{index, number};
    use ElementType::{F32, I64};

    fn between(low: i64, high: i64) -> ValueRange {
        ValueRange::Integer(Interval { low, high })
    }

    /// A list whose second element is at least 2, in the arithmetic of shapes.
    #[test]
    fn follows_what_shapes_are_computed_with() {
        let mut nest = Nest::new();
        let x = nest.buffer("x", I64, &[3], Role::Input);
        let y = nest.buffer("y", I64, &[3], Role::Output);
        let z = nest.buffer("z", I64, &[0usize; 0], Role::Output);
        nest.define(vec![], y, |nest, at| {
            let float = nest.load(x, at.to_vec()).cast(F32) * number(1.5, F32);
            float.floor().cast(I64) - 1
        });
        nest.define(vec![], z, |nest, _| {
            let axis = nest.axis(3);
            let body = nest.load(y, vec![Scalar::axis(axis.id)]);
            Scalar::reduce(Binary::Add, vec![axis], index(0), body)
        });
        let given = vec![ValueRange::exactly(3), between(2, i64::MAX), between(0, 4)];
        let found = value_ranges(&nest, [(x, given)].into_iter().collect(), 100).unwrap();
        let want = [ValueRange::exactly(3), between(2, i64::MAX), between(-1, 5)];
        assert_eq!(found[&y], want);
        assert_eq!(found[&z], [between(4, i64::MAX)]);
    }

    #[test]
    fn what_depends_on_data_is_unknown() {
        let mut nest = Nest::new();
        let x = nest.buffer("x", I64, &[2], Role::Input);
        let y = nest.buffer("y", I64, &[2], Role::Output);
        nest.define(vec![], y, |nest, at| nest.load(x, at.to_vec()) + 1);
        let found = value_ranges(&nest, FxHashMap::default(), 100).unwrap();
        assert_eq!(found[&y], [ValueRange::Unknown; 2]);
        assert!(value_ranges(&nest, FxHashMap::default(), 1).is_none());
        assert_eq!(
            integers(
                Binary::Add,
                Interval {
                    low: 1,
                    high: i64::MAX - 1
                },
                Interval { low: 2, high: 2 }
            ),
            ValueRange::Unknown
        );
    }

    /// Sizes that are converted to floats and back, as scales are made of them, stay symbols until a scale is asked for.
    #[test]
    fn sizes_go_through_floats() {
        let mut symbols = symbols::Symbols::default();
        let [from, to] = [32, 64].map(|n| *symbols.add(n).unwrap().formula());
        symbols.record(|| {
            let float = |formula| cast(ValueRange::Formula(formula), F32);
            let twice = binary(Binary::Mul, float(from), ValueRange::Float(2.0, 2.0));
            let floor = unary(Unary::Floor, twice);
            let double = from.times(&Formula::number(2)).unwrap();
            assert_eq!(cast(floor, I64), ValueRange::Formula(double));
            let scale = binary(Binary::Div, float(to), float(from));
            let third = binary(Binary::Div, float(from), ValueRange::Float(3.0, 3.0));
            assert_eq!(scale, ValueRange::Ratio(to, from, F32));
            let more = binary(Binary::Add, scale, ValueRange::Float(1e-5, 1e-5));
            assert_eq!(more, ValueRange::Behind(to, from));
            assert_eq!([scale.formula(), more.formula()], [None; 2]);
            let x = f64::from(32.0f32 / 3.0);
            assert_eq!(third.pinned(), ValueRange::Float(x, x));
        });
        assert!(symbols.bind(&[32, 100]).is_some());
        assert!(symbols.bind(&[33, 64]).is_none(), "a third was asked for");
    }
}
