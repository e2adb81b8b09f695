//! Hoisting: where a product has an operand that is made of another product, its other operand is computed before both.
//!
//! > `s = q·k`, `w = softmax(s)`, `v = x·u`, `y = w·v` becomes `v = x·u`, `s = q·k`, `w = softmax(s)`, `y = w·v`
//!
//! The tasks of a product can go on with what is made of its results, and with the product of that, if these follow it. Many
//! files have the layers of `v` just before that of `y`.

use crate::analysis::Contraction;
use crate::ir::{BufferId, Nest, Stage};
use rustc_hash::FxHashSet;

/// The most stages from the first product to the second.
const MOST_STAGES: usize = 64;

/// Hoists the stages between two products that do not depend on the first.
pub fn hoist_operands(nest: &mut Nest, is_constant: &dyn Fn(BufferId) -> bool) {
    let product = |stage: &Stage| {
        let product = Contraction::of(nest, stage)?;
        let operands = [product.left, product.right].map(|factor| factor.tensor.buffer);
        Some(match operands.iter().any(|operand| is_constant(*operand)) {
            true => Product::OfConstant,
            false => Product::Of(operands),
        })
    };
    let mut products: Vec<Option<Product>> = nest.stages.iter().map(product).collect();
    for second in 0..products.len() {
        let Some(Product::Of(operands)) = products[second] else {
            continue;
        };
        let firsts = operands.map(|operand| made_of(&nest.stages, &products, operand, second));
        if let Some(first) = firsts.into_iter().flatten().max() {
            hoist(&mut nest.stages, &mut products, first, second);
        }
    }
}

/// A stage that is a product: with a constant, or of two buffers that are none.
#[derive(Clone, Copy)]
enum Product {
    OfConstant,
    Of([BufferId; 2]),
}

/// The product, of no constant, that the contents of `buffer` before the stage `end` are made of, with no other product between.
fn made_of(
    stages: &[Stage],
    products: &[Option<Product>],
    buffer: BufferId,
    end: usize,
) -> Option<usize> {
    let mut needed = FxHashSet::from_iter([buffer]);
    let mut before = (end.saturating_sub(MOST_STAGES)..end).rev();
    let writer = before.find(|at| {
        let writes = needed.contains(&stages[*at].target);
        if writes && products[*at].is_none() {
            needed.extend(stages[*at].loads());
        }
        writes && products[*at].is_some()
    });
    writer.filter(|at| matches!(products[*at], Some(Product::Of(_))))
}

/// Moves the stages between `first` and `second` that do not depend on `first` before it, if all others of them are code.
fn hoist(
    stages: &mut Vec<Stage>,
    products: &mut Vec<Option<Product>>,
    first: usize,
    second: usize,
) {
    let mut made = FxHashSet::from_iter([stages[first].target]);
    let mut read: FxHashSet<BufferId> = stages[first].loads().into_iter().collect();
    let mut wraps = [stages[first].wraps(), false];
    let (mut stay, mut move_up) = (vec![first], Vec::new());
    for (at, stage) in (first + 1..second).zip(&stages[first + 1..]) {
        let loads = stage.loads();
        let depends = made.contains(&stage.target) || loads.iter().any(|b| made.contains(b));
        wraps[usize::from(!depends)] |= stage.wraps();
        if depends {
            made.insert(stage.target);
            read.extend(loads);
            stay.push(at);
        } else if read.contains(&stage.target) {
            // A stage that stays reads what this one overwrites.
            return;
        } else {
            move_up.push(at);
        }
    }
    let are_code = stay[1..].iter().all(|at| products[*at].is_none());
    let take_turns = stages[first..=second].iter().any(|s| s.group.is_some());
    // Of stages that may fail, the first one does.
    let keeps_errors = wraps != [true; 2];
    if move_up.is_empty() || !are_code || take_turns || !keeps_errors {
        return;
    }
    let order = || move_up.iter().chain(&stay);
    let moved: Vec<Stage> = order().map(|at| stages[*at].clone()).collect();
    stages.splice(first..second, moved);
    let moved: Vec<Option<Product>> = order().map(|at| products[*at]).collect();
    products.splice(first..second, moved);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::verify;
    use crate::parse;

    /// The names of the targets after the pass, where what begins with `u` is constant. `between` is what comes between the products,
    /// which are of 8 rows, 16 columns and 8 points.
    fn targets(between: &str) -> Vec<String> {
        let text = format!(
            "input q: f32[8, 16]
            input k: f32[16, 16]
            input u: f32[16, 32]
            input n: i64[1]
            temporary s: f32[8, 16]
            temporary w: f32[8, 16]
            temporary v: f32[16, 32]
            temporary t: f32[16, 32]
            output y: f32[8, 32]
            for i<8, j<16: s[i, j] = add[l<16; 0.0](term(q[i, l], k[j, l]))
            {between}
            for i<8, j<32: y[i, j] = add[l<16; 0.0](term(w[i, l], v[l, j]))"
        );
        let mut nest = parse(&text).unwrap();
        verify(&nest).unwrap();
        let names: Vec<String> = nest.buffers.iter().map(|b| b.name.clone()).collect();
        let name = |buffer: BufferId| &names[buffer.0 as usize];
        hoist_operands(&mut nest, &|buffer| name(buffer).starts_with('u'));
        verify(&nest).unwrap();
        let targets = nest.stages.iter().map(|stage| name(stage.target).clone());
        targets.collect()
    }

    const WEIGHTS: &str = "for i<8, j<16: w[i, j] = exp(s[i, j])";
    const PROJECTION: &str = "for i<16, j<32: t[i, j] = add[l<16; 0.0](term(k[i, l], u[l, j]))";
    const VALUES: &str = "for i<16, j<32: v[i, j] = (t[i, j] + 1.0)";

    #[test]
    fn values_are_computed_before_scores() {
        let late = format!("{WEIGHTS}\n{PROJECTION}\n{VALUES}");
        assert_eq!(targets(&late), ["t", "v", "s", "w", "y"]);
        let apart = format!("{PROJECTION}\n{WEIGHTS}\n{VALUES}");
        assert_eq!(targets(&apart), ["t", "v", "s", "w", "y"]);
    }

    #[test]
    fn what_depends_on_scores_or_may_fail_first_stays() {
        let of_scores = "for i<16, j<32: v[i, j] = (t[i, j] + s[0, 0])";
        let both = format!("{WEIGHTS}\n{PROJECTION}\n{of_scores}");
        assert_eq!(targets(&both), ["t", "s", "w", "v", "y"]);
        // Another product of the scores is the one that the last is made of.
        let product = "for i<8, j<16: w[i, j] = add[l<16; 0.0](term(s[i, l], k[l, j]))";
        let product = format!("{product}\n{PROJECTION}\n{VALUES}");
        assert_eq!(targets(&product), ["s", "t", "v", "w", "y"]);
        // Only one of two that may fail.
        let chosen = "for i<16, j<32: v[i, j] = t[wrap(n[0], 16), j]";
        let late = format!("{WEIGHTS}\n{PROJECTION}\n{chosen}");
        assert_eq!(targets(&late), ["t", "v", "s", "w", "y"]);
        let weights = "for i<8, j<16: w[i, j] = s[i, wrap(n[0], 16)]";
        let both = format!("{weights}\n{PROJECTION}\n{chosen}");
        assert_eq!(targets(&both), ["s", "w", "t", "v", "y"]);
    }
}
