//! Makes a graph that fails as small as it can be while it still fails.

use super::case::{Case, Kind, Port};
use super::fill::Fill;
use super::run::{Failure, compare};
use std::time::{Duration, Instant};
use vinelift::Core;

/// How long that may take.
const PATIENCE: Duration = Duration::from_secs(90);
/// A failure that depends on how threads are scheduled shows in one of this number of runs, or is taken as gone.
const RUNS: usize = 2;
/// Longer texts of models are left out of messages.
const SHORT: usize = 12_000;

/// Runs a graph in all ways.
///
/// # Errors
/// Names the ways that differ and the first element that does, and has the smallest graph that does so, too.
pub fn check(core: &Core, case: &Case) -> Result<(), String> {
    let Err(failure) = compare(core, case, None) else {
        return Ok(());
    };
    let (smaller, last) = minimise(core, case, &failure);
    let (text, _) = smaller.text(&smaller.results);
    let model = if text.len() < SHORT {
        text
    } else {
        String::new()
    };
    Err(format!(
        "family {}\n{}\nmade smaller:\n{smaller}{}\n{model}",
        case.family(),
        failure.message,
        last.as_ref().unwrap_or(&failure).message,
    ))
}

/// The smallest graph found that fails as `case` does, and how.
fn minimise(core: &Core, case: &Case, failure: &Failure) -> (Case, Option<Failure>) {
    let end = Instant::now() + PATIENCE;
    let (mut smallest, mut how) = (case.clone(), None);
    let fails = |case: &Case| {
        (0..RUNS).find_map(|_| {
            let found = compare(core, case, Some(&failure.ways)).err()?;
            (found.kind == failure.kind).then_some(found)
        })
    };
    loop {
        let before = size(&smallest);
        // Every change that helps is followed by others of the graph that it leaves.
        let mut at = 0;
        while Instant::now() < end {
            let Some(candidate) = changes(&smallest).nth(at) else {
                break;
            };
            match fails(&candidate) {
                Some(failure) => (smallest, how) = (candidate, Some(failure)),
                None => at += 1,
            }
        }
        if size(&smallest) >= before || Instant::now() >= end {
            return (smallest, how);
        }
    }
}

/// The operators, and the results, of what is needed.
fn size(case: &Case) -> usize {
    case.values().len() + case.results.len() + case.sinks.len()
}

/// Smaller graphs: with fewer results or variables, with nodes left out, with inputs instead of nodes.
fn changes(case: &Case) -> impl Iterator<Item = Case> {
    let with = |change: &dyn Fn(&mut Case)| {
        let mut changed = case.clone();
        change(&mut changed);
        changed
    };
    let alone = case.results.iter().filter(|_| case.results.len() > 1);
    let alone = alone
        .map(|result| with(&|case| case.results = vec![*result]))
        .collect::<Vec<_>>();
    let fewer = (0..case.results.len()).filter(|_| case.results.len() > 2);
    let fewer = fewer
        .map(|k| {
            with(&|case| {
                case.results.remove(k);
            })
        })
        .collect::<Vec<_>>();
    let forget = (0..case.sinks.len())
        .map(|k| {
            with(&|case| {
                case.sinks.remove(k);
            })
        })
        .collect::<Vec<_>>();
    let mut shorter = Vec::new();
    for port in case.values().into_iter().rev() {
        let node = &case.nodes[port.node];
        let output = &node.outputs[port.output];
        for input in &node.inputs {
            if case.nodes[input.node].outputs[input.output] == *output {
                shorter.push(with(&|case| replace(case, port, *input)));
            }
        }
        let is_result = case.results.contains(&port);
        if !is_result && node.outputs.len() == 1 {
            shorter.push(with(&|case| {
                let fill = if case.nodes[port.node].outputs[0].0.is_float() {
                    Fill::Numbers(1.0)
                } else {
                    Fill::Integers { low: 0, high: 1 }
                };
                case.nodes[port.node].kind = Kind::Parameter(fill);
                case.nodes[port.node].inputs.clear();
            }));
        }
    }
    // A change that leaves all as it is would be tried for ever.
    let before = size(case);
    let all = [alone, fewer, forget, shorter].into_iter().flatten();
    all.filter(move |changed| size(changed) < before)
}

/// Has all that use `port` use `instead`.
fn replace(case: &mut Case, port: Port, instead: Port) {
    let users = case
        .nodes
        .iter_mut()
        .flat_map(|node| node.inputs.iter_mut());
    for used in users.chain(&mut case.results) {
        if *used == port {
            *used = instead;
        }
    }
    // An input or a constant as a result would say nothing.
    let nodes = &case.nodes;
    let operators = |port: &Port| matches!(nodes[port.node].kind, Kind::Operator { .. });
    case.results.retain(operators);
}

#[cfg(test)]
mod tests {
    use super::{changes, check, size};
    use crate::big_graphs::{Choices, grow};
    use vinelift::Core;

    #[test]
    fn every_change_makes_a_graph_smaller() {
        let case = grow(&mut Choices::of_seed(5));
        assert!(changes(&case).count() > 0);
        assert!(changes(&case).all(|changed| size(&changed) < size(&case)));
    }
    #[test]
    fn what_fails_is_found_and_made_smaller() {
        let mut case = grow(&mut Choices::of_seed(1));
        let port = case.results[0];
        case.nodes[port.node].outputs[port.output].1.push(7);
        let text = check(&Core::new().unwrap(), &case).unwrap_err();
        let (_, smaller) = text.split_once("made smaller:").unwrap();
        let shape = format!("expected {}", case.nodes[port.node].outputs[port.output].0);
        assert!(smaller.contains(&shape), "{text}");
        assert_eq!(smaller.matches("\nresult ").count(), 1, "{text}");
    }
}
