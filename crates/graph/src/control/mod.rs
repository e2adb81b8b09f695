//! Nodes that run sub-graphs: `If`, `Loop` and `TensorIterator`.
//!
//! ```text
//! If:             outputs = then(inputs) or else(inputs)
//! Loop, Iterator: for i in 0..n: results = body(slice i of inputs, inputs, results of i-1, i)
//!                 outputs = the last results, or all of them side by side along an axis
//! ```
//! Specifications: If-8, Loop-5, TensorIterator-1. What they leave open: a slice goes from `start` to
//! `end`, both included and counted from the end if negative; slices that do not fit whole are left
//! out; an output that no iteration has given is the start value of what it is carried to, or empty
//! along the axis, or else an error. A loop that nothing bounds ends in an error after 2^31 iterations.

mod collected;
mod error;
mod parts;
mod run;

pub use error::ControlError;
pub use run::Body;

use vinelift_ops::TensorType;

/// A node that runs sub-graphs, by positions: of its inputs and outputs among its ports, of a body's
/// parameters and results in that body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Control {
    /// One sub-graph or the other, by the first input.
    If {
        /// Run if it is true.
        then: Branch,
        /// Run if it is false.
        otherwise: Branch,
    },
    /// One sub-graph, again and again.
    Repeat(Repeat),
}

/// How a branch hangs in its `If`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    /// For each parameter of the body, the input that it gets.
    pub(crate) feeds: Vec<usize>,
    /// For each output, the result of the body that it is.
    pub(crate) outputs: Vec<usize>,
}

/// How a body hangs in its loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repeat {
    /// Whether the first two inputs are the most iterations and the condition of the first.
    pub(crate) counted: bool,
    /// For each parameter of the body, where its value comes from.
    pub(crate) feeds: Vec<Feed>,
    /// For each output, what it is.
    pub(crate) outputs: Vec<Collect>,
    /// The result that says whether there is another iteration.
    pub(crate) condition: Option<usize>,
}

impl Repeat {
    /// The inputs that are sliced.
    pub(crate) fn slices(&self) -> impl Iterator<Item = (usize, &Slices)> {
        self.feeds.iter().filter_map(|feed| match feed {
            Feed::Slice(i, slices) => Some((*i, slices)),
            _ => None,
        })
    }

    /// The parameters of the body that carry a result over, with that result, where nothing else becomes of it but
    /// that it is an output after the last iteration.
    pub fn carries(&self) -> impl Iterator<Item = (usize, usize)> {
        let feeds = self.feeds.iter().enumerate();
        let carried = feeds.filter_map(|(parameter, feed)| match feed {
            Feed::Carried { result, .. } => Some((parameter, *result)),
            _ => None,
        });
        carried.filter(|(parameter, result)| {
            let is_collected = |c: &Collect| matches!(c, Collect::All(all, _) if all == result);
            let is_condition = self.condition == Some(*result);
            let is_only = self.feeds.iter().enumerate().all(|(k, feed)| {
                let is_it = matches!(feed, Feed::Carried { result: other, .. } if other == result);
                !is_it || k == *parameter
            });
            is_only && !is_condition && !self.outputs.iter().any(is_collected)
        })
    }

    /// The parameter that a result is carried to.
    pub(crate) fn carried(&self, from: usize) -> Option<usize> {
        let to = |f: &Feed| matches!(f, Feed::Carried { result, .. } if *result == from);
        self.feeds.iter().position(to)
    }
}

/// The shape of the number of an iteration, of which a body declares the type: `[1]` if that has a rank of 1, else `[]`.
pub(crate) fn iteration_shape(declared: &TensorType) -> &'static [usize] {
    match declared.shape.rank() {
        Some(1) => &[1],
        _ => &[],
    }
}

/// Where the value of a body's parameter comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Feed {
    /// This input, in every iteration.
    Whole(usize),
    /// A slice of this input.
    Slice(usize, Slices),
    /// This input first, then what this result was in the iteration before.
    Carried { first: usize, result: usize },
    /// The number of the iteration.
    Iteration,
}

/// The results of the body that an output of a loop is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Collect {
    /// This result of the last iteration.
    Last(usize),
    /// This result of all iterations, side by side.
    All(usize, Slices),
}

impl Collect {
    pub(crate) fn result(&self) -> usize {
        match self {
            Collect::Last(result) | Collect::All(result, _) => *result,
        }
    }
}

/// How a tensor is divided along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slices {
    pub(crate) axis: i64,
    pub(crate) start: i64,
    pub(crate) end: i64,
    pub(crate) stride: i64,
    pub(crate) part: usize,
}

impl Slices {
    /// The axis counted from the front, if the rank has it.
    pub(crate) fn axis(&self, rank: usize) -> Option<usize> {
        let rank = i64::try_from(rank).ok()?;
        let axis = if self.axis < 0 {
            self.axis + rank
        } else {
            self.axis
        };
        (0..rank).contains(&axis).then_some(axis as usize)
    }

    /// Whether they go from one end of a dim to the other, whatever its extent is.
    pub(crate) fn span_all(&self) -> bool {
        let ends = if self.stride > 0 { (0, -1) } else { (-1, 0) };
        (self.start, self.end) == ends
    }

    /// How many slices a dim of `extent` has.
    pub(crate) fn count(&self, extent: usize) -> usize {
        let (low, high) = self.range(extent);
        let length = high.saturating_sub(low);
        match length.checked_sub(self.part) {
            Some(rest) => rest / self.stride.unsigned_abs() as usize + 1,
            None => 0,
        }
    }

    /// Where slice `i` of a dim of `extent` starts.
    pub(crate) fn offset(&self, i: usize, extent: usize) -> usize {
        let (low, high) = self.range(extent);
        let steps = i * self.stride.unsigned_abs() as usize;
        if self.stride > 0 {
            low + steps
        } else {
            high - steps - self.part
        }
    }

    /// The elements of a dim of `extent` from the first to after the last.
    pub(crate) fn range(&self, extent: usize) -> (usize, usize) {
        let n = i64::try_from(extent).unwrap_or(i64::MAX);
        let from_front = |i: i64| if i < 0 { i.saturating_add(n) } else { i };
        let (a, b) = (from_front(self.start), from_front(self.end));
        let (low, high) = if self.stride > 0 { (a, b) } else { (b, a) };
        let low = low.clamp(0, n);
        let high = high.saturating_add(1).clamp(low, n);
        (low as usize, high as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The defaults and the backward form of the examples in the specification of TensorIterator-1.
    #[test]
    fn slices_forward_and_backward() {
        let slices = |start, end, stride, part| Slices {
            axis: 0,
            start,
            end,
            stride,
            part,
        };
        let all = |s: Slices, n: usize| (0..s.count(n)).map(|i| s.offset(i, n)).collect::<Vec<_>>();
        assert_eq!(all(slices(0, -1, 1, 1), 4), [0, 1, 2, 3]);
        assert_eq!(all(slices(-1, 0, -1, 1), 4), [3, 2, 1, 0]);
        assert_eq!(all(slices(0, -1, 2, 2), 5), [0, 2]);
        assert_eq!(all(slices(-1, 0, -2, 2), 5), [3, 1]);
        assert_eq!(all(slices(1, -2, 1, 1), 5), [1, 2, 3]);
        assert_eq!(all(slices(0, -1, 1, 3), 5), [0, 1, 2]);
        assert!(all(slices(0, -1, 1, 1), 0).is_empty());
        assert!(all(slices(7, 3, 1, 1), 5).is_empty());
        assert!(all(slices(i64::MIN, i64::MAX, 1, 9), 5).is_empty());
    }
}
