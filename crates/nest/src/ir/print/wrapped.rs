//! The text of a stage for readers, by short lines.
//!
//! ```text
//! for i<8:
//!   let $1 = (x[i] - mean[0])
//!   out[i] = ($1 * $1)
//! ```
//!
//! A scalar that is used more than once has a name, and so have the parts of a long one. A name starts with `$`, which no
//! unquoted name of a buffer does. A long fold has the names of its body inside it:
//!
//! ```text
//!   let $1 = add[j<64; 0.0]:
//!     let $2 = …
//!     ($2 * w[j])
//! ```

use super::{Printer, from_fn, tree_size};
use crate::ir::{Kind, Nest, Scalar, Stage};
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt::{self, Write};

/// A stage of fewer characters is one line.
const LINE: usize = 100;
/// In a stage of several lines, a scalar of more characters than this gets a name, so that one made of two fits on a line.
const PART: usize = 48;
/// Shared scalars of as many terms get a name: shorter ones are read as fast as their names.
const SHARED_TERMS: usize = 4;
/// Scalars of more terms than this are not looked at for their length: their text would be too long.
const MOST_TERMS: usize = 200;

impl Nest {
    /// The text of a stage of this nest by short lines, without its layers and without a line break at the end.
    pub fn wrapped_stage(&self, stage: &Stage) -> String {
        let printer = Printer::new(self);
        let mut sizes = FxHashMap::default();
        if tree_size(&stage.value, &mut sizes) <= MOST_TERMS {
            let line = from_fn(|f| printer.stage(f, stage)).to_string();
            if line.chars().count() <= LINE {
                return line;
            }
        }
        let mut text = Wrapped {
            printer: Printer::new(self),
            sizes,
            names: 0,
            lines: Vec::new(),
        };
        let loops = from_fn(|f| text.printer.loops(f, stage)).to_string();
        text.lines.push(loops);
        // The coordinates are part of the last line, so their parts are named before it, too.
        for index in &stage.at {
            text.name_parts(index, 1);
        }
        text.name_parts(&stage.value, 1);
        let assigned = from_fn(|f| text.printer.assigned(f, stage)).to_string();
        text.last(&assigned, &stage.value, 1);
        text.lines.join("\n")
    }
}

/// The lines of a stage so far.
struct Wrapped<'a> {
    printer: Printer<'a>,
    /// The terms of scalars, written out.
    sizes: FxHashMap<usize, usize>,
    /// How many names there are so far.
    names: usize,
    lines: Vec<String>,
}

impl Wrapped<'_> {
    /// Adds a line for each part of `root` that gets a name. Bodies of folds are scopes of their own.
    fn name_parts(&mut self, root: &Scalar, depth: usize) {
        let (order, uses) = in_scope(root);
        for x in order {
            let address = x.address();
            let is_named = self.printer.named.borrow().contains_key(&address);
            if address == root.address() || is_named {
                continue;
            }
            let terms = tree_size(x, &mut self.sizes);
            let is_shared = uses[&address] > 1 && terms >= SHARED_TERMS;
            if !is_shared && self.is_short(x) {
                continue;
            }
            self.names += 1;
            let name = format!("${}", self.names);
            self.last(&format!("let {name} = "), x, depth);
            self.printer.named.borrow_mut().insert(address, name);
        }
    }

    /// Adds the line that starts with `start` and ends with a scalar whose parts have names; of a long fold, its body
    /// follows on lines of its own.
    fn last(&mut self, start: &str, x: &Scalar, depth: usize) {
        let indent = "  ".repeat(depth);
        match x.kind() {
            Kind::Reduce { body, .. } if !self.is_short(body) => {
                let fold = from_fn(|f| self.printer.fold(f, x)).to_string();
                self.lines.push(format!("{indent}{start}{fold}:"));
                let outside = self.printer.named.borrow().clone();
                self.name_parts(body, depth + 1);
                self.last("", body, depth + 1);
                // Names of the body mean nothing outside it.
                *self.printer.named.borrow_mut() = outside;
            }
            _ => {
                let text = from_fn(|f| self.printer.written_out(f, x)).to_string();
                self.lines.push(format!("{indent}{start}{text}"));
            }
        }
    }

    /// Whether the text of `x`, with the names that its parts have, is short. Parts come before what is made of them:
    /// what is not short has a name by then, unless it is in the body of a fold.
    fn is_short(&self, x: &Scalar) -> bool {
        let mut left = Room(PART);
        write!(left, "{}", from_fn(|f| self.printer.scalar(f, x))).is_ok()
    }
}

