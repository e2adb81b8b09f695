//! A nest as one Cranelift function.
//!
//! ```text
//! fn(buffers: *const *mut u8, fault: *mut RawFault, begin: i64, end: i64, scratch: *mut u8, numbers: *const i64) -> u32
//!                                                             0 = done, 1 = fault, 2 = told to stop
//! ```
//!
//! `begin..end` is the chunk to run, of a nest that can be cut ([`ParallelChunks`](vinelift_nest::ParallelChunks)); otherwise it is
//! ignored. `scratch` is memory for what the call keeps meanwhile, of [`Emitted::scratch`](kernel::Emitted) bytes. `numbers` are
//! what the extents that have symbols are in this call ([`numbers`]).
//!
//! A stage becomes one loop for each axis with more than one point, tested at the top. Before a
//! loop is opened, what reads memory or can fault and does not depend on its axis is computed
//! ([`hoist`]); arithmetic alone is left to Cranelift, which moves it out of loops by itself.
//!
//! Scalars are emitted from a list of tasks instead of by recursion ([`scalar`]), so that their
//! depth is bounded by memory and not by the stack. Each is emitted once in a scope: a loop's body or
//! a side of a select opens one, and what was computed in it is forgotten at its end, because it
//! does not dominate what follows.

mod abi;
mod address;
mod block_columns;
mod cast;
mod checked;
mod collect;
mod copy;
mod emitter;
mod float;
mod float_rem;
mod hoist;
mod integer;
mod interleave;
mod kernel;
mod kernel_loop;
mod lane_memory;
mod lane_program;
mod lane_rare;
mod loops;
mod memory;
mod numbers;
mod packed;
mod poll;
mod scalar;
mod scan;
mod stage;
mod state;
mod transpose;
mod update;
mod vector_call;
mod wrap;

pub(crate) use abi::{DONE, RawFault, STOPPED};
pub(crate) use emitter::{
    Around, LoopCode, MOST_INSTRUCTIONS, Nests, Refusal, Support, has_vectors,
};
pub(crate) use kernel::{kernel, loop_signature, signature, source_location};
