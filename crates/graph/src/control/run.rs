//! Running nodes that have sub-graphs.

use super::collected::Collected;
use super::parts::part;
use super::{Branch, Collect, Control, ControlError, Feed, Repeat, iteration_shape};
use vinelift_ops::TensorType;
use vinelift_tensor::{ElementType, Tensor, TensorError};
use vinelift_xml::BodyKind;

/// Where a loop that nothing bounds is taken to be one that never ends.
const MOST_ITERATIONS: usize = 1 << 31;

/// Runs a body of the node on the values of its parameters, and gives its results.
pub trait Body<E> {
    /// The results of the body of this kind.
    fn run(&mut self, kind: BodyKind, parameters: Vec<Tensor>) -> Result<Vec<Tensor>, E>;

    /// A result after the last iteration, of which the last run gave `value`.
    fn last(&mut self, result: usize, value: &Tensor) -> Result<Tensor, E>;

    /// The type of a parameter of the body of a loop.
    fn parameter(&self, parameter: usize) -> TensorType;

    /// The type of an output of the node, as far as it is known without running it.
    fn output(&self, output: usize) -> &TensorType;

    /// The types of all outputs of the node for these inputs, as far as they are known without running a body.
    fn outputs(&self, inputs: &[Tensor]) -> Vec<TensorType>;
}

impl Control {
    /// The outputs for these inputs.
    pub fn run<E>(
        &self,
        inputs: &[Tensor],
        body: &mut impl Body<E>,
    ) -> Result<Vec<Tensor>, ControlError<E>> {
        match self {
            Control::If { then, otherwise } => {
                let (kind, branch) = if is_true(&inputs[0])? {
                    (BodyKind::Then, then)
                } else {
                    (BodyKind::Else, otherwise)
                };
                let Branch { feeds, outputs } = branch;
                let parameters = feeds.iter().map(|i| inputs[*i].clone()).collect();
                let results = body.run(kind, parameters).map_err(ControlError::Body)?;
                Ok(outputs.iter().map(|r| results[*r].clone()).collect())
            }
            Control::Repeat(repeat) => repeat.run(inputs, body),
        }
    }
}

impl Repeat {
    fn run<E>(
        &self,
        inputs: &[Tensor],
        body: &mut impl Body<E>,
    ) -> Result<Vec<Tensor>, ControlError<E>> {
        let most = self.most_iterations(inputs)?;
        let mut goes_on = !self.counted || is_true(&inputs[1])?;
        let mut collected = self.collected(most, body)?;
        let mut last: Option<Vec<Tensor>> = None;
        let mut iteration = 0;
        while goes_on && most.is_none_or(|n| iteration < n) {
            let parameters = self.parameters(inputs, last.as_deref(), iteration, body)?;
            let results = body
                .run(BodyKind::Body, parameters)
                .map_err(ControlError::Body)?;
            for (collect, collected) in self.outputs.iter().zip(&mut collected) {
                if let Some(collected) = collected {
                    collected.add(&results[collect.result()])?;
                }
            }
            goes_on = match self.condition {
                Some(result) => is_true(&results[result])?,
                None => true,
            };
            last = Some(results);
            iteration += 1;
            if most.is_none() && iteration >= MOST_ITERATIONS {
                let text = format!("it has not ended after {iteration} iterations");
                return Err(ControlError::Data(text));
            }
        }
        // Without an iteration, the shape follows from the inputs alone: the type in the plan covers other inputs, too.
        let types = (iteration == 0).then(|| body.outputs(inputs));
        let ty = |output: usize| types.as_ref().and_then(|types| types.get(output));
        let outputs = self.outputs.iter().zip(collected).enumerate();
        let outputs = outputs.map(|(output, (collect, collected))| match collected {
            Some(collected) => {
                let ty = ty(output).unwrap_or(body.output(output));
                Ok(collected.side_by_side(ty)?)
            }
            None => self.last(collect.result(), last.as_deref(), inputs, body),
        });
        outputs.collect()
    }

