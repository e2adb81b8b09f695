//! Tensors from files, for the inputs of a model.

use crate::failure::Failure;
use crate::image_file::{ImageArgs, is_image};
use crate::options::unknown_input;
use clap::Args;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use vinelift::{ElementType, FileError, InferRequest, PartialShape, Port, Shape, Tensor};

#[derive(Args)]
pub(crate) struct InputArgs {
    /// A tensor for an input: .npy, .json for strings, .png or .jpg, or the value of a scalar. Without a name, files fill
    /// the inputs in the model's order
    #[arg(long = "input", value_name = "[NAME=]FILE")]
    inputs: Vec<String>,
    /// Cast the elements of .npy files to the inputs' types: floats are rounded, integers must fit
    #[arg(long)]
    cast: bool,
    #[command(flatten)]
    image: ImageArgs,
}

impl InputArgs {
    /// Whether there is a file for an input.
    pub(crate) fn is_given(&self) -> bool {
        !self.inputs.is_empty()
    }

    /// Refuses a `request` that lacks the tensor of an input; `or` names the arguments besides files that would give one.
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
            let tensor = self.read(&path, port, &shape).map_err(|e| failure(&e))?;
            request.set_input_at(position, tensor)?;
        }
        Ok(())
    }
}

impl InputArgs {
    fn read(&self, path: &Path, port: &Port, shape: &PartialShape) -> Result<Tensor, String> {
        let ty = port.element_type;
        if is_image(path) {
            return self.image.read(path, ty, shape);
        }
        if let Some(tensor) = path.to_str().and_then(|text| literal(text, ty, shape))
            && !path.exists()
        {
            return tensor;
        }
        let tensor = match self.cast {
            true => Tensor::read_file_cast(path, ty, shape),
            false => Tensor::read_file(path, ty, shape),
        };
        tensor.map_err(|e| match (&e, self.cast) {
            (FileError::In { source, .. }, false)
                if matches!(**source, FileError::ElementType { .. }) =>
            {
                format!("{e}: `--cast` casts them")
            }
            _ => e.to_string(),
        })
    }
}

/// The tensor of one element that `text` is the value of: a number, `true` or `false`, or a string in quotes. `None` if it
/// is no value, or if the shape has not exactly one element.
fn literal(text: &str, ty: ElementType, shape: &PartialShape) -> Option<Result<Tensor, String>> {
    let ones = vec![1; shape.rank().unwrap_or(0)];
    if !shape.contains(&ones) {
        return None;
    }
    let tensor = match ty {
        ElementType::String => Tensor::from_strings(&ones, vec![serde_json::from_str(text).ok()?]),
        _ => match (
            text.parse::<i64>(),
            text.parse::<u64>(),
            text.parse::<f64>(),
            text,
        ) {
            (Ok(x), ..) => Tensor::from_slice(&ones, &[x]),
            (_, Ok(x), ..) => Tensor::from_slice(&ones, &[x]),
            (_, _, Ok(x), _) => Tensor::from_slice(&ones, &[x]),
            (.., "true" | "false") => Tensor::from_bools(&ones, &[text == "true"]),
            _ => return None,
        }
        .and_then(|tensor| tensor.cast(ty)),
    };
    Some(tensor.map_err(|e| e.to_string()))
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

    #[test]
    fn scalars_may_be_written_out() {
        let of = |text: &str, ty, shape: &[usize]| {
            let tensor = literal(text, ty, &PartialShape::from(shape))?;
            Some(tensor.map(|t| (t.first_values(1).join(""), t.shape().to_vec())))
        };
        let is = |text: &str, shape: &[usize]| Some(Ok((text.to_owned(), shape.to_vec())));
        assert_eq!(of("0.5", ElementType::F32, &[]), is("0.5", &[]));
        assert_eq!(of("-3", ElementType::I64, &[1, 1]), is("-3", &[1, 1]));
        for most in [i64::MAX as u64 + 2, u64::MAX].map(|x| x.to_string()) {
            assert_eq!(of(&most, ElementType::U64, &[]), is(&most, &[]));
        }
        assert_eq!(of("true", ElementType::Boolean, &[1]), is("true", &[1]));
        assert_eq!(of("\"a\"", ElementType::String, &[]), is("\"a\"", &[]));
        assert_eq!(of("2", ElementType::F32, &[2]), None);
        assert_eq!(of("x.npy", ElementType::F32, &[]), None);
        let error = "1.5 of type f64 is no i32".to_owned();
        assert_eq!(of("1.5", ElementType::I32, &[]), Some(Err(error)));
    }

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