/// A writer that takes as many more characters as this number; more are an error.
struct Room(usize);

impl Write for Room {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let left = self.0.checked_sub(text.chars().count());
        self.0 = left.ok_or(fmt::Error)?;
        Ok(())
    }
}

/// The different scalars of `root`, operands first, without the bodies of folds; and how many places use each.
fn in_scope(root: &Scalar) -> (Vec<&Scalar>, FxHashMap<usize, usize>) {
    let mut uses: FxHashMap<usize, usize> = FxHashMap::default();
    let (mut order, mut seen) = (Vec::new(), FxHashSet::default());
    let mut open = vec![(root, false)];
    while let Some((x, is_done)) = open.pop() {
        if is_done {
            order.push(x);
            continue;
        }
        *uses.entry(x.address()).or_default() += 1;
        if !seen.insert(x.address()) {
            continue;
        }
        open.push((x, true));
        let children: Vec<&Scalar> = match x.kind() {
            Kind::Reduce { init, .. } => vec![init],
            _ => x.children().collect(),
        };
        open.extend(children.into_iter().rev().map(|child| (child, false)));
    }
    (order, uses)
}

#[cfg(test)]
mod tests {
    use crate::build::*;
    use crate::ir::{Binary, Nest, Role, Scalar};
    use vinelift_tensor::ElementType::F32;

    #[test]
    fn short_stages_are_one_line() {
        let mut nest = Nest::new();
        let x = nest.buffer("x", F32, &[8], Role::Input);
        let y = nest.buffer("y", F32, &[8], Role::Output);
        nest.define(vec![], y, |nest, at| {
            let x = nest.load(x, at.to_vec());
            x.clone() * x
        });
        let text = nest.wrapped_stage(&nest.stages[0]);
        assert_eq!(text, "for i<8: y[i] = (x[i] * x[i])");
    }

    /// A variance: the difference is used twice, in the body of a fold.
    #[test]
    fn what_is_shared_or_long_has_a_name() {
        let mut nest = Nest::new();
        let data = nest.buffer("the_data_of_the_layer", F32, &[4, 64], Role::Input);
        let mean = nest.buffer("the_mean_of_the_layer", F32, &[4], Role::Input);
        let out = nest.buffer("variance", F32, &[4], Role::Output);
        nest.define(vec![], out, |nest, at| {
            let k = nest.axis(64);
            let x = nest.load(data, vec![at[0].clone(), Scalar::axis(k.id)]);
            let d = x - nest.load(mean, at.to_vec());
            let sum = Scalar::reduce(Binary::Add, vec![k], zero(F32), d.clone() * d);
            let mean = nest.load(mean, at.to_vec());
            (sum * (1.0 / 64.0)).exp() + mean
        });
        let text = nest.wrapped_stage(&nest.stages[0]);
        let want = "\
for i<4:
  let $1 = add[j<64; 0.0]:
    let $2 = (the_data_of_the_layer[i, j] - the_mean_of_the_layer[i])
    ($2 * $2)
  variance[i] = (exp(($1 * 0.015625)) + the_mean_of_the_layer[i])";
        assert_eq!(text, want);
    }

    /// Written out, it would have 2⁶⁴ terms.
    #[test]
    fn sharing_keeps_the_text_short() {
        let mut nest = Nest::new();
        let x = nest.buffer("x", F32, &[8], Role::Input);
        let y = nest.buffer("y", F32, &[8], Role::Output);
        nest.define(vec![], y, |nest, at| {
            let start = nest.load(x, at.to_vec()).exp();
            (0..64).fold(start, |x, _| x.clone() * x)
        });
        let text = nest.wrapped_stage(&nest.stages[0]);
        assert!(text.lines().count() < 70, "{text}");
        assert!(
            text.ends_with("* $62)") || text.ends_with("* $63)"),
            "{text}"
        );
    }
}
