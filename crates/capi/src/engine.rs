//! The tensors of a request, and lending their memory to a run.

use crate::buffer::Buffer;
use crate::status::{Failure, Result, Status};
use std::ops::Range;
use vinelift::{CompiledModel, RunOptions};

/// One of the tensors of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Slot {
    Input(usize),
    Output(usize),
}

/// A request of the library with the tensors that the program sees.
pub(crate) struct Engine {
    request: vinelift::InferRequest,
    inputs: Vec<Buffer>,
    outputs: Vec<Buffer>,
    /// Used to find out which outputs are apart from all else.
    places: Vec<Place>,
}

impl Engine {
    /// Tensors for all inputs and outputs. What is not known of a shape is 0.
    pub(crate) fn new(compiled: &CompiledModel) -> Result<Engine> {
        let buffers = |ports: &[vinelift::Port]| -> Result<Vec<Buffer>> {
            let buffer = |p: &vinelift::Port| Buffer::zeros(p.element_type, first_shape(&p.shape));
            ports.iter().map(buffer).collect()
        };
        Ok(Engine {
            request: compiled.create_request(),
            inputs: buffers(compiled.inputs())?,
            outputs: buffers(compiled.outputs())?,
            places: Vec::new(),
        })
    }

    /// The request that holds the variables.
    pub(crate) fn request(&mut self) -> &mut vinelift::InferRequest {
        &mut self.request
    }

    pub(crate) fn slot(&mut self, slot: Slot) -> Result<&mut Buffer> {
        let found = match slot {
            Slot::Input(position) => self.inputs.get_mut(position),
            Slot::Output(position) => self.outputs.get_mut(position),
        };
        let missing = || Failure::new(Status::OutOfBounds, format!("there is no {slot:?}"));
        found.ok_or_else(missing)
    }

    /// Runs on the tensors that there are.
    pub(crate) fn run(&mut self, options: RunOptions<'_>) -> Result<()> {
        let request = ForOneRun(&mut self.request);
        let request = &mut *request.0;
        for (position, input) in self.inputs.iter().enumerate() {
            request.set_input_at(position, input.view()?)?;
        }
        find_places(&mut self.places, &self.inputs, &self.outputs);
        for place in apart(&self.places) {
            if let Some(position) = place.output
                && let Some(memory) = self.outputs[position].lend()?
            {
                request.lend_output(position, memory)?;
            }
        }
        request.infer_with(options)?;
        // The program may change its memory after the run, and variables may still refer to it.
        request.own_variables()?;
        for (position, output) in self.outputs.iter().enumerate() {
            output.store(request.output(position)?)?;
        }
        Ok(())
    }
}

/// A request for one run. After it, even if it panics, the memory of a program is its own again, and may be
/// gone.
struct ForOneRun<'a>(&'a mut vinelift::InferRequest);

impl Drop for ForOneRun<'_> {
    fn drop(&mut self) {
        self.0.clear();
    }
}

/// The memory of an input, or of the output of this position.
struct Place {
    addresses: Range<usize>,
    output: Option<usize>,
}

/// The memory that there is of tensors, in the order of addresses.
fn find_places(places: &mut Vec<Place>, inputs: &[Buffer], outputs: &[Buffer]) {
    let inputs = inputs.iter().map(|input| (input, None));
    let outputs = outputs
        .iter()
        .enumerate()
        .map(|(k, output)| (output, Some(k)));
    places.clear();
    places.extend(inputs.chain(outputs).map(|(buffer, output)| Place {
        addresses: buffer.addresses(),
        output,
    }));
    places.sort_unstable_by_key(|place| place.addresses.start);
}

/// The members of `places` that share no byte with another. `places` are in order.
fn apart(places: &[Place]) -> impl Iterator<Item = &Place> {
    let mut end = 0;
    places.iter().enumerate().filter_map(move |(k, place)| {
        let addresses = &place.addresses;
        let begins_alone = addresses.start >= end;
        end = end.max(addresses.end);
        let next = places.get(k + 1);
        let is_apart = begins_alone && next.is_none_or(|next| next.addresses.start >= end);
        is_apart.then_some(place)
    })
}

/// The shape of a tensor before a run: 0 where an extent is not known.
pub(crate) fn first_shape(shape: &vinelift::PartialShape) -> vinelift::Shape {
    match shape.dims() {
        Some(dims) => dims.iter().map(|d| d.get().unwrap_or(0)).collect(),
        None => vec![0],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_lent_that_nothing_else_is_in() {
        let found = |inputs: &[(usize, usize)], outputs: &[(usize, usize)]| {
            let place = |(range, output): (&(usize, usize), _)| Place {
                addresses: range.0..range.1,
                output,
            };
            let outputs = outputs
                .iter()
                .enumerate()
                .map(|(k, range)| (range, Some(k)));
            let mut places: Vec<Place> = inputs
                .iter()
                .map(|r| (r, None))
                .chain(outputs)
                .map(place)
                .collect();
            places.sort_unstable_by_key(|place| place.addresses.start);
            let mut apart: Vec<usize> = apart(&places).filter_map(|place| place.output).collect();
            apart.sort_unstable();
            apart
        };
        assert_eq!(found(&[(0, 8), (8, 16)], &[(16, 24), (24, 32)]), [0, 1]);
        assert_eq!(found(&[(0, 8)], &[(0, 8), (8, 16)]), [1], "the same memory");
        assert_eq!(found(&[(0, 8)], &[(7, 9), (8, 10), (10, 12)]), [2]);
        assert_eq!(
            found(&[(0, 100)], &[(10, 20), (30, 40), (100, 101)]),
            [2],
            "in a large one"
        );
        assert_eq!(
            found(&[(50, 60)], &[(0, 100), (100, 110), (105, 106)]),
            [0usize; 0]
        );
        assert_eq!(
            found(&[], &[(4, 4), (4, 8), (8, 8)]),
            [0, 1, 2],
            "nothing is in them"
        );
    }
}
