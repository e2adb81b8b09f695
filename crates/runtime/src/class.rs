//! Classes of shapes: what many shapes have in common is worked out once.
//!
//! The first shapes that a segment meets are an example. Each of their extents that may change becomes a symbol, the
//! segment is lowered and taken through the passes with symbols for extents, and what was decided on the way by the
//! numbers of the example is written down: other shapes belong to the same class if all of it would be decided in the
//! same way.

mod narrow;

use crate::plan_key::PlanKey;
use narrow::narrow;
use rustc_hash::FxHashMap;
use std::fmt::Display;
use std::time::{Duration, Instant};
use vinelift_graph::{Known, Types};
use vinelift_ops::TensorType;
use vinelift_tensor::symbols::{self, Symbols};
use vinelift_tensor::{Extent, Formula, PartialShape};

/// A `T` made for all shapes of a class; their keys are of one [`KeyKind`](crate::plan_key::KeyKind).
pub(crate) struct Class<T> {
    /// An entry for each of [`PlanKey::numbers`], in order.
    pub(crate) pattern: Vec<Entry>,
    pub(crate) symbols: Symbols,
    /// Why numbers that may change have no symbols of their own, in the order in which that was found.
    pub(crate) pins: Vec<Pin>,
    pub(crate) made: T,
    /// How long it took to make.
    pub(crate) time: Duration,
}

/// The findings of lowering about each number of a key, with their reasons.
#[derive(Default)]
pub(crate) struct Settled {
    entries: Vec<Entry>,
    pins: Vec<Pin>,
}

/// One position of a class's pattern: the number that all keys of the class have there, or a formula for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    Number(i64),
    Symbol(Affine),
}

/// `times · symbol + more`, where `symbol` counts among the symbols that are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Affine {
    pub(crate) symbol: usize,
    /// Negative where the number is.
    pub(crate) times: i64,
    pub(crate) more: i64,
}

impl Affine {
    fn of(symbol: usize) -> Affine {
        Affine {
            symbol,
            times: 1,
            more: 0,
        }
    }

    /// The symbol that stands for a number of a key at first, with the opposite sign if the number is negative; `None` if no symbol
    /// may have a number of this size.
    fn of_number(position: usize, number: i64) -> Option<Affine> {
        let size = usize::try_from(number.unsigned_abs()).ok()?;
        Extent::may_be(size).then(|| Affine {
            times: number.signum(),
            ..Affine::of(position)
        })
    }

    /// The symbol where this is `number`.
    fn symbol_at(&self, number: i64) -> Option<usize> {
        let multiple = number.checked_sub(self.more)?;
        let is_whole = multiple.checked_rem(self.times)? == 0;
        usize::try_from(multiple / self.times)
            .ok()
            .filter(|_| is_whole)
    }

    /// The formula over `symbol`, the one that is meant.
    fn formula(&self, symbol: &Formula) -> Option<Formula> {
        let multiple = symbol.times(&Formula::number(self.times))?;
        multiple.plus(&Formula::number(self.more))
    }
}

/// A number of the key that lost its symbol.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pin {
    /// Its position in [`PlanKey::numbers`].
    pub(crate) position: usize,
    /// Where that was found: a node, or [`PASSES`].
    pub(crate) place: usize,
}

/// The place of what a pass decided, and not a node.
pub(crate) const PASSES: usize = usize::MAX;

/// Why shapes belong to no class.
pub(crate) enum Alone {
    /// None of their extents may change, or what was made of symbols went wrong in the way that is told.
    Unsuited(Option<String>),
    /// Each extent that may change is needed as a number.
    Pinned(Vec<Pin>),
}

/// The most times that `lower` and `finish` run for one class: each time, fewer numbers may have symbols.
const MOST_ROUNDS: usize = 12;

