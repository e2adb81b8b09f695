//! Runs OpenVINO IR models in-process, as native code specialised to the shapes of their inputs.
//!
//! ```
//! use vinelift::{Core, Tensor};
//!
//! let core = Core::new()?;
//! # let xml = vinelift::doc::GATHER;
//! # let model = core.read_model_from_memory(xml.as_bytes(), Vec::new())?;
//! # /*
//! let model = core.read_model("model.xml")?;
//! # */
//! let compiled = core.compile_model(&model)?;
//! let mut request = compiled.create_request();
//! request.set_input("data", Tensor::from_slice(&[2, 2], &[1.0f32, 2.0, 3.0, 4.0])?)?;
//! request.set_input("indices", Tensor::from_slice(&[2, 2], &[0i32, 1, 0, 0])?)?;
//! request.infer()?;
//! assert_eq!(*request.output(0)?.as_slice::<f32>()?, [1.0, 4.0, 1.0, 2.0]);
//! # Ok::<(), vinelift::Error>(())
//! ```
//!
//! A [`Model`] is what a file says; a [`CompiledModel`] can run, and is shared by the
//! [`InferRequest`]s of many threads; a request holds the tensors of one run. Code is made for
//! the shapes that are seen first, and kept in a bounded cache. Once there are others, a segment of a model is lowered
//! for a class of shapes (`class`) and bound to the numbers of each; equal kernels and packed constants are shared
//! ([`Statistics`] counts all of that), and shapes that take much of the time get a plan of their own in the background
//! ([`Specialization`]).
//!
//! Invariants:
//! * for any file and any tensors, a call gives the right answer or an [`Error`]; nothing is written
//!   or read outside a buffer;
//! * results do not depend on the [`Level`] or on the number of threads;
//! * no operator is known by name here but those of the layers that `preprocess` adds, and nothing is read or written but
//!   the files that the caller names.
//!
//! From the public types down, each of these knows only those after it: requests (`request`) and dumps (`dump`) of
//! compiled models (`compiled`); runs of units, segment by segment (`run`); units, with the cache of their plans
//! (`unit`); one plan on memory (`execute`); plans (`compile`). Beside these:
//!
//! | modules | hold |
//! |---|---|
//! | `plan_key`, `class`, `classes` | shapes and values that plans are made for; classes of shapes, and those that a unit has met |
//! | `hotness` | how long plans of classes have run: which shapes are worth code of their own |
//! | `growth_cache`, `caches` | variables that grow from run to run, and those that are stored in fewer bits |
//! | `text_shapes` | the shapes for which code of language models is made before their first run |
//! | `taken_plans`, `deferred` | the plans that a run takes; compilations that it leaves to the background |
//! | `context` | what all units of a compiled model share: compiler, kernels, threads |
//! | `single_flight`, `stop` | one thread at a time makes a plan; all work can be stopped |
//! | `background`, `streams`, `workers`, `ticket` | threads that compile, or run what nobody waits for at once |
//! | `depth`, `stack`, `fork` | how much stack runs need; what is left in a child of the process |
//!
//! The `unsafe` in this crate is the calls of native code (`execute/launch`) and of contraction kernels
//! (`compile/contraction`), the mapping of weights into memory (`weights`), and what a child has of its parent's
//! after a fork (`fork`).

mod background;
mod caches;
mod class;
mod classes;
mod compile;
mod compiled;
mod config;
mod context;
mod core;
mod deferred;
#[doc(hidden)]
pub mod depth;
#[doc(hidden)]
pub mod doc;
mod dump;
mod edit;
mod error;
mod execute;
#[doc(hidden)]
pub mod fork;
mod growth_cache;
mod hotness;
mod model;
mod outputs;
mod pending;
mod plan_key;
mod preprocess;
mod random;
mod request;
mod run;
mod single_flight;
#[doc(hidden)]
pub mod stack;
mod statistics;
#[doc(hidden)]
pub mod stop;
mod streams;
mod summary;
mod taken_plans;
mod text_shapes;
#[doc(hidden)]
pub mod ticket;
mod unit;
mod weights;
#[doc(hidden)]
pub mod workers;

pub use compiled::CompiledModel;
pub use config::{CachePrecision, Config, Level, Specialization};
pub use core::Core;
pub use dump::{
    BufferListing, CodeListing, DumpOptions, KernelListing, LayerListing, Listing, PassListing,
    PlanListing, Stage, StageListing,
};
pub use error::Error;
pub use model::{Model, Port};
pub use outputs::Outputs;
pub use pending::{Done, Pending};
pub use preprocess::{Color, InputSteps, Layout, Padding, Preprocessor, Resize};
pub use request::{InferRequest, RunOptions};
pub use run::KernelTime;
pub use statistics::Statistics;
pub use summary::{SubGraph, Summary};
pub use vinelift_codegen::{AsmLine, ClifLine, Vectors};
pub use vinelift_kernels::{Peak, peak};
pub use vinelift_nest::compiler_threads;
pub use vinelift_ops::{IndexPolicy, OpDef, all as operators};
pub use vinelift_tensor::{
    Dim, Element, ElementType, FileError, PartialShape, Shape, Tensor, TensorError, half,
};

#[cfg(feature = "image")]
pub use vinelift_tensor::image;
#[cfg(feature = "ndarray")]
pub use vinelift_tensor::ndarray;

/// The crate whose types stand in public signatures.
pub use bytes;
/// The graph of layers, which [`Model::graph`] shows and [`Model::edit`] changes.
pub use vinelift_graph as graph;
/// The operators, and the types of tensors that are inferred.
pub use vinelift_ops as ops;
/// The reader of model files; here for its errors.
pub use vinelift_xml as xml;

/// Threads share models, and hand on requests and errors.
const _: () = {
    const fn is_send<T: Send + 'static>() {}
    const fn is_shared<T: Send + Sync + 'static>() {}
    is_shared::<Core>();
    is_shared::<Model>();
    is_shared::<CompiledModel>();
    is_shared::<Tensor>();
    is_shared::<Config>();
    is_shared::<Outputs>();
    is_shared::<Preprocessor>();
    is_shared::<Error>();
    is_send::<InferRequest>();
    is_send::<Pending>();
};
