//! Nests with symbols: code that is made once, and run at many numbers.

use super::{COMPILER, Outcome, reference, run_code, same, widths};
use std::collections::{BTreeSet, HashMap};
use vinelift_codegen::{Code, Options, Vectors};
use vinelift_nest::{Axis, Kind, Nest, Scalar, Wrap, legalize, verify};
use vinelift_tensor::{Extent, Formula, Symbol};

/// The example value of every symbol; a run may have any other.
const EXAMPLE: usize = 37;

/// The code of a nest with symbols, by vectors of each width.
pub(crate) fn compile_all(nest: &Nest) -> Vec<(Vectors, Code)> {
    let compile = |vectors| {
        let options = Options {
            vectors,
            ..Options::default()
        };
        let code = COMPILER.compile(&[nest], &options);
        (vectors, code.unwrap_or_else(|e| panic!("{e}\n{nest}")))
    };
    widths().map(compile).collect()
}

/// Runs code for `bound`, which is the nest that it is of where the symbols have `values`.
pub(crate) fn run_at(code: &Code, bound: &Nest, values: &[usize], inputs: &[Vec<u8>]) -> Outcome {
    let number = |extent: &Extent| i64::try_from(extent.at(values).unwrap()).unwrap();
    let numbers: Vec<i64> = code.extents(0).iter().map(number).collect();
    run_code(bound, code, &numbers, inputs)
}

/// Compares outcomes: of faults that, of others the bytes.
pub(crate) fn assert_same(what: &str, nest: &Nest, found: &Outcome, want: &Outcome) {
    let faults_apart = vinelift_nest::ParallelChunks::of(nest).dim.is_some();
    match faults_apart {
        true => assert_eq!(found.1.is_ok(), want.1.is_ok(), "{what}\n{nest}"),
        false => assert_eq!(found.1, want.1, "{what}\n{nest}"),
    }
    if want.1.is_err() {
        return;
    }
    for (b, (found, want)) in nest.buffers.iter().zip(found.0.iter().zip(&want.0)) {
        assert!(
            same(b.ty, found, want),
            "`{}` {what} is\n{found:?}, else\n{want:?}\n{nest}",
            b.name
        );
    }
}

/// Compiles a nest with symbols once, and compares it with the interpreter at each of these values.
pub(crate) fn check(
    nest: &Nest,
    all_values: &[Vec<usize>],
    inputs: impl Fn(&Nest) -> Vec<Vec<u8>>,
) {
    assert!(nest.is_symbolic(), "{nest}");
    let codes = compile_all(nest);
    for values in all_values {
        let Some(bound) = nest.bound_to(values) else {
            continue;
        };
        let inputs = inputs(&bound);
        let want = reference(&bound, &inputs);
        for (vectors, code) in &codes {
            let found = run_at(code, &bound, values, &inputs);
            assert_same(
                &format!("at {values:?} by {vectors:?}"),
                &bound,
                &found,
                &want,
            );
        }
    }
}

/// The extents of a nest to put symbols in place of: all of them, or one of the two largest.
pub(crate) fn choices(nest: &Nest) -> Vec<Vec<usize>> {
    let extents = extents_of(nest);
    let all: Vec<usize> = extents.iter().copied().take(200).collect();
    let one = extents.iter().rev().take(2).map(|n| vec![*n]);
    let choices = std::iter::once(all).chain(one);
    choices.filter(|numbers| !numbers.is_empty()).collect()
}

/// A nest with symbols in place of some of its extents.
pub(crate) struct Variant {
    /// The values of the symbols at which it is the nest.
    numbers: Vec<usize>,
    codes: Vec<(Vectors, Code)>,
}

impl Variant {
    /// `None` if what is proven of the nest holds for these numbers alone.
    pub(crate) fn of(nest: &Nest, numbers: Vec<usize>) -> Option<Variant> {
        let symbolic = with_symbols(nest, &numbers);
        if verify(&symbolic).is_err() || verify(&legalize(&symbolic)).is_err() {
            return None;
        }
        let codes = compile_all(&symbolic);
        Some(Variant { numbers, codes })
    }

    /// Runs the code for all values of the symbols with the numbers of `nest`, and compares the outcome with `want`.
    pub(crate) fn compare(&self, nest: &Nest, inputs: &[Vec<u8>], want: &Outcome) {
        for (vectors, code) in &self.codes {
            let found = run_at(code, nest, &self.numbers, inputs);
            let what = format!("for all {:?} by {vectors:?}", self.numbers);
            assert_same(&what, nest, &found, want);
        }
    }
}

/// The extents that may have symbols.
fn extents_of(nest: &Nest) -> BTreeSet<usize> {
    let shapes = nest.buffers.iter().flat_map(|b| b.shape.clone());
    let axes = nest.stages.iter().flat_map(|s| s.domain.clone());
    let all = shapes.chain(axes.map(|axis| axis.extent));
    let numbers = all.filter_map(Extent::number);
    numbers.filter(|n| Extent::may_be(*n)).collect()
}

/// The nest with a symbol in place of each of these numbers wherever it is an extent.
fn with_symbols(nest: &Nest, numbers: &[usize]) -> Nest {
    let symbol = |extent: Extent| match numbers.iter().position(|n| extent == *n) {
        Some(k) => Extent::new(Formula::symbol(Symbol::new(k).unwrap()), EXAMPLE),
        None => extent,
    };
    let mut nest = nest.clone();
    nest.symbols = vec![EXAMPLE; numbers.len()];
    for buffer in &mut nest.buffers {
        if !matches!(buffer.role, vinelift_nest::Role::Table(_)) {
            buffer.shape.iter_mut().for_each(|n| *n = symbol(*n));
        }
    }
    let mut known = HashMap::new();
    for stage in &mut nest.stages {
        stage
            .domain
            .iter_mut()
            .for_each(|a| a.extent = symbol(a.extent));
        for x in stage.at.iter_mut().chain([&mut stage.value]) {
            *x = rewritten(x, &symbol, &mut known);
        }
    }
    nest
}

fn rewritten(
    x: &Scalar,
    symbol: &dyn Fn(Extent) -> Extent,
    known: &mut HashMap<usize, (Scalar, Scalar)>,
) -> Scalar {
    if let Some((_, known)) = known.get(&x.address()) {
        return known.clone();
    }
    let new = x.with_children(|child| rewritten(child, symbol, known));
    let new = match new.kind() {
        Kind::Wrap(w) => Scalar::wrap(Wrap {
            extent: symbol(w.extent),
            ..Wrap::clone(w)
        }),
        Kind::Reduce {
            op,
            axes,
            init,
            body,
        } => {
            let axes = axes.iter().map(|axis| Axis {
                extent: symbol(axis.extent),
                ..*axis
            });
            Scalar::reduce(*op, axes.collect(), init.clone(), body.clone())
        }
        _ => new,
    };
    known.insert(x.address(), (x.clone(), new.clone()));
    new
}
