//! How work that is no longer wanted ends.

use crate::OpError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// When to give up: once someone sets a flag, or at a point in time.
///
/// Whoever works long asks [`Stop::go_on`] in each turn of an outer loop.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stop<'a> {
    flag: Option<&'a AtomicBool>,
    deadline: Option<Instant>,
}

impl<'a> Stop<'a> {
    /// To work to the end.
    pub const NEVER: Stop<'static> = Stop {
        flag: None,
        deadline: None,
    };

    /// To give up once `flag` is true.
    pub fn when(flag: &'a AtomicBool) -> Stop<'a> {
        Stop {
            flag: Some(flag),
            deadline: None,
        }
    }

    /// To give up also at this point in time, if not at an earlier one.
    pub fn at(self, deadline: Instant) -> Stop<'a> {
        let earlier = self.deadline.map_or(deadline, |d| d.min(deadline));
        Stop {
            deadline: Some(earlier),
            ..self
        }
    }

    /// Whether the flag is set.
    pub fn is_cancelled(&self) -> bool {
        self.flag.is_some_and(|flag| flag.load(Ordering::Relaxed))
    }

    /// [`OpError::Cancelled`] if it is time to give up.
    pub fn go_on(&self) -> Result<(), OpError> {
        if self.is_cancelled() || self.deadline.is_some_and(|d| Instant::now() >= d) {
            return Err(OpError::Cancelled);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_or_a_deadline_ends_work() {
        assert_eq!(Stop::NEVER.go_on(), Ok(()));
        let flag = AtomicBool::new(false);
        let stop = Stop::when(&flag);
        assert_eq!(stop.go_on(), Ok(()));
        let past = Instant::now();
        assert_eq!(stop.at(past).go_on(), Err(OpError::Cancelled));
        assert!(!stop.at(past).is_cancelled());
        flag.store(true, Ordering::Relaxed);
        assert_eq!(stop.go_on(), Err(OpError::Cancelled));
    }
}
