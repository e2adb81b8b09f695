//! The message of a thread's last failure, for as long as the thread runs code.
//!
//! Rust frees a thread's `String` before the thread calls the destructors of its keys, and the main thread's before
//! `atexit`'s functions. These may call this library, fail, and ask why. From then on a buffer that needs no freeing
//! holds the message.

use std::cell::{Cell, RefCell};

/// The bytes of a message that are kept when the thread ends. Each thread of the program has the room for them.
const KEPT: usize = 1023;

thread_local! {
    /// Empty if there was no failure.
    static MESSAGE: Message = const { Message(RefCell::new(String::new())) };
    /// The message once [`MESSAGE`] is gone. It has no destructor, so it is there to the end.
    static START: Cell<(u16, [u8; KEPT])> = const { Cell::new((0, [0; KEPT])) };
}

struct Message(RefCell<String>);

impl Drop for Message {
    fn drop(&mut self) {
        keep_start(self.0.get_mut());
    }
}

/// Keeps the message of a failure for the thread.
pub(crate) fn keep(message: String) {
    let mut message = Some(message);
    let kept = MESSAGE.try_with(|last| last.0.replace(message.take().unwrap_or_default()));
    if let (Err(_), Some(message)) = (kept, message) {
        keep_start(&message);
    }
}

/// The message of the last failure in this thread; empty if there was none.
pub(crate) fn last_message() -> String {
    MESSAGE
        .try_with(|last| last.0.borrow().clone())
        .unwrap_or_else(|_| {
            let (length, start) = START.get();
            String::from_utf8_lossy(&start[..usize::from(length)]).into_owned()
        })
}

/// Keeps as much of a message as there is room for, in whole characters.
fn keep_start(message: &str) {
    let fits = |length: &usize| message.is_char_boundary(*length);
    let length = (0..=KEPT.min(message.len())).rev().find(fits).unwrap_or(0);
    let mut start = [0; KEPT];
    start[..length].copy_from_slice(&message.as_bytes()[..length]);
    START.set((length as u16, start));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Sender, channel};

    /// Fails and asks why when its thread has let go of its message, as the first that it used.
    struct AtTheEnd(Sender<[String; 2]>);

    impl Drop for AtTheEnd {
        fn drop(&mut self) {
            let before = last_message();
            keep("ü".repeat(KEPT));
            self.0.send([before, last_message()]).unwrap();
        }
    }

    thread_local! {
        static FIRST: RefCell<Option<AtTheEnd>> = const { RefCell::new(None) };
    }

    #[test]
    fn a_message_is_there_to_the_end_of_a_thread() {
        let (sender, receiver) = channel();
        let thread = std::thread::spawn(move || {
            FIRST.set(Some(AtTheEnd(sender)));
            keep("too small".to_owned());
            assert_eq!(last_message(), "too small");
        });
        thread.join().unwrap();
        let [before, after] = receiver.recv().unwrap();
        assert_eq!(before, "too small");
        assert_eq!(after, "ü".repeat(KEPT / 2));
        assert_eq!(last_message(), "", "messages are the thread's own");
    }
}
