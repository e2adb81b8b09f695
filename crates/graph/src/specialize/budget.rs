//! Limits on the work that constant folding may do.
//!
//! A value that is not computed while compiling is computed when the model runs, as any other, and is
//! the same. So that shapes which follow from small values are found in any case, those are always
//! computed.
//!
//! Nests are interpreted up to a count of scalars, not of seconds, so that a model has the same plan on every machine. Functions, of
//! which the work is not known beforehand, are evaluated up to a time.

use std::cell::Cell;
use std::time::{Duration, Instant};
use vinelift_ops::{Stop, TensorType};
use vinelift_tensor::{Tensor, element_count};

/// The most points of all loops together that are interpreted, and the most elements of all inputs and
/// outputs together of a function that is evaluated. More than that is left to native code.
const MOST_WORK: usize = 1 << 16;

/// Work that is done whatever has been spent.
pub(super) const SMALL_WORK: usize = 1 << 10;

/// The scalars that are interpreted for all of a model together, each as often as its stage has points: about a second's work.
const SCALARS: usize = 1 << 26;

/// The time for all functions of a model together.
const TIME: Duration = Duration::from_secs(1);

/// The bytes of all values together that functions of a model make.
const BYTES: usize = 1 << 28;

/// The work that is left for a model and its sub-graphs together.
pub(crate) struct Budget<'a> {
    stop: Stop<'a>,
    scalars: Cell<usize>,
    time: Cell<Duration>,
    bytes: Cell<usize>,
}

/// Whether something is to be computed while compiling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Compute,
    /// It is too much for any model.
    TooMuch,
    /// Too much has been spent on others.
    Spent,
}

impl Verdict {
    fn of(work: usize, is_spent: bool) -> Verdict {
        match work {
            0..=SMALL_WORK => Verdict::Compute,
            _ if work > MOST_WORK => Verdict::TooMuch,
            _ if is_spent => Verdict::Spent,
            _ => Verdict::Compute,
        }
    }
}

impl<'a> Budget<'a> {
    pub(crate) fn new(stop: Stop<'a>) -> Budget<'a> {
        Budget {
            stop,
            scalars: Cell::new(SCALARS),
            time: Cell::new(TIME),
            bytes: Cell::new(BYTES),
        }
    }

    /// Whether the caller has cancelled the compilation.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.stop.is_cancelled()
    }

    /// Whether folding interprets stages now whose loops go round `points` times together.
    pub(super) fn of_nest(&self, points: usize) -> Verdict {
        Verdict::of(points, self.scalars.get() == 0)
    }

    /// Whether folding evaluates a function of this [`work`] now.
    pub(super) fn of_function(&self, work: usize) -> Verdict {
        Verdict::of(work, self.time.get().is_zero() || self.bytes.get() == 0)
    }

    /// When to give up a function that is evaluated from now on.
    pub(crate) fn stop(&self) -> Stop<'a> {
        // Even a function with little work by this measure may take long.
        self.stop
            .at(Instant::now() + self.time.get().max(TIME / 10))
    }

    /// Takes `points · scalars` off the scalars that are left: about as many as the interpreter evaluates. `points` counts the
    /// iterations of the stages' loops, `scalars` the nodes of their expressions.
    pub(super) fn spend_on_nest(&self, points: usize, scalars: usize) {
        let spent = points.saturating_mul(scalars);
        self.scalars.set(self.scalars.get().saturating_sub(spent));
    }

    /// Takes off the time since `start`, when a function was begun, and the bytes of what it made.
    pub(super) fn spend_on_function<'t>(
        &self,
        start: Instant,
        made: impl Iterator<Item = &'t Tensor>,
    ) {
        let time = self.time.get().saturating_sub(start.elapsed());
        let bytes = made.fold(self.bytes.get(), |left, tensor| {
            left.saturating_sub(tensor.bytes().len())
        });
        self.time.set(time);
        self.bytes.set(bytes);
    }
}

/// The least work of a function, in elements of its inputs and outputs. An output whose extents
/// depend on the contents of the inputs is made of those.
pub(crate) fn work(inputs: &[Tensor], outputs: &[TensorType]) -> usize {
    let count = |ty: &TensorType| match ty.shape.to_static() {
        Some(shape) => element_count(&shape).unwrap_or(usize::MAX),
        None => 0,
    };
    let inputs = inputs.iter().map(Tensor::element_count);
    let all = inputs.chain(outputs.iter().map(count));
    all.fold(0, usize::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use vinelift_tensor::ElementType;

    #[test]
    fn functions_spend_bytes_and_time() {
        let budget = Budget::new(Stop::NEVER);
        assert_eq!(budget.of_function(MOST_WORK), Verdict::Compute);
        assert_eq!(budget.of_function(MOST_WORK + 1), Verdict::TooMuch);
        let half = Tensor::zeros(ElementType::U8, &[BYTES / 2]).unwrap();
        budget.spend_on_function(Instant::now(), [&half].into_iter());
        assert_eq!(budget.of_function(MOST_WORK), Verdict::Compute);
        budget.spend_on_function(Instant::now(), [&half].into_iter());
        assert_eq!(budget.of_function(MOST_WORK), Verdict::Spent);
        assert_eq!(budget.of_function(SMALL_WORK), Verdict::Compute);

        let budget = Budget::new(Stop::NEVER);
        assert_eq!(budget.stop().go_on(), Ok(()));
        let long_ago = Instant::now().checked_sub(TIME);
        budget.spend_on_function(long_ago.unwrap(), [].into_iter());
        assert_eq!(budget.of_function(SMALL_WORK + 1), Verdict::Spent);
        assert_eq!(budget.of_function(SMALL_WORK), Verdict::Compute);
        assert_eq!(budget.of_function(MOST_WORK + 1), Verdict::TooMuch);
        assert_eq!(budget.of_nest(MOST_WORK), Verdict::Compute);
    }

    #[test]
    fn nests_spend_scalars_and_neither_time_nor_bytes() {
        let budget = Budget::new(Stop::NEVER);
        budget.spend_on_nest(MOST_WORK, SCALARS / MOST_WORK - 1);
        assert_eq!(budget.of_nest(MOST_WORK), Verdict::Compute);
        assert_eq!(budget.of_nest(MOST_WORK + 1), Verdict::TooMuch);
        budget.spend_on_nest(MOST_WORK, 1);
        assert_eq!(budget.of_nest(MOST_WORK), Verdict::Spent);
        assert_eq!(budget.of_nest(SMALL_WORK), Verdict::Compute);
        assert_eq!(budget.of_function(MOST_WORK), Verdict::Compute);
    }
}
