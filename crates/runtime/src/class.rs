//! Classes of shapes: what many shapes have in common is worked out once.
//!
//! The first shapes that a segment meets are an example. Each of their extents that may change becomes a symbol, the
//! segment is lowered and taken through the passes with symbols for extents, and what was decided on the way by the
//! numbers of the example is written down: other shapes belong to the same class if all of it would be decided in the
//! same way.

use crate::key::Key;
use rustc_hash::FxHashMap;
use std::time::{Duration, Instant};
use vinelift_graph::{Known, Types};
use vinelift_ops::TensorType;
use vinelift_tensor::symbols::{self, Condition, Symbols};
use vinelift_tensor::{Extent, Formula, PartialShape, Symbol};

/// What was made for all shapes of a class; their keys are of one [`Kind`](crate::key::Kind).
pub(crate) struct Class<T> {
    /// An entry for each of [`Key::numbers`], in order.
    pub(crate) pattern: Vec<Place>,
    pub(crate) symbols: Symbols,
    /// Why numbers that may change have no symbols of their own, in the order in which that was found.
    pub(crate) pins: Vec<Pin>,
    pub(crate) made: T,
    /// How long it took to make.
    pub(crate) time: Duration,
}

/// What a class knows of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Number(i64),
    /// The symbol of this number among those that are given.
    Symbol(usize),
}

/// A number of the key that lost its symbol.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pin {
    /// Its position in [`Key::numbers`].
    pub(crate) position: usize,
    /// Where that was found: a node, or [`PASSES`].
    pub(crate) place: usize,
}

/// The place of what a pass decided, and not a node.
pub(crate) const PASSES: usize = usize::MAX;

/// Why shapes belong to no class.
pub(crate) enum Alone {
    /// None of their extents may change, or the segment cannot be lowered.
    Unsuited,
    /// Each extent that may change is needed as a number.
    Pinned,
}

/// The most times that something is made to find out which symbols it has.
const MOST_ROUNDS: usize = 12;

impl<T> Class<T> {
    /// The class of which `example` is one. `is_input_static` says of dim `d` of input `k` whether all shapes that the
    /// model allows have the same extent there. `lower` makes something of inputs and known tensors of given types, and
    /// `finish` the rest, once symbols are settled as far as `lower` goes.
    pub(crate) fn of<L, E>(
        example: &Key,
        known: &Known,
        is_input_static: impl Fn(usize, usize) -> bool,
        inferred: Option<&Types>,
        mut lower: impl FnMut(&[Vec<Extent>], &Known) -> Result<L, E>,
        mut finish: impl FnMut(L) -> Result<T, E>,
    ) -> Result<Class<T>, Alone> {
        let start = Instant::now();
        let numbers: Vec<i64> = example.numbers().collect();
        let is_static = is_static(example, is_input_static, inferred);
        let is_static = is_static.into_iter().chain(std::iter::repeat(false));
        let may_be = |n: i64| usize::try_from(n).is_ok_and(Extent::may_be);
        let places = numbers.iter().zip(is_static).enumerate();
        let mut pattern: Vec<Place> = places
            .map(|(k, (n, is_static))| match is_static || !may_be(*n) {
                true => Place::Number(*n),
                false => Place::Symbol(k),
            })
            .collect();
        if !pattern.iter().any(|p| matches!(p, Place::Symbol(_))) {
            return Err(Alone::Unsuited);
        }
        share(&mut pattern, &numbers, numbers.len() - example.room.len());
        let mut pins = Vec::new();
        for _ in 0..MOST_ROUNDS {
            let (mut symbols, given) = number(&mut pattern, &numbers).ok_or(Alone::Pinned)?;
            let (inputs, known) = typed(example, &given, known);
            let lowered = symbols.record(|| lower(&inputs, &known));
            let lowered = lowered.map_err(|_| Alone::Unsuited)?;
            if narrow(&mut pattern, &symbols, &mut pins) {
                continue;
            }
            let made = symbols.record(|| {
                symbols::at(PASSES);
                finish(lowered)
            });
            let made = made.map_err(|_| Alone::Unsuited)?;
            if !narrow(&mut pattern, &symbols, &mut pins) {
                return Ok(Class {
                    pattern,
                    symbols,
                    pins,
                    made,
                    time: start.elapsed(),
                });
            }
        }
        Err(Alone::Unsuited)
    }

    /// The values of the symbols for `key`, which is of the kind of the example, if it belongs to the class.
    pub(crate) fn values(&self, key: &Key) -> Option<Vec<usize>> {
        let mut given: Vec<usize> = Vec::new();
        for (place, found) in self.pattern.iter().zip(key.numbers()) {
            match *place {
                Place::Number(number) if number == found => {}
                Place::Number(_) => return None,
                Place::Symbol(k) => match (usize::try_from(found).ok()?, given.get(k)) {
                    // Symbols are numbered in the order in which they come.
                    (found, None) => given.push(found),
                    (found, Some(known)) if found == *known => {}
                    _ => return None,
                },
            }
        }
        self.symbols.bind(&given)
    }
}

