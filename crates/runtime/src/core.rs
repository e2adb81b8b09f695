//! The entry point: reads and compiles models.

use crate::{CompiledModel, Config, Error, Model, weights};
use bytes::Bytes;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use vinelift_codegen::Compiler;
use vinelift_xml::Weights;

/// Reads and compiles models. Cheap to clone; shared by any number of threads.
#[derive(Clone)]
pub struct Core {
    compiler: Arc<Compiler>,
}

impl std::fmt::Debug for Core {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Core").finish_non_exhaustive()
    }
}

impl Core {
    /// A core for the machine that this runs on.
    ///
    /// # Errors
    /// If no code can be made for it.
    pub fn new() -> Result<Core, Error> {
        Ok(Core {
            compiler: Arc::new(Compiler::new()?),
        })
    }

    /// Reads the model at `path`, an `.xml` file. Its constants are in the file of the same name that
    /// ends in `.bin`; a model without constants needs none.
    pub fn read_model(&self, path: impl AsRef<Path>) -> Result<Model, Error> {
        let path = path.as_ref();
        let bin = path.with_extension("bin");
        if bin.exists() {
            return read_mapped(path, &bin);
        }
        read(path, &Weights::default()).map_err(|error| match lacks_weights(&error) {
            false => error,
            true => Error::Io {
                source: std::io::Error::new(
                    ErrorKind::NotFound,
                    format!(
                        "there is no such file, which has the constants of `{}`",
                        path.display()
                    ),
                ),
                path: bin,
            },
        })
    }

    /// Reads the model at `path`, whose constants are in the file `weights`.
    pub fn read_model_with_weights(
        &self,
        path: impl AsRef<Path>,
        weights: impl AsRef<Path>,
    ) -> Result<Model, Error> {
        read_mapped(path.as_ref(), weights.as_ref())
    }

    /// Reads a model from the bytes of its two files.
    pub fn read_model_from_memory(
        &self,
        xml: &[u8],
        weights: impl Into<Bytes>,
    ) -> Result<Model, Error> {
        self.read_model_from_parts(xml, [weights.into()])
    }

    /// Reads a model from the bytes of its `.xml` file, and from parts of its weights that lie apart: they are as
    /// one file, in which no constant may lie in two parts. Constants stay where they are.
    pub fn read_model_from_parts(
        &self,
        xml: &[u8],
        weights: impl IntoIterator<Item = Bytes>,
    ) -> Result<Model, Error> {
        let document = vinelift_xml::read(xml).map_err(|source| vinelift_xml::Error::File {
            path: "model".into(),
            source: Box::new(source),
        })?;
        Model::build("model", document, &Weights::of_parts(weights))
    }

    /// Compiles a model as [`Config::default`] says.
    pub fn compile_model(&self, model: &Model) -> Result<CompiledModel, Error> {
        self.compile_model_with(model, Config::default())
    }

    /// Compiles a model. If the shapes of its inputs are known, its code is made now; otherwise when
    /// they are first seen.
    ///
    /// # Errors
    /// Names every layer that is unsupported or does not fit its inputs.
    pub fn compile_model_with(
        &self,
        model: &Model,
        config: Config,
    ) -> Result<CompiledModel, Error> {
        CompiledModel::new(model.clone(), self.compiler.clone(), config)
    }
}

/// Whether constants lie outside the weights.
fn lacks_weights(error: &Error) -> bool {
    let Error::Model { source, .. } = error else {
        return false;
    };
    let vinelift_graph::Error::Layers(layers) = source else {
        return false;
    };
    let mut problems = layers.iter().map(|layer| &layer.problem);
    problems.any(|p| matches!(p, vinelift_graph::Problem::Weights(_)))
}

fn read_mapped(path: &Path, weights: &Path) -> Result<Model, Error> {
    let (weights, mapped) = weights::map(weights)?;
    let model = read(path, &weights)?;
    Ok(Model { mapped, ..model })
}

fn read(path: &Path, weights: &Weights) -> Result<Model, Error> {
    let document = vinelift_xml::read_file(path)?;
    Model::build(&path.display().to_string(), document, weights)
}
