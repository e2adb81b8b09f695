//! Outputs of a loop that put a result of every iteration side by side along an axis.

use super::parts::{part, put, put_strings};
use super::{ControlError, Slices};
use vinelift_ops::TensorType;
use vinelift_tensor::memory::{extend, filled, push};
use vinelift_tensor::{ElementType, Shape, Tensor, TensorError};

/// The parts of an output that there are so far. Where there is no memory for more, that is an error, however small each
/// is.
pub(super) enum Collected {
    /// Each in its place in the output, whose shape is known before there is one.
    InPlace(InPlace),
    /// Each after the one before it, of an output whose shape they decide.
    InTurn(InTurn),
}

impl Collected {
    /// No parts yet of an output of type `ty`. Its shape, if it is known, is that after all the iterations that there are at
    /// `most`.
    pub(super) fn new(
        slices: Slices,
        ty: &TensorType,
        most: Option<usize>,
    ) -> Result<Collected, TensorError> {
        match InPlace::new(slices, ty, most) {
            Some(parts) => Ok(Collected::InPlace(parts?)),
            None => Ok(Collected::InTurn(InTurn::new(slices))),
        }
    }

    /// Adds the part that the next iteration gave.
    pub(super) fn add<E>(&mut self, part: &Tensor) -> Result<(), ControlError<E>> {
        match self {
            Collected::InPlace(parts) => parts.add(part),
            Collected::InTurn(parts) => parts.add(part),
        }
    }

    /// The output. If there are no parts, it is the least that `ty` allows, and empty along the axis.
    pub(super) fn side_by_side(self, ty: &TensorType) -> Result<Tensor, TensorError> {
        match self {
            Collected::InPlace(parts) => parts.side_by_side(),
            Collected::InTurn(mut parts) => match parts.first.take() {
                Some(first) => parts.side_by_side(first),
                None => nothing(parts.slices, ty),
            },
        }
    }
}

/// Parts in their places.
pub(super) struct InPlace {
    output: Tensor,
    axis: usize,
    backward: bool,
    /// The shape of each part.
    shape: Shape,
    /// How many parts there will be, and how many there are.
    count: usize,
    done: usize,
}

impl InPlace {
    /// `None` if the shape of the output is not known, or not that of as many equal parts as there are iterations.
    fn new(
        slices: Slices,
        ty: &TensorType,
        most: Option<usize>,
    ) -> Option<Result<InPlace, TensorError>> {
        let whole = ty
            .shape
            .to_static()
            .filter(|_| ty.element != ElementType::String)?;
        let axis = slices.axis(whole.len())?;
        let count = most.filter(|n| *n > 0 && whole[axis].is_multiple_of(*n))?;
        let mut shape = whole.clone();
        shape[axis] /= count;
        let output = Tensor::zeros(ty.element, &whole);
        Some(output.map(|output| InPlace {
            output,
            axis,
            backward: slices.stride < 0,
            shape,
            count,
            done: 0,
        }))
    }

    fn add<E>(&mut self, part: &Tensor) -> Result<(), ControlError<E>> {
        let is_of_type = part.element_type() == self.output.element_type();
        if !is_of_type || part.shape() != self.shape || self.done == self.count {
            return Err(misfit(&self.shape, part.shape(), self.axis));
        }
        let place = match self.backward {
            true => self.count - 1 - self.done,
            false => self.done,
        };
        self.done += 1;
        let extent = self.shape[self.axis];
        let at = (self.axis, place * extent);
        Ok(put(part.bytes(), extent, &mut self.output, at)?)
    }

    fn side_by_side(self) -> Result<Tensor, TensorError> {
        if self.done == self.count {
            return Ok(self.output);
        }
        let extent = self.shape[self.axis];
        let missing = match self.backward {
            true => self.count - self.done,
            false => 0,
        };
        part(
            &self.output,
            self.axis,
            missing * extent,
            self.done * extent,
        )
    }
}

/// Parts in turn.
pub(super) struct InTurn {
    slices: Slices,
    /// Their elements, of which the strings are apart.
    bytes: Vec<u8>,
    strings: Vec<String>,
    /// The type and the shape of the first part, and its axis.
    first: Option<(ElementType, Shape, usize)>,
    /// The extent along the axis of each part.
    extents: Vec<usize>,
}

impl InTurn {
    fn new(slices: Slices) -> InTurn {
        InTurn {
            slices,
            bytes: Vec::new(),
            strings: Vec::new(),
            first: None,
            extents: Vec::new(),
        }
    }

