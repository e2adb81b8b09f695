//! How many runs of a model go on at a time that nobody waits for at once.

use crate::workers;
use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::{Mutex, MutexGuard, PoisonError};

type Work = Box<dyn FnOnce() + Send>;

/// The runs of one model.
pub(crate) struct Streams {
    most: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    running: usize,
    waiting: VecDeque<Work>,
}

impl Streams {
    pub(crate) fn new(most: NonZeroUsize) -> Streams {
        Streams {
            most: most.get(),
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does `work`, which does not panic, on a thread of its own, once fewer than the most are running. It calls
    /// [`Streams::end_one`] once.
    pub(crate) fn start(&self, work: Work) {
        {
            let mut state = self.state();
            if state.running >= self.most {
                state.waiting.push_back(work);
                return;
            }
            state.running += 1;
        }
        workers::start(work);
    }

    /// One of the runs has ended: the next may begin.
    pub(crate) fn end_one(&self) {
        let next = {
            let mut state = self.state();
            let next = state.waiting.pop_front();
            state.running -= usize::from(next.is_none());
            next
        };
        if let Some(next) = next {
            workers::start(next);
        }
    }
}
