//! Classes of shapes: what many shapes have in common is worked out once.
//!
//! The first shapes that a segment meets are an example. Each of their extents that may change becomes a symbol, the
//! segment is lowered with symbols for extents, and what was decided on the way by the numbers of the example is
//! written down: other shapes belong to the same class if all of it would be decided in the same way.

use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use vinelift_graph::{Known, Segment, TensorId, Types};
use vinelift_ops::TensorType;
use vinelift_tensor::symbols::{Condition, Symbols};
use vinelift_tensor::{Extent, PartialShape, Shape, Symbol};

/// A segment for all shapes of a class.
pub(crate) struct Class {
    outline: Outline,
    /// An entry for each extent of [`Outline::tensors`], in order.
    pattern: Vec<Place>,
    symbols: Symbols,
    segment: Segment,
}

/// The part of what a segment is specialised to that classes do not abstract from.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Outline {
    /// The ranks of the inputs.
    inputs: Vec<usize>,
    /// The tensors computed before, with their ranks, in order.
    computed: Vec<(TensorId, usize)>,
    /// Values that were waited for.
    values: Vec<(TensorId, Shape, Vec<u8>)>,
}

/// What a class knows of an extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Number(usize),
    /// The symbol of this number among those that are given.
    Symbol(usize),
}

/// The most times that a segment is lowered to find out which symbols it has.
const MOST_ROUNDS: usize = 12;

/// The shapes of one run, before a segment.
pub(crate) struct Shapes<'a> {
    pub(crate) inputs: &'a [Shape],
    pub(crate) known: &'a Known,
}

impl Shapes<'_> {
    fn outline(&self) -> Outline {
        let ranks = |(t, ty): (&TensorId, &TensorType)| (*t, ty.shape.rank().unwrap_or(0));
        let computed: BTreeMap<TensorId, usize> = self.known.computed.iter().map(ranks).collect();
        let values = self.known.values.iter();
        let mut values: Vec<_> = values
            .map(|(t, v)| (*t, v.shape().to_vec(), v.bytes().to_vec()))
            .collect();
        values.sort_unstable();
        Outline {
            inputs: self.inputs.iter().map(Vec::len).collect(),
            computed: computed.into_iter().collect(),
            values,
        }
    }

    /// All extents in the order of patterns; `None` if some are not known.
    fn extents(&self, outline: &Outline) -> Option<Vec<usize>> {
        let mut all = self.inputs.concat();
        for (tensor, _) in &outline.computed {
            all.extend(self.known.computed.get(tensor)?.shape.to_static()?);
        }
        Some(all)
    }
}

impl Class {
    /// The class of these shapes, which are its example; `None` if none of their extents may change, or each of them
    /// is needed as a number. `specialize` lowers the segment for inputs and known tensors of given types.
    pub(crate) fn of<E>(
        shapes: &Shapes<'_>,
        declared: impl Fn(usize, usize) -> bool,
        inferred: Option<&Types>,
        mut specialize: impl FnMut(&[Vec<Extent>], &Known) -> Result<Segment, E>,
    ) -> Option<Class> {
        let outline = shapes.outline();
        let extents = shapes.extents(&outline)?;
        let is_static = outline.is_static(declared, inferred);
        let mut count = 0;
        let mut place = |(n, is_static): (&usize, bool)| match is_static || *n < Extent::LEAST {
            true => Place::Number(*n),
            false => {
                count += 1;
                Place::Symbol(count - 1)
            }
        };
        let mut pattern: Vec<Place> = extents.iter().zip(is_static).map(&mut place).collect();
        for _ in 0..MOST_ROUNDS {
            let (mut symbols, given) = number(&mut pattern, &extents)?;
            let (inputs, known) = outline.typed(&given, shapes.known);
            let segment = symbols.record(|| specialize(&inputs, &known)).ok()?;
            if !narrow(&mut pattern, &symbols) {
                let mut segment = segment;
                segment.nest.symbols = symbols.example();
                return Some(Class {
                    outline,
                    pattern,
                    symbols,
                    segment,
                });
            }
        }
        None
    }

