//! Runs a graph in the ways that must give the same bits.

use super::case::{Case, Port, Set};
use super::shapes;
use crate::different_bits;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use vinelift::{Config, Core, Error, IndexPolicy, Level, Model, PartialShape, Tensor, Vectors};

/// Graphs of no more operations are interpreted, too.
const FEW: usize = 400_000;

/// How a graph does not do what it should.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) kind: Kind,
    /// The ways in which it does not.
    pub(super) ways: Vec<&'static str>,
    pub(super) message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The model is not accepted.
    Refused,
    /// The types or shapes of outputs are not those that the specification gives.
    Shapes,
    /// An inference fails.
    Fails,
    /// Something else comes out than before, or than in another way.
    Differs,
}

/// A configuration, and what is inferred with it.
struct Way {
    name: &'static str,
    config: Config,
    sequences: Vec<Sequence>,
    /// Whether all values are results.
    all: bool,
    /// Whether all dims of the inputs are dynamic, and others come first.
    dynamic: bool,
}

/// Inferences of one request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sequence {
    /// The first inputs, the second, the first again.
    Long,
    /// The first two of [`Sequence::Long`].
    Short,
    /// The first of it.
    One,
    /// Inputs with bad indices, and, unless something of these may be kept, the first inputs after them.
    Bad,
}

impl Sequence {
    fn sets(self, case: &Case) -> &'static [Set] {
        match self {
            Sequence::Long => &[Set::First, Set::Second, Set::First],
            Sequence::Short => &[Set::First, Set::Second],
            Sequence::One => &[Set::First],
            Sequence::Bad if case.sinks.is_empty() => &[Set::Bad, Set::First],
            Sequence::Bad => &[Set::Bad],
        }
    }
}

const BASE: &str = "scheduled, 1 thread";

/// All ways. The others are compared with the first of them; if indices are bad, or all values are results, with
/// the first of those.
fn ways(case: &Case) -> Vec<Way> {
    use IndexPolicy::{Error, Spec, Zero};
    use Sequence::{Bad, Long, One, Short};
    // Bad indices are tried with one of the policies.
    let bad = case
        .has_indices()
        .then(|| [Spec, Error, Zero][(case.seed % 3) as usize]);
    let way = |name, level, threads, vectors, index_policy, sequence| Way {
        name,
        config: Config {
            level,
            vectors,
            index_policy,
            threads: NonZeroUsize::new(threads),
            ..Config::default()
        },
        sequences: [Some(sequence), (bad == Some(index_policy)).then_some(Bad)]
            .into_iter()
            .flatten()
            .collect(),
        all: false,
        dynamic: false,
    };
    let (scheduled, compiled, widest) = (Level::Scheduled, Level::Compiled, Vectors::Widest);
    let every = |way| Way {
        all: true,
        sequences: vec![One],
        ..way
    };
    let mut ways = vec![
        way(BASE, scheduled, 1, widest, Spec, Long),
        way("scheduled, 2 threads", scheduled, 2, widest, Spec, Short),
        way("scheduled, 5 threads", scheduled, 5, widest, Spec, One),
        way("compiled, 1 thread", compiled, 1, widest, Spec, Short),
        way(
            "vectors of 256 bits, 2 threads, policy error",
            scheduled,
            2,
            Vectors::Bits256,
            Error,
            One,
        ),
        way(
            "vectors of 128 bits, 1 thread, policy zero",
            scheduled,
            1,
            Vectors::Bits128,
            Zero,
            One,
        ),
        every(way(
            "all values as results, 2 threads",
            scheduled,
            2,
            widest,
            Spec,
            One,
        )),
        every(way(
            "all values as results, compiled",
            compiled,
            1,
            widest,
            Spec,
            One,
        )),
    ];
    // A plan that was made for other shapes is bound to these.
    let dynamic = |way| Way {
        dynamic: true,
        ..way
    };
    let shapes = [
        way(
            "other shapes first, 2 threads",
            scheduled,
            2,
            widest,
            Spec,
            Short,
        ),
        way(
            "other shapes first, compiled",
            compiled,
            1,
            Vectors::Bits256,
            Spec,
            One,
        ),
    ];
    ways.extend(shapes.map(dynamic));
    if case.work <= FEW {
        ways.push(way("interpreted", Level::Interpreted, 1, widest, Spec, One));
    }
    if let Some(policy) = bad.filter(|policy| *policy != Spec) {
        let only = |way| Way {
            sequences: vec![Bad],
            ..way
        };
        ways.push(only(way(
            "that policy, 5 threads",
            scheduled,
            5,
            widest,
            policy,
            Bad,
        )));
        ways.push(only(way(
            "that policy, compiled",
            compiled,
            1,
            widest,
            policy,
            Bad,
        )));
    }
    ways
}

/// The outputs of an inference, or the error with which it ends.
pub(super) type Outcome = Result<Vec<Tensor>, String>;

