//! How a caller says which input or output of a model it means.

use crate::ffi::Text;
use crate::status::{Failure, Result, Status};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Input,
    Output,
}

/// Which of the ports on a side.
#[derive(Clone, Copy)]
pub(crate) enum Which<'a> {
    /// The one that there is.
    Only,
    Index(usize),
    Name(Text<'a>),
}

impl Side {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Side::Input => "input",
            Side::Output => "output",
        }
    }
}

/// The position among `ports` of the one that is asked for.
pub(crate) fn find(ports: &[vinelift::Port], side: Side, which: Which<'_>) -> Result<usize> {
    let (count, side) = (ports.len(), side.name());
    match which {
        Which::Only if count == 1 => Ok(0),
        Which::Only => {
            let text = format!("the model has {count} {side}s, expected one");
            Err(Failure::new(Status::ParameterMismatch, text))
        }
        Which::Index(index) if index < count => Ok(index),
        Which::Index(index) => {
            let text = format!("the model has no {side} {index}, it has {count}");
            Err(Failure::new(Status::OutOfBounds, text))
        }
        Which::Name(name) => {
            let name = name.required("tensor_name")?;
            find_named(ports, name).ok_or_else(|| {
                let known: Vec<String> = ports.iter().map(|p| format!("'{}'", p.name())).collect();
                let known = known.join(", ");
                let text = format!("the model has no {side} '{name}', its {side}s are {known}");
                Failure::new(Status::NotFound, text)
            })
        }
    }
}

pub(crate) fn find_named(ports: &[vinelift::Port], name: &str) -> Option<usize> {
    let has_name = |port: &vinelift::Port| port.names.iter().any(|n| n == name);
    ports.iter().position(has_name)
}
