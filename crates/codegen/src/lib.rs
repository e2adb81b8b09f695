//! Machine code for loop nests: by Cranelift, and for vectors wider than Cranelift's by an assembler of our own.
//!
//! One nest becomes one native function: shapes, strides and extents are immediates or, if they have symbols, numbers
//! that the caller gives ([`Code::extents`]); buffers come as pointers. [`Compiler::compile`] turns many nests into one
//! [`Code`], in parallel; [`Code::run`] calls one of them.
//!
//! ```
//! use vinelift_codegen::{Compiler, Options, Pointer};
//! use vinelift_nest::{Nest, Role, build::*};
//! use vinelift_tensor::ElementType::F32;
//!
//! let mut nest = Nest::new();
//! let x = nest.buffer("x", F32, &[3], Role::Input);
//! let y = nest.buffer("y", F32, &[3], Role::Output);
//! nest.define(vec![], y, |nest, at| nest.load(x, at.to_vec()) * 2.0);
//!
//! let code = Compiler::new()?.compile(&[&nest], &Options::default())?;
//! let (mut input, mut output) = ([1.0f32, 2.0, 3.0], [0.0f32; 3]);
//! // SAFETY: one pointer for each buffer of the nest, each to three `f32`.
//! unsafe { code.run(0, &[input.as_mut_ptr(), output.as_mut_ptr()].map(|p| Pointer(p.cast())), &[]) }.unwrap();
//! assert_eq!(output, [2.0, 4.0, 6.0]);
//! # Ok::<(), vinelift_codegen::CodegenError>(())
//! ```
//!
//! The innermost loops of most stages are vectorised: with 128 bits through Cranelift, and with the widest vectors that the
//! machine has in functions that are assembled here ([`Vectors`] limits their width).
//!
//! | module | holds |
//! |---|---|
//! | `compile` | nests in parallel, from legalisation to linked code |
//! | `analysis` | the facts of a stage that all kinds of code ask for: offsets, indices, work, columns |
//! | `emit` | stages and scalars in Cranelift's IR, the exact code; vector loops as part of it, and calls of others |
//! | `vectorize` | from a stage to a program of the vector IR |
//! | `vector_ir` | operations over typed lanes, and loops around them, of no machine |
//! | `target` | back ends of these operations: Cranelift's 128 bits, x86 with AVX2 or AVX-512 |
//! | `dump` | the text of every step |
//! | `listing` | the code line by line, with what each line comes from |
//!
//! Words: a *vector loop* does inner loops of a stage by vectors, as a function of its own or as part of the kernel; a
//! *lane* is an element of a vector, a *part* one of the registers that hold a value of the widest type; a value is
//! *broadcast* if it is the same in all lanes; to *collect* is to put elements side by side on the stack before a vector loop; a *panel* is a block of
//! columns packed into scratch memory; the *cut* axis is the one of which a call does one chunk.
//!
//! Invariants:
//! * this is the only crate that names Cranelift, and no operator is named in it: what a nest means
//!   is said by `vinelift-nest` alone, whose interpreter every kernel must agree with;
//! * a kernel never traps, and calls nothing but the vector loops that belong to it and the functions in `support`: copies
//!   and clears of memory, and fused multiply-adds where the machine has no instruction for them. What can go wrong ends it
//!   with a [`Fault`](vinelift_nest::Fault), and what a machine instruction leaves undefined (division by zero, shifts by
//!   too much, casts out of range) is settled by instructions around it;
//! * a kernel reads and writes its buffers and its scratch memory, and nothing else.
//!
//! Why the `unsafe` (all of it in `code` and `support`) is sound: only nests that pass
//! [`verify`](vinelift_nest::verify) are compiled, so every access lies inside its buffer; the
//! caller of [`Code::run`] vouches for the buffers; and the memory that holds the machine code lives
//! exactly as long as the [`Code`] that is borrowed to run it.

mod analysis;
mod code;
mod compile;
mod disassembly;
mod dump;
mod emit;
mod error;
mod listing;
mod support;
mod target;
mod vector_ir;
mod vectorize;

pub use code::{Code, Interrupt, Pointer};
pub use compile::{Compiler, Options, Vectors};
pub use dump::KernelText;
pub use error::CodegenError;
pub use listing::{AsmLine, ClifLine};
