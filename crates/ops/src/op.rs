//! Operators and their declarations.

use crate::{Attributes, Evaluate, Infer, Lower, OpError, Signature, TensorType};
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use std::sync::Arc;
use vinelift_nest::ValueRange;
use vinelift_tensor::Tensor;

/// One operator instance: its attributes, and the two rules that give them meaning.
pub trait Op: Debug + Send + Sync {
    /// The types of the outputs, or why the inputs do not fit.
    ///
    /// Shapes may be partial on the way in and out. Every input whose *value* `lower` will need must
    /// be asked for here ([`Infer::constant`]), even where the output shape does not depend on it.
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError>;

    /// The ranges of the elements of the only output, from the types of the inputs alone: of those
    /// operators that turn shapes into values.
    fn bounds(&self, _cx: &Infer<'_>) -> Option<Vec<ValueRange>> {
        None
    }

    /// Appends the stages that compute the outputs. All shapes are static and `infer` has passed.
    fn lower(&self, cx: &mut Lower<'_>);
}

/// An operator instance whose outputs no loop nest gives, at least for some inputs: their size or the control flow depends on
/// data.
pub trait Native: Debug + Send + Sync {
    /// As [`Op::infer`], but values that are not known need not be waited for: [`Native::evaluate`] has
    /// them all.
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError>;

    /// The same operator as a loop nest, if there is one for all inputs of these types and with these values; `infer` passes for
    /// some.
    fn as_nest(&self, _declared: &Infer<'_>) -> Option<Arc<dyn Op>> {
        None
    }

    /// The outputs, of types that fit those that `infer` gave. `infer` has passed with the exact types
    /// and all values of these inputs; what only the contents of the inputs can get wrong is an error.
    fn evaluate(&self, cx: &Evaluate<'_>) -> Result<Vec<Tensor>, OpError>;

    /// Whether the outputs depend on the inputs alone, so that they can be computed once if those are
    /// constant.
    fn is_function(&self) -> bool {
        true
    }
}

/// An operator with its attributes. Cheap to clone.
#[derive(Clone, Debug)]
pub enum Instance {
    /// Computed by a loop nest.
    Lowered(Arc<dyn Op>),
    /// Computed by a function of its own.
    Native(Arc<dyn Native>),
}

impl Instance {
    /// Whether the outputs depend on the inputs alone, as those of all nests do.
    pub fn is_function(&self) -> bool {
        match self {
            Instance::Lowered(_) => true,
            Instance::Native(op) => op.is_function(),
        }
    }

    /// The types of the outputs, or why the inputs do not fit.
    pub fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        match self {
            Instance::Lowered(op) => op.infer(cx),
            Instance::Native(op) => op.infer(cx),
        }
    }
}

/// A declaration: one operator type with the versions that mean the same.
pub struct OpDef {
    /// `type=` in the IR.
    pub name: &'static str,
    /// The values of `version=` that this covers.
    pub versions: &'static [&'static str],
    /// The inputs, by name.
    pub signature: Signature,
    /// Its kind of lowering.
    pub family: Family,
    /// How an instance comes to be.
    pub build: Build,
}

impl OpDef {
    /// An instance with these attributes; `None` for a part of the graph itself.
    pub fn instantiate(
        &'static self,
        attributes: &Attributes<'_>,
    ) -> Result<Option<Instance>, OpError> {
        let op = match &self.build {
            Build::Op(parse) => parse(attributes)?,
            Build::Native(parse) => return Ok(Some(Instance::Native(parse(attributes)?.into()))),
            Build::Structure => return Ok(None),
        };
        Ok(Some(Instance::Lowered(op.into())))
    }
}

/// Reads the attributes into `T`, for [`Build::Op`].
pub(crate) fn parse<T: Op + DeserializeOwned + 'static>(
    attributes: &Attributes<'_>,
) -> Result<Box<dyn Op>, OpError> {
    Ok(Box::new(attributes.parse::<T>()?))
}

/// Reads the attributes into `T`, for [`Build::Native`].
pub(crate) fn parse_native<T: Native + DeserializeOwned + 'static>(
    attributes: &Attributes<'_>,
) -> Result<Box<dyn Native>, OpError> {
    Ok(Box::new(attributes.parse::<T>()?))
}

/// How an instance of an operator comes to be.
pub enum Build {
    /// From its attributes.
    Op(fn(&Attributes<'_>) -> Result<Box<dyn Op>, OpError>),
    /// From its attributes, as a function on tensors.
    Native(fn(&Attributes<'_>) -> Result<Box<dyn Native>, OpError>),
    /// Not an operator on tensors but a part of the graph itself, which the graph builds.
    Structure,
}

/// A kind of lowering.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// One output element from the input elements at the same place.
    Elementwise,
    /// A fold over axes.
    Reduction,
    /// Elements move by an index map that is known when compiling.
    Layout,
    /// Elements move by indices found in tensors.
    Index,
    /// A fold over a window that slides over spatial dims.
    Window,
    /// Several steps with values in between.
    Compose,
    /// A state that is carried from step to step.
    Recurrent,
    /// Samples from regions whose places are data.
    Region,
    /// A function on tensors: sizes or control flow depend on data.
    Native,
    /// Part of the graph itself.
    Structure,
}

impl Family {
    /// Lower-case name.
    pub const fn name(self) -> &'static str {
        match self {
            Family::Elementwise => "elementwise",
            Family::Reduction => "reduction",
            Family::Layout => "layout",
            Family::Index => "index",
            Family::Window => "window",
            Family::Compose => "compose",
            Family::Recurrent => "recurrent",
            Family::Region => "region",
            Family::Native => "native",
            Family::Structure => "structure",
        }
    }
}

impl Debug for OpDef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.name, self.versions.join(", "))
    }
}
