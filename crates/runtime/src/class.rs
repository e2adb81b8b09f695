//! Classes of shapes: what many shapes have in common is worked out once.
//!
//! The first shapes that a segment meets are an example. Each of their extents that may change becomes a symbol, the
//! segment is lowered and taken through the passes with symbols for extents, and what was decided on the way by the
//! numbers of the example is written down: other shapes belong to the same class if all of it would be decided in the
//! same way.

use crate::key::Key;
use rustc_hash::FxHashMap;
use vinelift_graph::{Known, Types};
use vinelift_ops::TensorType;
use vinelift_tensor::symbols::{Condition, Symbols};
use vinelift_tensor::{Extent, PartialShape, Symbol};

/// What was made for all shapes of a class.
pub(crate) struct Class<T> {
    example: Key,
    /// An entry for each of [`Key::extents`], in order.
    pattern: Vec<Place>,
    symbols: Symbols,
    pub(crate) made: T,
}

/// What a class knows of an extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Number(usize),
    /// The symbol of this number among those that are given.
    Symbol(usize),
}

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
        let extents: Vec<usize> = example.extents().collect();
        let is_static = is_static(example, is_input_static, inferred);
        let places = extents.iter().zip(is_static).enumerate();
        let mut pattern: Vec<Place> = places
            .map(
                |(k, (n, is_static))| match is_static || *n < Extent::LEAST {
                    true => Place::Number(*n),
                    false => Place::Symbol(k),
                },
            )
            .collect();
        if !pattern.iter().any(|p| matches!(p, Place::Symbol(_))) {
            return Err(Alone::Unsuited);
        }
        for _ in 0..MOST_ROUNDS {
            let (mut symbols, given) = number(&mut pattern, &extents).ok_or(Alone::Pinned)?;
            let (inputs, known) = typed(example, &given, known);
            let lowered = symbols.record(|| lower(&inputs, &known));
            let lowered = lowered.map_err(|_| Alone::Unsuited)?;
            if narrow(&mut pattern, &symbols) {
                continue;
            }
            let made = symbols.record(|| finish(lowered));
            let made = made.map_err(|_| Alone::Unsuited)?;
            if !narrow(&mut pattern, &symbols) {
                return Ok(Class {
                    example: example.clone(),
                    pattern,
                    symbols,
                    made,
                });
            }
        }
        Err(Alone::Unsuited)
    }

    /// The values of the symbols for the shapes of `key`, if they belong to the class.
    pub(crate) fn values(&self, key: &Key) -> Option<Vec<usize>> {
        if !key.is_like(&self.example) {
            return None;
        }
        let mut given: Vec<usize> = Vec::new();
        for (place, extent) in self.pattern.iter().zip(key.extents()) {
            match *place {
                // Symbols are numbered in the order in which they come.
                Place::Symbol(k) if k == given.len() => given.push(extent),
                Place::Symbol(k) if given[k] != extent => return None,
                Place::Number(number) if number != extent => return None,
                _ => {}
            }
        }
        self.symbols.bind(&given)
    }
}

/// For each extent of a key, whether it is the same for all shapes that the model allows.
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

/// The shapes of the inputs, and what is known, with `extents` for those of a key.
fn typed(key: &Key, extents: &[Extent], known: &Known) -> (Vec<Vec<Extent>>, Known) {
    let mut rest = extents;
    let mut next = |rank: usize| {
        let (shape, others) = rest.split_at(rank);
        rest = others;
        shape.to_vec()
    };
    let inputs = key.shapes.iter().map(|shape| next(shape.len())).collect();
    let mut known = known.clone();
    for (tensor, shape) in &key.computed {
        let shape = next(shape.len());
        if let Some(ty) = known.computed.get_mut(tensor) {
            *ty = TensorType::new(ty.element, PartialShape::from(shape.as_slice()));
        }
    }
    (inputs, known)
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
