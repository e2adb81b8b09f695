//! Tensors from files, for the inputs of a model.

use crate::failure::Failure;
use crate::options::unknown_input;
use clap::Args;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use vinelift::{InferRequest, PartialShape, Port, Shape, Tensor};

#[derive(Args)]
pub(crate) struct InputArgs {
    /// A tensor for an input: .npy, or .json for strings. Without a name, files fill the inputs in
    /// the model's order
    #[arg(long = "input", value_name = "[NAME=]FILE")]
    inputs: Vec<String>,
}

impl InputArgs {
    /// Whether there is a file for an input.
    pub(crate) fn is_given(&self) -> bool {
        !self.inputs.is_empty()
    }

    /// That every input of `request` has a tensor. `or` says what else than a file would give it one.
    pub(crate) fn require_all(&self, request: &InferRequest, or: &str) -> Result<(), Failure> {
        let ports = request.compiled_model().inputs().iter().enumerate();
        let missing = ports.filter(|(k, _)| !request.has_input(*k));
        let missing: Vec<&Port> = missing.map(|(_, port)| port).collect();
        let Some(first) = missing.first() else {
            return Ok(());
        };
        let all = missing.iter();
        let all = all.map(|port| format!("'{}' {}{}", port.name(), port.element_type, port.shape));
        let all: Vec<String> = all.collect();
        Err(Failure::Message(format!(
            "no tensor for input {}: `--input {}=FILE` gives one{or}",
            all.join(", "),
            first.name()
        )))
    }
    /// Reads the files and hands them to `request`. `shapes` has those that are given for inputs, by
    /// position: a file of elements of less than a byte does not say its own.
    pub(crate) fn set(
        &self,
        request: &mut InferRequest,
        shapes: &[Option<Shape>],
    ) -> Result<(), Failure> {
        let ports = request.compiled_model().inputs().to_vec();
        for (position, path) in assign(&self.inputs, &ports, Path::exists)? {
            let port = &ports[position];
            let failure =
                |e: &dyn Display| Failure::Message(format!("input '{}': {e}", port.name()));
            let given = shapes.get(position).and_then(Option::as_deref);
            let shape = given.map_or(port.shape.clone(), PartialShape::from);
            if port.element_type.is_packed() && !shape.is_static() {
                let ty = port.element_type;
                let text = format!(
                    "a file of packed {ty} does not say its shape, and {shape} is not static: `--shape` gives it"
                );
                return Err(failure(&text));
            }
            let tensor = Tensor::read_file(&path, port.element_type, &shape);
            let tensor = tensor.map_err(|e| failure(&e))?;
            request.set_input_at(position, tensor)?;
        }
        Ok(())
    }
}

/// The position and the file of every input that has one.
fn assign(
    arguments: &[String],
    ports: &[Port],
    exists: impl Fn(&Path) -> bool,
) -> Result<Vec<(usize, PathBuf)>, Failure> {
    let mut files: Vec<Option<PathBuf>> = vec![None; ports.len()];
    let mut unnamed = Vec::new();
    for argument in arguments {
        let split = argument.match_indices('=').find_map(|(at, _)| {
            let position = ports
                .iter()
                .position(|port| port.names.iter().any(|n| *n == argument[..at]))?;
            Some((position, &argument[at + 1..]))
        });
        match (split, argument.split_once('=')) {
            (Some((position, file)), _) => {
                if files[position].replace(file.into()).is_some() {
                    let name = ports[position].name();
                    return Err(Failure::Message(format!("two files for input '{name}'")));
                }
            }
            (None, Some((name, _))) if !exists(Path::new(argument)) => {
                return Err(Failure::Message(unknown_input(name, ports)));
            }
            _ => unnamed.push(PathBuf::from(argument)),
        }
    }
    let mut free = (0..ports.len())
        .filter(|k| files[*k].is_none())
        .collect::<Vec<_>>()
        .into_iter();
    for file in unnamed {
        let Some(position) = free.next() else {
            let (given, count) = (arguments.len(), ports.len());
            return Err(Failure::Message(format!(
                "{given} files for the {count} inputs of the model"
            )));
        };
        files[position] = Some(file);
    }
    Ok(files
        .into_iter()
        .enumerate()
        .filter_map(|(k, file)| Some((k, file?)))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use vinelift::ElementType;

    #[test]
    fn files_find_their_inputs() {
        let port = |name: &str| Port {
            names: vec![name.to_owned()],
            element_type: ElementType::F32,
            shape: PartialShape::DYNAMIC,
        };
        let ports = [port("a"), port("b=c"), port("d")];
        let assign = |arguments: &[&str]| {
            let arguments: Vec<String> = arguments.iter().map(|a| a.to_string()).collect();
            let files = assign(&arguments, &ports, |path| path == Path::new("x=y.npy"));
            let text = |(k, path): &(usize, PathBuf)| format!("{k} {}", path.display());
            files
                .map(|f| f.iter().map(text).collect::<Vec<_>>().join(", "))
                .map_err(|e| e.to_string())
        };
        assert_eq!(
            assign(&["b=c=1.npy", "2.npy", "3.npy"]).unwrap(),
            "0 2.npy, 1 1.npy, 2 3.npy"
        );
        assert_eq!(assign(&["x=y.npy"]).unwrap(), "0 x=y.npy");
        assert_eq!(
            assign(&["x=z.npy"]).unwrap_err(),
            "the model has no input 'x', its inputs are 'a', 'b=c', 'd'"
        );
        assert_eq!(
            assign(&["a=1", "a=2"]).unwrap_err(),
            "two files for input 'a'"
        );
        assert_eq!(
            assign(&["1", "2", "3", "4"]).unwrap_err(),
            "4 files for the 3 inputs of the model"
        );
    }
}