    /// The values of the symbols for these shapes, if they belong to the class.
    pub(crate) fn values(&self, shapes: &Shapes<'_>) -> Option<Vec<usize>> {
        let outline = shapes.outline();
        let extents = shapes.extents(&outline)?;
        if outline != self.outline || extents.len() != self.pattern.len() {
            return None;
        }
        let mut given: Vec<Option<usize>> = Vec::new();
        for (place, extent) in self.pattern.iter().zip(extents) {
            match *place {
                Place::Number(number) if number != extent => return None,
                Place::Number(_) => {}
                Place::Symbol(k) => {
                    given.resize(given.len().max(k + 1), None);
                    match given[k].replace(extent) {
                        Some(known) if known != extent => return None,
                        _ => {}
                    }
                }
            }
        }
        self.symbols
            .bind(&given.into_iter().collect::<Option<Vec<usize>>>()?)
    }

    /// The segment with these values of the symbols.
    pub(crate) fn segment(&self, values: &[usize]) -> Option<Segment> {
        self.segment.bound_to(values)
    }
}

impl Outline {
    /// For each extent, whether it is the same for all shapes that the model allows.
    fn is_static(
        &self,
        declared: impl Fn(usize, usize) -> bool,
        inferred: Option<&Types>,
    ) -> Vec<bool> {
        let inputs = self.inputs.iter().enumerate();
        let mut all: Vec<bool> = inputs
            .flat_map(|(k, rank)| (0..*rank).map(move |d| (k, d)))
            .map(|(k, d)| declared(k, d))
            .collect();
        for (tensor, rank) in &self.computed {
            let known = inferred.and_then(|types| types.get(*tensor)?.shape.dims());
            let is_known = |d: usize| {
                known
                    .and_then(|dims| dims.get(d))
                    .is_some_and(|d| d.is_known())
            };
            all.extend((0..*rank).map(is_known));
        }
        all
    }

    /// The shapes of the inputs, and what is known, with `extents` for shapes.
    fn typed(&self, extents: &[Extent], known: &Known) -> (Vec<Vec<Extent>>, Known) {
        let mut rest = extents;
        let mut next = |rank: usize| {
            let (shape, others) = rest.split_at(rank.min(rest.len()));
            rest = others;
            shape.to_vec()
        };
        let inputs = self.inputs.iter().map(|rank| next(*rank)).collect();
        let mut computed = FxHashMap::default();
        for (tensor, rank) in &self.computed {
            let shape = next(*rank);
            if let Some(ty) = known.computed.get(tensor) {
                let shape = PartialShape::from(shape.as_slice());
                computed.insert(*tensor, TensorType::new(ty.element, shape));
            }
        }
        let values = known.values.clone();
        (inputs, Known { computed, values })
    }
}

/// Numbers the symbols of a pattern anew, without gaps, and gives the extents that it stands for; `None` if it has no
/// symbols, or too many.
fn number(pattern: &mut [Place], extents: &[usize]) -> Option<(Symbols, Vec<Extent>)> {
    let mut symbols = Symbols::default();
    let mut numbers: FxHashMap<usize, (usize, Extent)> = FxHashMap::default();
    let mut given = Vec::with_capacity(pattern.len());
    for (place, &extent) in pattern.iter_mut().zip(extents) {
        given.push(match place {
            Place::Number(number) => (*number).into(),
            Place::Symbol(k) => {
                let next = numbers.len();
                let known = match numbers.get(k) {
                    Some(known) => *known,
                    None => (next, symbols.add(extent)?),
                };
                numbers.insert(*k, known);
                *k = known.0;
                known.1
            }
        });
    }
    (!numbers.is_empty()).then_some((symbols, given))
}

/// Makes one symbol of those that must be equal, and a number of those that must be one. Whether any were.
fn narrow(pattern: &mut [Place], symbols: &Symbols) -> bool {
    let mut changed = false;
    for (condition, _) in &symbols.conditions {
        let Condition::Zero(formula) = condition else {
            continue;
        };
        let of = |symbol: Symbol| symbols.symbols.get(symbol.number());
        let mut involved: Vec<Symbol> = formula.symbols().collect();
        involved.dedup();
        match involved[..] {
            [a] if formula.is_linear() => {
                let Some((number, _)) = of(a) else { continue };
                for place in pattern.iter_mut() {
                    if *place == Place::Symbol(a.number()) {
                        *place = Place::Number(*number);
                        changed = true;
                    }
                }
            }
            [a, b] if formula.is_difference() => {
                for place in pattern.iter_mut() {
                    if *place == Place::Symbol(b.number().max(a.number())) {
                        *place = Place::Symbol(a.number().min(b.number()));
                        changed = true;
                    }
                }
            }
            _ => {}
        }
    }
    changed
}