/// The reference for other ways: the way that was the first of its kind, and its results.
type Reference = Option<(&'static str, Vec<Outcome>)>;

/// Runs `case` in all ways, or in those called `only`, then at other shapes, and says what is not as it should be.
pub(super) fn compare(
    core: &Core,
    case: &Case,
    only: Option<&[&'static str]>,
) -> Result<(), Failure> {
    let values = case.values();
    let inputs = [Set::First, Set::Second, Set::Bad].map(|set| case.inputs(&case.results, set));
    let (mut base, mut bad, mut all): (Reference, Reference, Reference) = (None, None, None);
    let mut found = Failure {
        kind: Kind::Differs,
        ways: Vec::new(),
        message: String::new(),
    };
    for way in ways(case) {
        let name = way.name;
        if name != BASE && only.is_some_and(|only| !only.contains(&name)) {
            continue;
        }
        let fail = |kind, message| Failure {
            kind,
            ways: vec![name],
            message: format!("{name}: {message}"),
        };
        let results = if way.all { &values } else { &case.results };
        let compiled = guarded(|| compile(core, case, results, &way));
        let compiled = compiled.map_err(|e| fail(Kind::Refused, e))?;
        for &sequence in &way.sequences {
            let is_base = name == BASE && sequence == Sequence::Long;
            let primer = way.dynamic.then(|| primer(case, &inputs[0])).flatten();
            let primer = primer.filter(|primer| are_results_small(core, case, primer));
            let outcomes = infer(&compiled, sequence.sets(case), &inputs, primer, is_base);
            if is_base {
                sound(case, &outcomes).map_err(|(kind, message)| fail(kind, message))?;
            }
            let mut differs = |reference: &Reference, found_here: &[Outcome]| {
                if let Some((with, want)) = reference
                    && let Some(text) = different(found_here, want)
                {
                    found.message += &format!("{name}, unlike {with}: {text}\n");
                    found.ways.extend([name, with]);
                }
            };
            if way.all {
                let results = |outputs: Vec<Tensor>| some_of(&outputs, &values, &case.results);
                let results = |outcome: &Outcome| outcome.clone().map(results);
                let results: Vec<Outcome> = outcomes.iter().map(results).collect();
                differs(&base, &results);
            }
            let reference = match sequence {
                Sequence::Bad => &mut bad,
                _ if way.all => &mut all,
                _ => &mut base,
            };
            differs(reference, &outcomes);
            if reference.is_none() {
                *reference = Some((name, outcomes));
            }
        }
    }
    if found.ways.is_empty() {
        shapes::compare(core, case, only)
    } else {
        Err(found)
    }
}

fn compile(
    core: &Core,
    case: &Case,
    results: &[Port],
    way: &Way,
) -> Result<vinelift::CompiledModel, String> {
    let (text, weights) = case.text(results);
    let model = core.read_model_from_memory(text.as_bytes(), weights);
    let model = if way.dynamic {
        model.and_then(any_shapes)
    } else {
        model
    };
    let compiled = model.and_then(|model| core.compile_model_with(&model, way.config.clone()));
    compiled.map_err(|e| e.to_string())
}

/// The model with all dims of its inputs dynamic.
pub(super) fn any_shapes(model: Model) -> Result<Model, Error> {
    let ranks = model.inputs().into_iter().map(|port| port.shape.rank());
    let shapes = ranks.map(|rank| rank.map_or(PartialShape::DYNAMIC, PartialShape::any_of_rank));
    model.reshape(&shapes.enumerate().collect::<Vec<_>>())
}

/// The most bytes of a result at other extents than those that a graph was grown with.
const MOST_BYTES: usize = 256 << 20;

/// Whether results are small where inputs are like these: with fewer parts an index of GatherND finds larger slices.
pub(super) fn are_results_small(core: &Core, case: &Case, inputs: &[Tensor]) -> bool {
    let (text, weights) = case.text(&case.results);
    let shapes = inputs.iter().map(|t| PartialShape::from(t.shape()));
    let shapes: Vec<(usize, PartialShape)> = shapes.enumerate().collect();
    let model = core.read_model_from_memory(text.as_bytes(), weights);
    let results = model
        .and_then(|model| model.reshape(&shapes))
        .and_then(|m| m.outputs());
    let is_small = |port: &vinelift::Port| {
        let shape = port.shape.to_static().unwrap_or_default();
        let mut extents = shape.iter();
        let bytes = extents.try_fold(size_of::<f64>(), |bytes, n| bytes.checked_mul(*n));
        bytes.is_some_and(|bytes| bytes <= MOST_BYTES)
    };
    // Shapes that are refused have no results.
    results.is_err() || results.is_ok_and(|results| results.iter().all(is_small))
}

/// The extents of inputs that may be others, each once.
pub(super) fn extents(inputs: &[Tensor]) -> Vec<usize> {
    let mut extents: Vec<usize> = inputs.iter().flat_map(Tensor::shape).copied().collect();
    extents.sort_unstable();
    extents.dedup();
    extents.retain(|n| (2..2000).contains(n));
    extents
}

/// Inputs of zeros in which one extent is another one wherever it occurs; `None` if there is no such extent.
fn primer(case: &Case, inputs: &[Tensor]) -> Option<Vec<Tensor>> {
    let extents = extents(inputs);
    let from = *extents.get(case.seed as usize % extents.len().max(1))?;
    let to = [from + 1, 2 * from, from - 1][case.seed as usize / 7 % 3];
    let zeros = inputs.iter().map(|tensor| {
        let extent = |n: &usize| if *n == from { to } else { *n };
        let shape: Vec<usize> = tensor.shape().iter().map(extent).collect();
        Tensor::zeros(tensor.element_type(), &shape).ok()
    });
    zeros.collect()
}

/// The results of a request for these inputs, one after the other, when it has inferred `primer`, whatever comes of that;
/// `again` has it then forget its variables, and infer the first once more.
fn infer(
    compiled: &vinelift::CompiledModel,
    sets: &[Set],
    inputs: &[Vec<Tensor>; 3],
    primer: Option<Vec<Tensor>>,
    again: bool,
) -> Vec<Outcome> {
    let mut request = compiled.create_request();
    if let Some(primer) = primer {
        let set = |(k, tensor)| request.set_input_at(k, tensor);
        let is_set = primer.into_iter().enumerate().try_for_each(set);
        let _ = is_set.and_then(|()| request.infer());
        request.reset();
    }
    let mut outcomes = Vec::new();
    let more = again.then_some(&sets[0]);
    for (k, set) in sets.iter().chain(more).enumerate() {
        if k == sets.len() {
            request.reset();
        }
        outcomes.push(guarded(|| {
            for (position, tensor) in inputs[*set as usize].iter().enumerate() {
                request
                    .set_input_at(position, tensor.clone())
                    .map_err(|e| e.to_string())?;
            }
            request.infer().map_err(|e| e.to_string())?;
            Ok(request.outputs().to_vec())
        }));
    }
    outcomes
}

/// A panic is an error like others here, so that what leads to it can be made smaller.
pub(super) fn guarded<T>(run: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        Err(format!(
            "panicked: {}",
            text.unwrap_or("with something that is no text")
        ))
    })
}