    /// Empty collections, for the outputs that collect a result of every iteration; a loop has at `most` this many iterations.
    fn collected<E>(
        &self,
        most: Option<usize>,
        body: &impl Body<E>,
    ) -> Result<Vec<Option<Collected>>, TensorError> {
        let outputs = self.outputs.iter().enumerate();
        let collected = outputs.map(|(output, collect)| match collect {
            Collect::Last(_) => Ok(None),
            Collect::All(_, slices) => Collected::new(*slices, body.output(output), most).map(Some),
        });
        collected.collect()
    }

    /// The number of iterations that there are at most; `None` if nothing bounds it.
    fn most_iterations<E>(&self, inputs: &[Tensor]) -> Result<Option<usize>, ControlError<E>> {
        let mut most = None;
        if self.counted {
            let count = inputs[0].to_i64_vec()?.first().copied().unwrap_or(0);
            most = usize::try_from(count).ok();
            if count < -1 {
                let text = format!("`trip_count` is {count}, expected -1 or more");
                return Err(ControlError::Data(text));
            }
            // Slices that run out are an error, not the end.
            return Ok(most);
        }
        for (i, slices) in self.slices() {
            let shape = inputs[i].shape();
            let axis = slices.axis(shape.len());
            let count = axis.map_or(0, |a| slices.count(shape[a]));
            if most.is_some_and(|n| n != count) {
                let text = format!(
                    "input {i} {shape:?} has {count} slices, others have {}",
                    most.unwrap_or(0)
                );
                return Err(ControlError::Data(text));
            }
            most = Some(count);
        }
        Ok(Some(most.unwrap_or(1)))
    }

    fn parameters<E>(
        &self,
        inputs: &[Tensor],
        last: Option<&[Tensor]>,
        iteration: usize,
        body: &impl Body<E>,
    ) -> Result<Vec<Tensor>, ControlError<E>> {
        let feeds = self.feeds.iter().enumerate();
        feeds
            .map(|(k, feed)| match feed {
                Feed::Whole(i) => Ok(inputs[*i].clone()),
                Feed::Carried { first, result } => {
                    Ok(last.map_or(&inputs[*first], |last| &last[*result]).clone())
                }
                Feed::Slice(i, slices) => {
                    let whole = &inputs[*i];
                    let shape = whole.shape();
                    let axis = slices.axis(shape.len());
                    let axis = axis.filter(|a| iteration < slices.count(shape[*a]));
                    let Some(axis) = axis else {
                        let text = format!("input {i} {shape:?} has no slice {iteration}");
                        return Err(ControlError::Data(text));
                    };
                    let offset = slices.offset(iteration, shape[axis]);
                    Ok(part(whole, axis, offset, slices.part)?)
                }
                Feed::Iteration => Ok(number(iteration, &body.parameter(k))?),
            })
            .collect()
    }

    /// A result after the last iteration, or what it would have been carried from.
    fn last<E>(
        &self,
        result: usize,
        last: Option<&[Tensor]>,
        inputs: &[Tensor],
        body: &mut impl Body<E>,
    ) -> Result<Tensor, ControlError<E>> {
        if let Some(last) = last {
            let value = body.last(result, &last[result]);
            return value.map_err(ControlError::Body);
        }
        match self.carried(result).map(|p| &self.feeds[p]) {
            Some(Feed::Carried { first, .. }) => Ok(inputs[*first].clone()),
            _ => Err(ControlError::Data(
                "no iteration has given a value to one of its outputs".to_owned(),
            )),
        }
    }
}

fn is_true<E>(condition: &Tensor) -> Result<bool, ControlError<E>> {
    match condition.to_i64_vec()?.as_slice() {
        [value] => Ok(*value != 0),
        all => Err(ControlError::Data(format!(
            "a condition of {} elements, expected 1",
            all.len()
        ))),
    }
}

/// The number of an iteration as a tensor of the type that the body declares.
fn number(iteration: usize, ty: &TensorType) -> Result<Tensor, TensorError> {
    let shape = iteration_shape(ty);
    match ty.element {
        ElementType::I32 => Tensor::from_slice(shape, &[iteration as i32]),
        _ => Tensor::from_slice(shape, &[iteration as i64]),
    }
}
