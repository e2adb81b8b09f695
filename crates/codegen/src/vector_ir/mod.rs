//! A vector loop before a machine is chosen: loops around operations over typed lanes.
//!
//! A [`Program`](program::Program) holds [`Instruction`](program::Instruction)s in the order in which they were built,
//! and the loops that they stand in. A value has the same number of lanes everywhere, `lanes · parts` of them, of an
//! [`ElementType`](vinelift_tensor::ElementType): how many registers that takes, and which, is left to the back end.
//! Values of type `Boolean` are masks. A value whose operands are all the same in all lanes is so too.
//!
//! | kind | operations |
//! |---|---|
//! | the same in all lanes | `Constant`, `Argument` (both in no loop), `MaskArgument` |
//! | memory | `Load`, `LoadUniform`, `LoadStrided`, `Store`, `Prefetch` |
//! | numbers | `Add`, `Sub`, `Mul`, `MulHigh`, `Div`, `Min`, `Max`, `MulAdd`, `Neg`, `Abs`, `Sqrt`, `Round`, `Floor`, `Ceil`, `Trunc` |
//! | bits and masks | `And`, `Or`, `Xor`, `Not`, `ShiftLeft`, `ShiftRight`, `Compare`, `IsNonZero`, `Select`, `MaskedConstant` |
//! | types | `Convert` |
//! | left to scalar code | `Scalar`, `ByLane` (inside the kernel only) |
//! | reductions | `Variable`, and any instruction whose result is one |
//! | what is rare | `HasLanes` |
//! | indices in memory | `CheckIndices`, `Gather`, `LoadTable`, `TableLookup` |
//!
//! Nothing here names a machine. A program that is part of a kernel leaves to its scalar code what no back end has. A back
//! end refuses a program that holds something it has no instructions for; the
//! stage then runs in another way. Every lane computes what the scalar code computes, bit for bit, and a program
//! touches no element that its stage does not. A program ends where it finds an index out of range, and says so.

pub(crate) mod ops;
pub(crate) mod program;
