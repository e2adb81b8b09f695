//! Functions that take a variable number of arguments.
//!
//! They cannot be defined as such in stable Rust. Here each is a few instructions that store the registers in
//! which arguments are passed, and call another function with the place of these: it reads as many arguments as
//! its caller says there are, and nothing else of the caller's stack.

use crate::ffi::Text;
use crate::status::{Failure, Result};
use std::marker::PhantomData;

/// The most variable arguments that are read: a count that is larger is taken for a mistake.
const MOST: usize = 24;

/// Where the arguments of a call are: first those in registers, as they were stored.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Passed<'a>(*const usize, PhantomData<&'a usize>);

impl<'a> Passed<'a> {
    /// The argument at `position`.
    ///
    /// # Safety
    /// The caller has passed more than `position` arguments, and the one at `position` is a `T`, which takes one
    /// register.
    pub(crate) unsafe fn get<T>(self, position: usize) -> T {
        const { assert!(size_of::<T>() <= size_of::<usize>()) };
        #[cfg(target_arch = "x86_64")]
        // Six are in registers. Between these and the others is the address to return to.
        let position = if position < 6 { position } else { position + 1 };
        // SAFETY: the caller's promise. Smaller values are at the start of their word.
        unsafe { self.0.add(position).cast::<T>().read() }
    }

    /// The arguments after the first `own`.
    pub(crate) fn after(self, own: usize) -> Arguments<'a> {
        Arguments { passed: self, own }
    }
}

/// The variable arguments of a call.
#[derive(Clone, Copy)]
pub(crate) struct Arguments<'a> {
    passed: Passed<'a>,
    /// How many others there are before them.
    own: usize,
}

impl<'a> Arguments<'a> {
    /// All of them: the caller says that there are `count` texts.
    pub(crate) fn texts(self, count: usize) -> Result<Vec<Text<'a>>> {
        if count > MOST {
            let text = format!(
                "{count} variable arguments, at most {MOST} are read; the functions that end in \
                 `_props` and `_properties` take any number"
            );
            return Err(Failure::unsupported(text));
        }
        let all = self.own..self.own + count;
        // SAFETY: the caller says that they are there; the headers ask for texts.
        Ok(all.map(|k| unsafe { self.passed.get(k) }).collect())
    }
}

/// Stores the registers in which arguments are passed, in their order and just before those that are on the
/// stack, calls `$body` with their place, and returns what it returns.
#[cfg(target_arch = "x86_64")]
macro_rules! pass_on {
    ($body:path) => {
        std::arch::naked_asm!(
            ".cfi_startproc",
            "push r9",
            "push r8",
            "push rcx",
            "push rdx",
            "push rsi",
            "push rdi",
            "mov rdi, rsp",
            "sub rsp, 8", // A call needs a multiple of 16.
            ".cfi_adjust_cfa_offset 56",
            "call {body}",
            "add rsp, 56",
            ".cfi_adjust_cfa_offset -56",
            "ret",
            ".cfi_endproc",
            body = sym $body,
        )
    };
}

/// As above.
#[cfg(target_arch = "aarch64")]
macro_rules! pass_on {
    ($body:path) => {
        std::arch::naked_asm!(
            ".cfi_startproc",
            "stp x29, x30, [sp, #-80]!",
            ".cfi_def_cfa_offset 80",
            ".cfi_offset x29, -80",
            ".cfi_offset x30, -72",
            "stp x0, x1, [sp, #16]",
            "stp x2, x3, [sp, #32]",
            "stp x4, x5, [sp, #48]",
            "stp x6, x7, [sp, #64]",
            "mov x29, sp",
            "add x0, sp, #16",
            "bl {body}",
            "ldp x29, x30, [sp], #80",
            ".cfi_def_cfa_offset 0",
            ".cfi_restore x29",
            ".cfi_restore x30",
            "ret",
            ".cfi_endproc",
            body = sym $body,
        )
    };
}
pub(crate) use pass_on;

/// Defines a function of variable arguments. Each of its own parameters must take one register, and they must
/// not be more than there are of these.
macro_rules! variadic {
    ($(#[$doc:meta])* fn $name:ident($($parameter:ident: $ty:ty),* $(,)?; $arguments:ident) $body:block) => {
        $(#[$doc])*
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        extern "C" fn $name($($parameter: $ty),*) -> $crate::status::Status {
            extern "C" fn body(passed: $crate::variadic::Passed<'_>) -> $crate::status::Status {
                let mut own = 0;
                $(
                    // SAFETY: the caller passes the parameters that the header asks for.
                    let $parameter: $ty = unsafe { passed.get(own) };
                    own += 1;
                )*
                let $arguments = passed.after(own);
                $crate::status::guard(|| $body)
            }
            $crate::variadic::pass_on!(body)
        }
    };
}
pub(crate) use variadic;
