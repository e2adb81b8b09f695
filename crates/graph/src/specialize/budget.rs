//! Limits on the work that constant folding may do.
//!
//! A value that is not computed while compiling is computed when the model runs, as any other, and is
//! the same. So that shapes which follow from small values are found in any case, those are always
//! computed.

use std::cell::Cell;
use std::time::{Duration, Instant};
use vinelift_ops::{Stop, TensorType};
use vinelift_tensor::{Tensor, element_count};

/// The most points of all loops together that are interpreted, and the most elements of all inputs and
/// outputs together of a function that is evaluated. More than that is left to native code.
const MOST_WORK: usize = 1 << 16;

/// Work that is done whatever has been spent.
pub(super) const SMALL_WORK: usize = 1 << 10;

/// The time for all of a model together.
const TIME: Duration = Duration::from_secs(1);

/// The bytes of all values of a model together.
const BYTES: usize = 1 << 28;

/// The work that is left for a model and its sub-graphs together.
pub(crate) struct Budget<'a> {
    stop: Stop<'a>,
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

impl<'a> Budget<'a> {
    pub(crate) fn new(stop: Stop<'a>) -> Budget<'a> {
        Budget {
            stop,
            time: Cell::new(TIME),
            bytes: Cell::new(BYTES),
        }
    }

    /// Whether the caller has cancelled the compilation.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.stop.is_cancelled()
    }

    /// Whether to do this amount of work while compiling.
    pub(crate) fn verdict(&self, work: usize) -> Verdict {
        let spent = self.time.get().is_zero() || self.bytes.get() == 0;
        if work > MOST_WORK {
            Verdict::TooMuch
        } else if spent && work > SMALL_WORK {
            Verdict::Spent
        } else {
            Verdict::Compute
        }
    }

    /// When to give up what is begun now.
    pub(crate) fn stop(&self) -> Stop<'a> {
        // Even a function with little work by this measure may take long.
        self.stop
            .at(Instant::now() + self.time.get().max(TIME / 10))
    }

    /// Takes off the time since `start`, and the bytes of what was made.
    pub(crate) fn spend<'t>(&self, start: Instant, made: impl Iterator<Item = &'t Tensor>) {
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
    fn what_is_spent_is_left_off_for_all_but_small_work() {
        let budget = Budget::new(Stop::NEVER);
        assert_eq!(budget.verdict(MOST_WORK), Verdict::Compute);
        assert_eq!(budget.verdict(MOST_WORK + 1), Verdict::TooMuch);
        let half = Tensor::zeros(ElementType::U8, &[BYTES / 2]).unwrap();
        budget.spend(Instant::now(), [&half].into_iter());
        assert_eq!(budget.verdict(MOST_WORK), Verdict::Compute);
        budget.spend(Instant::now(), [&half].into_iter());
        assert_eq!(budget.verdict(MOST_WORK), Verdict::Spent);
        assert_eq!(budget.verdict(SMALL_WORK), Verdict::Compute);

        let budget = Budget::new(Stop::NEVER);
        assert_eq!(budget.stop().go_on(), Ok(()));
        let long_ago = Instant::now().checked_sub(TIME);
        budget.spend(long_ago.unwrap(), [].into_iter());
        assert_eq!(budget.verdict(SMALL_WORK + 1), Verdict::Spent);
        assert_eq!(budget.verdict(SMALL_WORK), Verdict::Compute);
        assert_eq!(budget.verdict(MOST_WORK + 1), Verdict::TooMuch);
    }
}
