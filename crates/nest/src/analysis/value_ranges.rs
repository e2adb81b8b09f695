//! Value range analysis: intervals that hold the elements of tensors whose contents are not known.
//!
//! A nest is evaluated as the interpreter does it, over bounds in place of numbers. This is for the few
//! integers that shapes are computed from; what it does not follow is [`ValueRange::Unknown`].
//!
//! `i64::MAX` and `i64::MIN` stand for "not bounded": arithmetic on them saturates. Where finite bounds
//! overflow, the result is unknown, since the numbers wrap.

mod arithmetic;
mod formulas;
mod ratios;
#[cfg(test)]
mod tests;

use crate::analysis::Interval;
use crate::ir::{Axis, AxisId, BufferId, Kind, Mode, Nest, Role, Scalar, Stage};
use arithmetic::{binary, cast, unary};
use rustc_hash::FxHashMap;
use vinelift_tensor::{ElementType, Formula, numbers, symbols};

/// The values that one element may have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ValueRange {
    /// An integer or boolean in an interval.
    Integer(Interval),
    /// Exactly the integer that a formula over symbols gives.
    Formula(Formula),
    /// A float from the first to the second, both included.
    Float(f64, f64),
    /// Exactly the quotient of two integers that a type of floats holds, rounded to it.
    Ratio(Formula, Formula, ElementType),
    /// A number that is computed from the integers that two formulas give, in a way that is not kept: once their symbols are
    /// pinned, it is evaluated again, from numbers.
    Computed(Formula, Formula),
    /// Nothing is known of it.
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
            ValueRange::Ratio(..) | ValueRange::Computed(..) => None,
            _ => self.exact().map(Formula::number),
        }
    }

    /// The formula of a number that is known exactly and is an integer, whatever its type is.
    pub fn whole_number(self) -> Option<Formula> {
        match self {
            ValueRange::Ratio(a, b, _) if b.as_number() == Some(1) => Some(a),
            other => other.formula(),
        }
    }

    /// Itself without symbols: a formula is pinned.
    pub fn pinned(self) -> ValueRange {
        match self {
            ValueRange::Formula(formula) => {
                symbols::pin(&formula).map_or(ValueRange::Unknown, ValueRange::exactly)
            }
            ValueRange::Ratio(a, b, ty) => ratios::pinned(&a, &b, ty),
            ValueRange::Computed(a, b) => {
                // It is known once the nest is evaluated with these numbers.
                let _ = (symbols::pin(&a), symbols::pin(&b));
                ValueRange::Unknown
            }
            other => other,
        }
    }

    fn has_formulas(&self) -> bool {
        use ValueRange::{Computed, Formula, Ratio};
        matches!(self, Formula(_) | Ratio(..) | Computed(..))
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
            Kind::Wrap(w) => {
                let known = self.of(&w.index)?.exact().zip(w.extent.number());
                let place = known.and_then(|(index, extent)| w.policy.place(index, extent));
                place.map_or(ValueRange::Unknown, |place| {
                    ValueRange::exactly(place as i64)
                })
            }
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
        _ => Scalar::constant(bits, ty)
            .as_integer()
            .map_or(ValueRange::Unknown, ValueRange::exactly),
    }
}
