//! The progress bar of long measurements.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::{self, IsTerminal};
use std::time::Duration;

/// A bar on a terminal, if the work takes long. It is moved so seldom that the runs do not notice.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    next: Duration,
}

impl Progress {
    const STEPS: u64 = 1000;

    pub(crate) fn new() -> Progress {
        Progress {
            bar: None,
            next: Duration::from_secs(1),
        }
    }

    /// `done` is the part of the work that is done.
    pub(crate) fn show(&mut self, elapsed: Duration, done: impl Fn() -> f64) {
        if elapsed < self.next {
            return;
        }
        self.next = elapsed + Duration::from_millis(200);
        if !io::stderr().is_terminal() {
            return;
        }
        let style = ProgressStyle::with_template("{bar:40} {percent} %, {eta} left");
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = || ProgressBar::new(Progress::STEPS).with_style(style);
        let position = done() * Progress::STEPS as f64;
        self.bar
            .get_or_insert_with(bar)
            .set_position(position as u64);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