/// Whether the outputs have the types and shapes that they must have, and are the same again where inputs are.
fn sound(case: &Case, outcomes: &[Outcome]) -> Result<(), (Kind, String)> {
    for (k, outcome) in outcomes.iter().enumerate() {
        // The second inputs of an unknown batch need not fit.
        if let Err(e) = outcome
            && (k != 1 || case.batch.is_none())
        {
            return Err((Kind::Fails, format!("inference {k}: {e}")));
        }
    }
    let [first, .., third, again] = outcomes else {
        return Err((Kind::Fails, "not all inferences ended".to_owned()));
    };
    for (port, tensor) in case.results.iter().zip(first.iter().flatten()) {
        let (ty, shape) = &case.nodes[port.node].outputs[port.output];
        if tensor.element_type() != *ty || tensor.shape() != shape {
            let (found, dims) = (tensor.element_type(), tensor.shape());
            let message = format!(
                "%{}.{} is {found}{dims:?}, expected {ty}{shape:?}",
                port.node, port.output
            );
            return Err((Kind::Shapes, message));
        }
    }
    // The values of variables make the third inference another one.
    let third = Some(third).filter(|_| case.sinks.is_empty());
    for outcome in [Some(again), third].into_iter().flatten() {
        if let Some(text) = different(std::slice::from_ref(outcome), std::slice::from_ref(first)) {
            return Err((Kind::Differs, format!("the same inputs again: {text}")));
        }
    }
    Ok(())
}

/// How `found` differs from the beginning of `want`.
fn different(found: &[Outcome], want: &[Outcome]) -> Option<String> {
    found
        .iter()
        .zip(want)
        .enumerate()
        .find_map(|(k, pair)| match pair {
            (Ok(found), Ok(want)) => {
                let mut pairs = found.iter().zip(want).enumerate();
                let text = pairs.find_map(|(n, (a, b))| {
                    Some(format!("output {n}: {}", different_bits(a, b)?))
                })?;
                Some(format!("inference {k}, {text}"))
            }
            (Err(found), Err(want)) => {
                (found != want).then(|| format!("inference {k}: {found}, want {want}"))
            }
            (Ok(_), Err(want)) => Some(format!("inference {k} ends well, want {want}")),
            (Err(found), Ok(_)) => Some(format!("inference {k}: {found}")),
        })
}

/// Of the outputs for `all`, those for `some`.
fn some_of(outputs: &[Tensor], all: &[Port], some: &[Port]) -> Vec<Tensor> {
    let at = |port: &Port| all.iter().position(|p| p == port).expect("a port of these");
    some.iter().map(|port| outputs[at(port)].clone()).collect()
}