    fn add<E>(&mut self, part: &Tensor) -> Result<(), ControlError<E>> {
        let (ty, shape) = (part.element_type(), part.shape());
        let Some(axis) = self.slices.axis(shape.len()) else {
            let text = format!("axis {} of {shape:?}", self.slices.axis);
            return Err(ControlError::Data(text));
        };
        let (of, first, _) = self.first.get_or_insert((ty, shape.to_vec(), axis));
        let fits = *of == ty
            && first.len() == shape.len()
            && (0..shape.len()).all(|d| d == axis || first[d] == shape[d]);
        if !fits {
            return Err(misfit(first, shape, axis));
        }
        push(&mut self.extents, shape[axis])?;
        let strings = part.strings().unwrap_or_default();
        extend(&mut self.strings, strings.iter().cloned())?;
        Ok(extend(&mut self.bytes, part.bytes().iter().copied())?)
    }

    fn side_by_side(
        mut self,
        (element, mut shape, axis): (ElementType, Shape, usize),
    ) -> Result<Tensor, TensorError> {
        let backward = self.slices.stride < 0;
        let extents = self.extents.iter();
        shape[axis] = extents.fold(0, |sum: usize, n| sum.saturating_add(*n));
        let is_in_order = !backward && shape[..axis].iter().all(|n| *n == 1);
        let is_string = element == ElementType::String;
        if is_in_order && is_string {
            return Tensor::from_strings(&shape, self.strings);
        }
        if is_in_order && !element.is_packed() {
            self.bytes.shrink_to_fit();
            return Tensor::from_memory(element, &shape, self.bytes);
        }
        let mut output = Tensor::zeros(element, &shape)?;
        let count = output.element_count();
        if count == 0 {
            return Ok(output);
        }
        let mut strings = filled(if is_string { count } else { 0 }, String::new())?;
        let (mut from, mut place) = (0, 0);
        for extent in self.extents {
            let elements = count / shape[axis] * extent;
            let at = match backward {
                true => shape[axis] - place - extent,
                false => place,
            };
            from += match is_string {
                true => {
                    let part = &mut self.strings[from..from + elements];
                    put_strings(part, extent, (&mut strings, &shape), (axis, at));
                    elements
                }
                false => {
                    let bytes = element.byte_len(elements).unwrap_or(0);
                    let part = &self.bytes[from..from + bytes];
                    put(part, extent, &mut output, (axis, at))?;
                    bytes
                }
            };
            place += extent;
        }
        match is_string {
            true => Tensor::from_strings(&shape, strings),
            false => Ok(output),
        }
    }
}

/// The least that a type allows, and empty along the axis of the slices.
fn nothing(slices: Slices, ty: &TensorType) -> Result<Tensor, TensorError> {
    let dims = ty.shape.dims().unwrap_or_default();
    let mut shape: Shape = dims.iter().map(|d| d.min()).collect();
    if let Some(axis) = slices.axis(shape.len()) {
        shape[axis] = 0;
    }
    Tensor::zeros(ty.element, &shape)
}

