//! A `.run` file.

use crate::values::{difference, parse_tensor};
use std::path::Path;
use vinelift::{Config, Core, IndexPolicy, InferRequest, Level, Specialization, Tensor};

/// Inputs, and what a model must make of them.
#[derive(Debug)]
pub struct Run {
    close: f64,
    policy: IndexPolicy,
    /// Inferences of one request, one after the other; at least one.
    steps: Vec<Step>,
}

/// One inference.
#[derive(Debug)]
struct Step {
    inputs: Vec<(String, Tensor)>,
    expected: Expected,
}

/// The results that a model must give for its inputs.
#[derive(Debug)]
pub enum Expected {
    /// These outputs.
    Outputs(Vec<Tensor>),
    /// An error that ends in this message.
    Error(String),
}

impl Run {
    /// Reads a file.
    pub fn parse(text: &str) -> Result<Run, String> {
        let mut run = Run {
            close: 0.0,
            policy: IndexPolicy::Spec,
            steps: vec![Step::new()],
        };
        for (number, line) in text.lines().enumerate() {
            run.line(line)
                .map_err(|e| format!("line {}: {e}", number + 1))?;
        }
        if !text.starts_with('#') {
            return Err("the first line must say where the expected values come from".to_owned());
        }
        Ok(run)
    }

    fn line(&mut self, line: &str) -> Result<(), String> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        if word == "step" {
            self.steps.push(Step::new());
            return Ok(());
        }
        let step = self.steps.last_mut().ok_or("no step")?;
        match word {
            "" | "#" => {}
            "close" => {
                self.close = rest
                    .parse()
                    .map_err(|_| format!("bad tolerance `{rest}`"))?
            }
            "index-policy" => {
                self.policy = match rest {
                    "error" => IndexPolicy::Error,
                    "zero" => IndexPolicy::Zero,
                    _ => return Err(format!("unknown policy `{rest}`")),
                }
            }
            "input" => {
                let (name, tensor) = rest.split_once(": ").ok_or("no name")?;
                step.inputs.push((name.to_owned(), parse_tensor(tensor)?));
            }
            "output" => {
                let (_, tensor) = rest.split_once(": ").ok_or("no number")?;
                if let Expected::Outputs(outputs) = &mut step.expected {
                    outputs.push(parse_tensor(tensor)?);
                }
            }
            "error" => step.expected = Expected::Error(rest.to_owned()),
            _ => return Err(format!("unknown line `{line}`")),
        }
        Ok(())
    }

    /// Runs the model at `path` at a level, and tells what is not as expected.
    pub fn check(&self, core: &Core, path: &Path, level: Level) -> Result<(), String> {
        let text = |e: vinelift::Error| e.to_string();
        let config = Config {
            level,
            index_policy: self.policy,
            // Where a sample leaves shapes open: code for one shape is what the other samples run.
            specialization: Specialization::Generic,
            ..Config::default()
        };
        let model = core.read_model(path).map_err(text);
        let compiled = model.and_then(|m| core.compile_model_with(&m, config).map_err(text));
        let mut request = compiled.map(|c| c.create_request());
        for (number, step) in self.steps.iter().enumerate() {
            let got = match &mut request {
                Ok(request) => step.outputs(request),
                Err(error) => Err(error.clone()),
            };
            let place = match self.steps.len() {
                1 => String::new(),
                _ => format!("step {number}: "),
            };
            step.compare(got, self.close).map_err(|e| place + &e)?;
        }
        Ok(())
    }

    /// Whether `error`, which says why there is no nest, is the one with which the run must end.
    pub fn refuses(&self, error: String) -> Result<(), String> {
        self.steps[0].compare(Err(error), self.close)
    }

    /// The text of the nest that the model has for these inputs.
    pub fn nest(&self, core: &Core, path: &Path) -> Result<String, String> {
        let text = |e: vinelift::Error| e.to_string();
        let model = core.read_model(path).map_err(text)?;
        let config = Config {
            level: Level::Interpreted,
            index_policy: self.policy,
            ..Config::default()
        };
        let compiled = core.compile_model_with(&model, config).map_err(text)?;
        let shape = |port: &vinelift::Port| {
            let mut inputs = self.steps.iter().flat_map(|step| &step.inputs);
            let given = inputs.find(|(name, _)| port.names.contains(name));
            given.map(|(_, tensor)| tensor.shape().to_vec())
        };
        let shapes: Vec<_> = compiled.inputs().iter().map(shape).collect();
        compiled
            .dump(vinelift::Stage::Nest, &shapes, None)
            .map_err(text)
    }
}

impl Step {
    fn new() -> Step {
        Step {
            inputs: Vec::new(),
            expected: Expected::Outputs(Vec::new()),
        }
    }

    fn outputs(&self, request: &mut InferRequest) -> Result<Vec<Tensor>, String> {
        let text = |e: vinelift::Error| e.to_string();
        for (name, tensor) in &self.inputs {
            request.set_input(name, tensor.clone()).map_err(text)?;
        }
        request.infer().map_err(text)?;
        Ok(request.outputs().to_vec())
    }

    fn compare(&self, got: Result<Vec<Tensor>, String>, close: f64) -> Result<(), String> {
        match (got, &self.expected) {
            (Ok(got), Expected::Outputs(want)) => {
                if got.len() != want.len() {
                    return Err(format!("{} outputs, want {}", got.len(), want.len()));
                }
                let differ = |(k, (got, want)): (usize, (&Tensor, &Tensor))| {
                    difference(got, want, close).map(|d| format!("output {k}: {d}"))
                };
                match got.iter().zip(want).enumerate().find_map(differ) {
                    Some(difference) => Err(difference),
                    None => Ok(()),
                }
            }
            (Err(got), Expected::Error(want)) if got.ends_with(want.as_str()) => Ok(()),
            (Err(got), Expected::Error(want)) => {
                Err(format!("got the error\n  {got}\nwant\n  {want}"))
            }
            (Ok(_), Expected::Error(want)) => Err(format!("it ran, want the error\n  {want}")),
            (Err(got), Expected::Outputs(_)) => Err(format!("got the error\n  {got}")),
        }
    }
}