/// Has equal numbers be one symbol: those from `start` on, and all if there are many.
fn share(pattern: &mut [Place], numbers: &[i64], start: usize) {
    const MANY: usize = 128;
    let symbols = pattern.iter().filter(|p| matches!(p, Place::Symbol(_)));
    let start = if symbols.count() > MANY { 0 } else { start };
    let mut first: FxHashMap<i64, Place> = FxHashMap::default();
    for (place, number) in pattern.iter_mut().zip(numbers).skip(start) {
        if matches!(place, Place::Symbol(_)) {
            *place = *first.entry(*number).or_insert(*place);
        }
    }
}

/// For each extent of a key, in order, whether it is the same for all shapes that the model allows.
fn is_static(
    key: &Key,
    is_input_static: impl Fn(usize, usize) -> bool,
    inferred: Option<&Types>,
) -> Vec<bool> {
    let mut all = Vec::new();
    for (k, shape) in key.shapes.iter().enumerate() {
        all.extend((0..shape.len()).map(|d| is_input_static(k, d)));
    }
    for (tensor, shape) in &key.computed {
        let dims = inferred.and_then(|types| types.get(*tensor)?.shape.dims());
        let dim = |d: usize| dims.and_then(|dims| dims.get(d));
        all.extend((0..shape.len()).map(|d| dim(d).is_some_and(|dim| dim.is_known())));
    }
    all
}

/// The shapes of the inputs, and what is known, with `given` for the numbers of a key.
fn typed(key: &Key, given: &[Given], known: &Known) -> (Vec<Vec<Extent>>, Known) {
    let mut rest = given;
    let mut next = |count: usize| {
        let (first, others) = rest.split_at(count);
        rest = others;
        first
    };
    let extents = |given: &[Given]| given.iter().map(Given::extent).collect();
    let shapes = key.shapes.iter();
    let inputs = shapes.map(|shape| extents(next(shape.len()))).collect();
    let mut known = known.clone();
    for (tensor, shape) in &key.computed {
        let shape: Vec<Extent> = extents(next(shape.len()));
        if let Some(ty) = known.computed.get_mut(tensor) {
            *ty = TensorType::new(ty.element, PartialShape::from(shape.as_slice()));
        }
    }
    for (tensor, _, value) in &key.values {
        let elements = next(value.numbers().len());
        if elements.iter().any(|e| matches!(e, Given::Symbol(_)))
            && let Some(example) = known.values.remove(tensor)
        {
            let formulas = elements.iter().map(Given::formula).collect();
            known.formulas.insert(*tensor, (formulas, example));
        }
    }
    for ((tensor, _), extent) in key.room.iter().zip(next(key.room.len())) {
        known.room.insert(*tensor, extent.extent());
    }
    (inputs, known)
}

/// What a number of a key is while a plan is made.
#[derive(Clone, Copy)]
enum Given {
    Number(i64),
    Symbol(Extent),
}

impl Given {
    fn extent(&self) -> Extent {
        match self {
            Given::Number(n) => usize::try_from(*n).unwrap_or_default().into(),
            Given::Symbol(extent) => *extent,
        }
    }

    fn formula(&self) -> Formula {
        match self {
            Given::Number(n) => Formula::number(*n),
            Given::Symbol(extent) => *extent.formula(),
        }
    }
}

/// Numbers the symbols of a pattern anew, without gaps, and gives what it stands for; `None` if it has no symbols, or too
/// many.
fn number(pattern: &mut [Place], numbers: &[i64]) -> Option<(Symbols, Vec<Given>)> {
    let mut symbols = Symbols::default();
    let mut known: FxHashMap<usize, (usize, Extent)> = FxHashMap::default();
    let mut given = Vec::with_capacity(pattern.len());
    for (place, &number) in pattern.iter_mut().zip(numbers) {
        given.push(match place {
            Place::Number(number) => Given::Number(*number),
            Place::Symbol(k) => {
                let next = known.len();
                let (number, extent) = match known.get(k) {
                    Some(known) => *known,
                    None => (next, symbols.add(usize::try_from(number).ok()?)?),
                };
                known.insert(*k, (number, extent));
                *k = number;
                Given::Symbol(extent)
            }
        });
    }
    (!known.is_empty()).then_some((symbols, given))
}

/// Makes one symbol of those that must be equal, and a number of those that must be one. Whether any were.
fn narrow(pattern: &mut [Place], symbols: &Symbols, pins: &mut Vec<Pin>) -> bool {
    let before = pins.len();
    for (condition, place) in &symbols.conditions {
        let Condition::Zero(formula) = condition else {
            continue;
        };
        let of = |symbol: Symbol| symbols.symbols.get(symbol.number());
        let mut involved: Vec<Symbol> = formula.symbols().collect();
        involved.dedup();
        let change = match involved[..] {
            [a] if formula.is_linear() => {
                let number = of(a).and_then(|(number, _)| i64::try_from(*number).ok());
                number.map(|number| (a.number(), Place::Number(number)))
            }
            [a, b] if formula.is_difference() => {
                let (a, b) = (a.number(), b.number());
                Some((a.max(b), Place::Symbol(a.min(b))))
            }
            _ => None,
        };
        let Some((symbol, to)) = change else { continue };
        for (position, entry) in pattern.iter_mut().enumerate() {
            if *entry == Place::Symbol(symbol) {
                *entry = to;
                let place = *place;
                pins.push(Pin { position, place });
            }
        }
    }
    pins.len() > before
}
