//! Sets of element types.

use vinelift_tensor::ElementType;

/// The element types that an operator takes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Class {
    /// Numbers of any kind.
    Numeric,
    /// Numbers of any kind, and booleans.
    Ordered,
    /// Integers.
    Integer,
    /// Integers and booleans.
    IntegerOrBoolean,
    /// Floats.
    Float,
    /// Booleans.
    Boolean,
    /// All, strings included.
    Any,
}

/// The element type of the result.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Output {
    /// The type of the inputs.
    Same,
    /// `boolean`.
    Boolean,
}

impl Class {
    pub(crate) fn accepts(self, ty: ElementType) -> bool {
        let boolean = ty == ElementType::Boolean;
        match self {
            Class::Numeric => ty.is_integer() || ty.is_float(),
            Class::Ordered => ty.is_integer() || ty.is_float() || boolean,
            Class::Integer => ty.is_integer(),
            Class::IntegerOrBoolean => ty.is_integer() || boolean,
            Class::Float => ty.is_float(),
            Class::Boolean => boolean,
            Class::Any => true,
        }
    }

    pub(crate) fn describe(self) -> &'static str {
        match self {
            Class::Numeric => "a numeric type",
            Class::Ordered => "a numeric type or boolean",
            Class::Integer => "an integer type",
            Class::IntegerOrBoolean => "an integer type or boolean",
            Class::Float => "a float type",
            Class::Boolean => "boolean",
            Class::Any => "any type",
        }
    }
}