impl<T> Class<T> {
    /// The class to which `example` belongs.
    ///
    /// `lower` makes something of the shapes of inputs and known tensors, which may have symbols. Once it asks for no more of
    /// these to be numbers, `finish` makes the rest. `is_input_static(k, d)` says whether the model allows only one extent for dim
    /// `d` of input `k`. `settled` has the findings of an earlier class about the first numbers of the key.
    pub(crate) fn of<L, E: Display>(
        example: &PlanKey,
        known: &Known,
        is_input_static: impl Fn(usize, usize) -> bool,
        inferred: Option<&Types>,
        settled: Option<Settled>,
        mut lower: impl FnMut(&[Vec<Extent>], &Known) -> Result<L, E>,
        mut finish: impl FnMut(L) -> Result<T, E>,
    ) -> Result<Class<T>, Alone> {
        let start = Instant::now();
        let numbers: Vec<i64> = example.numbers().collect();
        let is_static = is_static(example, is_input_static, inferred);
        let is_static = is_static.into_iter().chain(std::iter::repeat(false));
        let positions = numbers.iter().zip(is_static).enumerate();
        let mut pattern: Vec<Entry> = positions
            .map(|(k, (n, is_static))| match Affine::of_number(k, *n) {
                Some(of) if !is_static => Entry::Symbol(of),
                _ => Entry::Number(*n),
            })
            .collect();
        if !pattern.iter().any(|p| matches!(p, Entry::Symbol(..))) {
            return Err(Alone::Unsuited(None));
        }
        let Settled { entries, mut pins } = settled.unwrap_or_default();
        pattern[..entries.len()].copy_from_slice(&entries);
        share(&mut pattern, &numbers, numbers.len() - example.room.len());
        let unsuited = |error: E| Alone::Unsuited(Some(error.to_string()));
        for _ in 0..MOST_ROUNDS {
            let Some((mut symbols, given)) = number(&mut pattern, &numbers) else {
                return Err(Alone::Pinned(pins));
            };
            let (inputs, known) = typed(example, &given, known);
            let lowered = symbols.record(|| lower(&inputs, &known));
            let lowered = lowered.map_err(unsuited)?;
            if narrow(&mut pattern, &symbols, &mut pins) {
                continue;
            }
            let made = symbols.record(|| {
                symbols::at(PASSES);
                finish(lowered)
            });
            let made = made.map_err(unsuited)?;
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
        Err(Alone::Unsuited(Some("it has no end".to_owned())))
    }

    /// The pattern of the class, and why it is so.
    pub(crate) fn settled(&self) -> Settled {
        Settled {
            entries: self.pattern.clone(),
            pins: self.pins.clone(),
        }
    }

    /// The values of the symbols for `key`, which is of the kind of the example, if it belongs to the class.
    pub(crate) fn values(&self, key: &PlanKey) -> Option<Vec<usize>> {
        let mut given: Vec<usize> = Vec::new();
        for (entry, found) in self.pattern.iter().zip(key.numbers()) {
            match *entry {
                Entry::Number(number) if number == found => {}
                Entry::Number(_) => return None,
                Entry::Symbol(of) => match (of.symbol_at(found)?, given.get(of.symbol)) {
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

/// Gives equal numbers one symbol: those from position `start` on, or all if there are many.
fn share(pattern: &mut [Entry], numbers: &[i64], start: usize) {
    const MANY: usize = 128;
    let symbols = pattern.iter().filter(|p| matches!(p, Entry::Symbol(..)));
    let start = if symbols.count() > MANY { 0 } else { start };
    let mut first: FxHashMap<i64, Entry> = FxHashMap::default();
    for (entry, number) in pattern.iter_mut().zip(numbers).skip(start) {
        if matches!(entry, Entry::Symbol(..)) {
            *entry = *first.entry(*number).or_insert(*entry);
        }
    }
}

/// For each extent of a key and each element of its values, in order, whether it is the same for all shapes that the model allows.
fn is_static(
    key: &PlanKey,
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
    for (tensor, _, value) in &key.values {
        let is_fixed = |k| inferred.is_some_and(|types| types.is_fixed(*tensor, k));
        all.extend((0..value.numbers().len()).map(is_fixed));
    }
    all
}

/// The shapes of the inputs, and what is known, with `given` for the numbers of a key.
fn typed(key: &PlanKey, given: &[Given], known: &Known) -> (Vec<Vec<Extent>>, Known) {
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
        if elements.iter().any(|e| e.formula.as_number().is_none())
            && let Some(example) = known.values.remove(tensor)
        {
            let formulas = elements.iter().map(|e| e.formula).collect();
            known.formulas.insert(*tensor, (formulas, example));
        }
    }
    for ((tensor, _), extent) in key.room.iter().zip(next(key.room.len())) {
        known.room.insert(*tensor, extent.extent());
    }
    (inputs, known)
}

/// A number of a key while a plan is made: a formula, if it has a symbol, and its value at the example.
#[derive(Clone, Copy)]
struct Given {
    formula: Formula,
    example: i64,
}

impl Given {
    /// The extent that it is, where it is one: no extent is negative.
    fn extent(&self) -> Extent {
        Extent::new(
            self.formula,
            usize::try_from(self.example).unwrap_or_default(),
        )
    }
}

/// Numbers the symbols of a pattern anew, without gaps, and returns them with the entries of the pattern as numbers and
/// symbols; `None` if it has no symbols, or too many.
fn number(pattern: &mut [Entry], numbers: &[i64]) -> Option<(Symbols, Vec<Given>)> {
    let mut symbols = Symbols::default();
    let mut known: FxHashMap<usize, (usize, Extent)> = FxHashMap::default();
    let mut given = Vec::with_capacity(pattern.len());
    for (entry, &number) in pattern.iter_mut().zip(numbers) {
        let formula = match entry {
            Entry::Number(number) => Formula::number(*number),
            Entry::Symbol(of) => {
                let next = known.len();
                let (position, extent) = match known.get(&of.symbol) {
                    Some(known) => *known,
                    None => (next, symbols.add(of.symbol_at(number)?)?),
                };
                known.insert(of.symbol, (position, extent));
                of.symbol = position;
                of.formula(extent.formula())?
            }
        };
        let example = number;
        given.push(Given { formula, example });
    }
    (!known.is_empty()).then_some((symbols, given))
}
