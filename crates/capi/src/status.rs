//! The status that functions return, with a message for the thread.

use crate::last_error;
use std::any::Any;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// `ov_status_e`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Status {
    Ok = 0,
    GeneralError = -1,
    NotImplemented = -2,
    ParameterMismatch = -4,
    NotFound = -5,
    OutOfBounds = -6,
    RequestBusy = -8,
    ResultNotReady = -9,
    InferCancelled = -13,
    InvalidCParam = -14,
    UnknownException = -17,
}

/// Why a function did not do what it should.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) status: Status,
    pub(crate) message: String,
}

pub(crate) type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    pub(crate) fn new(status: Status, message: impl Display) -> Failure {
        Failure {
            status,
            message: message.to_string(),
        }
    }

    /// An argument that is never right.
    pub(crate) fn argument(message: impl Display) -> Failure {
        Failure::new(Status::InvalidCParam, message)
    }

    /// Something that this library does not do.
    pub(crate) fn unsupported(message: impl Display) -> Failure {
        Failure::new(Status::NotImplemented, message)
    }

    /// Keeps the message for the thread.
    fn report(self) -> Status {
        let status = self.status;
        last_error::keep(self.message);
        status
    }
}

impl From<vinelift::Error> for Failure {
    fn from(error: vinelift::Error) -> Failure {
        let status = match &error {
            vinelift::Error::Input(_) => Status::ParameterMismatch,
            vinelift::Error::Cancelled => Status::InferCancelled,
            vinelift::Error::Unsupported(_) => Status::NotImplemented,
            _ => Status::GeneralError,
        };
        Failure::new(status, error)
    }
}

impl From<vinelift::TensorError> for Failure {
    fn from(error: vinelift::TensorError) -> Failure {
        Failure::new(Status::GeneralError, error)
    }
}

/// Runs the body of a function. Errors and panics become a status.
pub(crate) fn guard(body: impl FnOnce() -> Result<()>) -> Status {
    match caught(body) {
        Ok(()) => Status::Ok,
        Err(failure) => failure.report(),
    }
}

/// Runs the body of a function that returns no status, but `otherwise` where it fails.
pub(crate) fn guard_or<T>(otherwise: T, body: impl FnOnce() -> Result<T>) -> T {
    caught(body).unwrap_or_else(|failure| {
        failure.report();
        otherwise
    })
}

/// Runs `body`; a panic is an error.
pub(crate) fn caught<T>(body: impl FnOnce() -> Result<T>) -> Result<T> {
    // A panic may leave data half changed. Shared data is behind mutexes, whose users can go on with it in any state.
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| Err(from_panic(&*panic)))
}

pub(crate) fn from_panic(panic: &(dyn Any + Send)) -> Failure {
    let text = format!("internal error: {}", panic_text(panic));
    Failure::new(Status::UnknownException, text)
}

/// The message of a panic.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "unknown".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::last_error::last_message;

    #[test]
    fn errors_and_panics_become_a_status_with_a_message() {
        assert_eq!(guard(|| Ok(())), Status::Ok);
        assert_eq!(
            guard(|| Err(Failure::argument("too small"))),
            Status::InvalidCParam
        );
        assert_eq!(last_message(), "too small");
        assert_eq!(guard(|| panic!("at {}", 7)), Status::UnknownException);
        assert_eq!(last_message(), "internal error: at 7");
        assert!(guard_or(true, || Err(Failure::unsupported("no"))));
        assert_eq!(last_message(), "no");
        let elsewhere = std::thread::spawn(last_message).join().unwrap();
        assert_eq!(elsewhere, "", "messages are the thread's own");
    }
}