fn misfit<E>(first: &[usize], other: &[usize], axis: usize) -> ControlError<E> {
    ControlError::Data(format!(
        "iterations gave {first:?} and {other:?}, which do not fit side by side along axis {axis}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;
    use vinelift_tensor::{Dim, PartialShape};

    fn slices(axis: i64, stride: i64) -> Slices {
        Slices {
            axis,
            start: 0,
            end: -1,
            stride,
            part: 1,
        }
    }

    fn ty(element: ElementType, dims: &[Option<usize>]) -> TensorType {
        let dims = dims.iter().map(|d| d.map_or(Dim::ANY, Dim::fixed));
        TensorType::new(element, PartialShape::ranked(dims.collect()))
    }

    fn collected(slices: Slices, ty: &TensorType, most: Option<usize>, parts: &[Tensor]) -> Tensor {
        let mut collected = Collected::new(slices, ty, most).unwrap();
        for part in parts {
            collected.add::<Infallible>(part).unwrap();
        }
        collected.side_by_side(ty).unwrap()
    }

    #[test]
    fn outputs_are_the_same_whether_their_shapes_are_known_or_not() {
        let all: Vec<i32> = (0..24).collect();
        for (axis, stride) in [(0, 1), (0, -1), (1, 1), (1, -1), (-1, 1), (2, -1)] {
            // Four parts of [2, 3, 1], the axis moved to its place.
            let mut shape = vec![2, 3];
            let position = usize::try_from(axis).unwrap_or(2);
            shape.insert(position, 1);
            let parts = all.chunks(6).map(|part| Tensor::from_slice(&shape, part));
            let parts: Vec<Tensor> = parts.collect::<Result<_, _>>().unwrap();
            shape[position] = 4;
            let known: Vec<Option<usize>> = shape.iter().copied().map(Some).collect();
            let outputs = [known, vec![None; 3]].map(|dims| {
                let ty = ty(ElementType::I32, &dims);
                collected(slices(axis, stride), &ty, Some(4), &parts)
            });
            assert_eq!(outputs[0], outputs[1], "axis {axis}, stride {stride}");
            assert_eq!(outputs[0].shape(), shape);
            // Element (i, j) of part k is `6 k + 3 i + j`.
            let first = outputs[0].to_i64_vec().unwrap()[0];
            assert_eq!(first, if stride > 0 { 0 } else { 18 });
        }
    }

    #[test]
    fn a_loop_may_end_early() {
        let part = |n: i32| Tensor::from_slice(&[1, 2], &[n, n]).unwrap();
        for (stride, expected) in [(1, [5, 5, 6, 6]), (-1, [6, 6, 5, 5])] {
            let ty = ty(ElementType::I32, &[Some(3), Some(2)]);
            let output = collected(slices(0, stride), &ty, Some(3), &[part(5), part(6)]);
            assert_eq!(output, Tensor::from_slice(&[2, 2], &expected).unwrap());
        }
        let dims = [Dim::ANY, Dim::fixed(2), Dim::between(1, None)];
        let ty = TensorType::new(ElementType::I32, PartialShape::ranked(dims.to_vec()));
        let none = collected(slices(0, 1), &ty, Some(3), &[]);
        assert_eq!(none.shape(), [0, 2, 1]);
    }

    #[test]
    fn elements_of_less_than_a_byte_lie_side_by_side() {
        let part = |codes: [u8; 2]| Tensor::from_bytes(ElementType::U4, &[1, 3], codes).unwrap();
        let parts = [part([0x21, 0x03]), part([0x54, 0x06])];
        for dims in [[Some(2), Some(3)], [None, Some(3)]] {
            let output = collected(slices(0, 1), &ty(ElementType::U4, &dims), Some(2), &parts);
            assert_eq!(output.to_i64_vec().unwrap(), [1, 2, 3, 4, 5, 6]);
        }
    }

    #[test]
    fn strings_lie_side_by_side() {
        let part = |all: [&str; 2]| {
            let all = all.map(str::to_owned).to_vec();
            Tensor::from_strings(&[2, 1], all).unwrap()
        };
        let parts = [part(["a", "b"]), part(["c", "d"])];
        let whole = |axis, stride| {
            let ty = ty(ElementType::String, &[Some(2), Some(2)]);
            let whole = collected(slices(axis, stride), &ty, Some(2), &parts);
            whole.strings().unwrap().concat()
        };
        assert_eq!(
            [whole(1, 1), whole(1, -1), whole(0, 1), whole(0, -1)],
            ["acbd", "cadb", "abcd", "cdab"]
        );
        let cut = super::part(&parts[0], 0, 1, 1).unwrap();
        assert_eq!(cut.strings().unwrap(), ["b"]);
    }

    #[test]
    fn more_than_memory_has_is_an_error() {
        let huge = ty(ElementType::F32, &[Some(1 << 50), Some(1)]);
        assert!(Collected::new(slices(0, 1), &huge, Some(1 << 50)).is_err());
    }

    #[test]
    fn parts_of_other_shapes_are_refused() {
        let part = |extent: usize| Tensor::zeros(ElementType::F32, &[1, extent]).unwrap();
        for dims in [[Some(2), Some(3)], [None, None]] {
            let ty = ty(ElementType::F32, &dims);
            let mut collected = Collected::new(slices(0, 1), &ty, Some(2)).unwrap();
            collected.add::<Infallible>(&part(3)).unwrap();
            let error = collected
                .add::<Infallible>(&part(4))
                .unwrap_err()
                .to_string();
            assert_eq!(
                error,
                "iterations gave [1, 3] and [1, 4], which do not fit side by side along axis 0"
            );
        }
    }
}
