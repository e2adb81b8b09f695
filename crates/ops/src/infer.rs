//! The context of `infer`: input types, partial shapes, and the values that are known.

use crate::attrs::is_index_type;
use crate::error::ensure;
use crate::{OpError, Signature};
use std::cell::Cell;
use vinelift_nest::{Interval, MAX_RANK, ValueRange};
use vinelift_tensor::{Dim, ElementType, Extent, Formula, PartialShape, Tensor};

/// An element type with what is known of the shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorType {
    /// Element type.
    pub element: ElementType,
    /// Shape.
    pub shape: PartialShape,
}

impl TensorType {
    /// A type.
    pub fn new(element: ElementType, shape: PartialShape) -> TensorType {
        TensorType { element, shape }
    }
}

impl std::fmt::Display for TensorType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", self.element, self.shape)
    }
}

/// The inputs of an operator, for [`crate::Op::infer`].
pub struct Infer<'a> {
    signature: Signature,
    inputs: &'a [TensorType],
    values: &'a [Option<&'a Tensor>],
    bounds: &'a [Option<Vec<ValueRange>>],
    outputs: Option<usize>,
    /// A bit for each input whose value was asked for and is not known.
    missing: Cell<u64>,
}

impl<'a> Infer<'a> {
    /// `values` has the value of each input that is known while compiling, at the example if it has symbols. Checks
    /// the number of inputs.
    pub fn new(
        signature: Signature,
        inputs: &'a [TensorType],
        values: &'a [Option<&'a Tensor>],
    ) -> Result<Infer<'a>, OpError> {
        if !signature.accepts(inputs.len()) {
            return Err(OpError::Inputs {
                found: inputs.len(),
                expected: signature.describe(),
            });
        }
        Ok(Infer {
            signature,
            inputs,
            values,
            bounds: &[],
            outputs: None,
            missing: Cell::new(0),
        })
    }

    /// The same with what is known of the elements of inputs whose values are not known, or have symbols.
    pub fn with_bounds(self, bounds: &'a [Option<Vec<ValueRange>>]) -> Infer<'a> {
        Infer { bounds, ..self }
    }

    /// The same with the number of outputs that the layer has.
    pub fn with_outputs(self, count: usize) -> Infer<'a> {
        Infer {
            outputs: Some(count),
            ..self
        }
    }

    /// Positions of the inputs whose values were asked for and are not known: the operator can be
    /// lowered only once they are.
    pub fn missing(&self) -> impl Iterator<Item = usize> + use<> {
        let missing = self.missing.get();
        (0..64).filter(move |i| missing >> i & 1 == 1)
    }

    /// Number of inputs.
    pub fn input_count(&self) -> usize {
        self.inputs.len()
    }

    /// The number of outputs that the layer has, if there is a layer: it may say more than the inputs do.
    pub fn output_count(&self) -> Option<usize> {
        self.outputs
    }

    /// All inputs, for variadic operators.
    pub fn inputs(&self) -> &[TensorType] {
        self.inputs
    }

    /// The name of input `i`.
    pub fn name(&self, i: usize) -> &'static str {
        self.signature.name(i)
    }

    /// Whether the optional input `name` is there.
    pub fn has(&self, name: &str) -> bool {
        self.signature.position(name) < self.inputs.len()
    }

    /// The type of input `name`.
    pub fn input(&self, name: &str) -> &TensorType {
        &self.inputs[self.signature.position(name)]
    }

    /// The element type of input `name`.
    pub fn element(&self, name: &str) -> ElementType {
        self.input(name).element
    }

    /// The shape of input `name`.
    pub fn shape(&self, name: &str) -> &PartialShape {
        &self.input(name).shape
    }

    /// The dims of input `name`, if its rank is known.
    pub fn dims(&self, name: &str) -> Option<&[Dim]> {
        self.shape(name).dims()
    }

    /// The value of input `name`, if it is known while compiling. `None` also if the optional input
    /// is not there. Asking marks the value as needed by `lower`.
    pub fn constant(&self, name: &str) -> Option<&'a Tensor> {
        let i = self.signature.position(name);
        if i >= self.inputs.len() {
            return None;
        }
        let value = self.values.get(i).copied().flatten();
        pin(self.bounds, i);
        if value.is_none() {
            self.missing.set(self.missing.get() | 1 << i);
        }
        value
    }

    /// As [`Infer::constant`], as integers; an error if the input is not of an integer type, has more
    /// than one dim, or more elements than a tensor can have dims.
    pub fn integers(&self, name: &'static str) -> Result<Option<Vec<i64>>, OpError> {
        self.integers_up_to(MAX_RANK, name)
    }

    /// As [`Infer::integers`], of at most `most` elements.
    pub fn integers_up_to(
        &self,
        most: usize,
        name: &'static str,
    ) -> Result<Option<Vec<i64>>, OpError> {
        if !self.has(name) {
            return Ok(None);
        }
        self.expect_integer(name)?;
        self.expect_list(name, most)?;
        let Some(tensor) = self.constant(name) else {
            return Ok(None);
        };
        let values = tensor.to_i64_vec();
        values
            .map(Some)
            .map_err(|e| OpError::Shape(format!("`{name}`: {e}")))
    }

    /// Input `name` must be a scalar or one-dimensional, and have at most `most` elements. It is checked
    /// before anything is made of that size.
    pub fn expect_list(&self, name: &'static str, most: usize) -> Result<(), OpError> {
        let found = self.shape(name);
        let Some(dims) = found.dims() else {
            return Ok(());
        };
        ensure!(
            dims.len() <= 1,
            "`{name}` must be a scalar or one-dimensional, found {found}"
        );
        ensure!(
            dims.iter().all(|dim| dim.min() <= most),
            "`{name}` must have at most {most} elements, found {found}"
        );
        Ok(())
    }

    /// As [`Infer::integers`], for an input of a single element.
    pub fn integer(&self, name: &'static str) -> Result<Option<i64>, OpError> {
        let Some(values) = self.integers(name)? else {
            return Ok(None);
        };
        ensure!(
            values.len() == 1,
            "`{name}` must hold one element, found {}",
            values.len()
        );
        Ok(Some(values[0]))
    }

    /// The ranges of the elements of input `name`, of an integer type: exact where
    /// its value is known. Unlike [`Infer::integers`] this does not ask for the value.
    pub fn intervals(&self, name: &str) -> Option<Vec<Interval>> {
        let i = self.signature.position(name);
        pin(self.bounds, i);
        if let Some(value) = self.values.get(i).copied().flatten() {
            let exactly = |v: &i64| Interval { low: *v, high: *v };
            return Some(value.to_i64_vec().ok()?.iter().map(exactly).collect());
        }
        let all = Interval {
            low: i64::MIN,
            high: i64::MAX,
        };
        let bounds = self.bounds.get(i)?.as_ref()?.iter();
        Some(bounds.map(|b| b.integer().unwrap_or(all)).collect())
    }

    /// As [`Infer::intervals`], as extents, which keep their symbols.
    pub fn extents(&self, name: &str) -> Option<Vec<Dim>> {
        if let Some(formulas) = self.formulas(name) {
            let dim = |formula: &Formula| Some(Extent::of(*formula)?.into());
            if let Some(dims) = formulas.iter().map(dim).collect() {
                return Some(dims);
            }
        }
        Some(self.intervals(name)?.into_iter().map(extent).collect())
    }

    /// As [`Infer::integers`], with their symbols where they have any.
    pub fn elements(&self, name: &'static str) -> Result<Option<Vec<Formula>>, OpError> {
        if self.has(name)
            && let Some(formulas) = self.formulas(name)
        {
            self.expect_integer(name)?;
            self.expect_list(name, MAX_RANK)?;
            return Ok(Some(formulas));
        }
        let numbers = self.integers(name)?;
        Ok(numbers.map(|n| n.into_iter().map(Formula::number).collect()))
    }

    /// The elements of input `name`, of an integer type, if they are known exactly and some have symbols.
    pub fn formulas(&self, name: &str) -> Option<Vec<Formula>> {
        formulas(self.bounds, self.signature.position(name))
    }

    /// The elements of input `name`, whatever its type is, if all are integers that are known exactly and some have symbols.
    pub fn whole_numbers(&self, name: &str) -> Option<Vec<Formula>> {
        whole_numbers(self.bounds, self.signature.position(name))
    }

    /// The number of elements of the one-dimensional (or scalar) input `name`, if known.
    pub fn length(&self, name: &str) -> Option<usize> {
        let shape = self.shape(name).to_static()?;
        vinelift_tensor::element_count(&shape)
    }

    /// The element type of input `name`, which must be one that `accepts` takes.
    pub fn expect(
        &self,
        name: &'static str,
        expected: &str,
        accepts: impl Fn(ElementType) -> bool,
    ) -> Result<ElementType, OpError> {
        let found = self.element(name);
        match accepts(found) {
            true => Ok(found),
            false => Err(wrong_type(name, expected, found)),
        }
    }

    /// The element type of input `name`, which must be an integer.
    pub fn expect_integer(&self, name: &'static str) -> Result<ElementType, OpError> {
        self.expect(name, "an integer type", ElementType::is_integer)
    }

    /// The element type of input `name`, which must be one that indices and lengths have: `i32` or `i64`.
    pub fn expect_index(&self, name: &'static str) -> Result<ElementType, OpError> {
        self.expect(name, "i32 or i64", is_index_type)
    }

    /// The element type that inputs `a` and `b` share.
    pub fn expect_same(&self, a: &'static str, b: &'static str) -> Result<ElementType, OpError> {
        let want = self.element(a);
        self.expect(b, &format!("of the type of `{a}`, {want}"), |t| t == want)
    }

    /// The rank of input `name` if known, which must be `rank`.
    pub fn expect_rank(&self, name: &'static str, rank: usize) -> Result<(), OpError> {
        let found = self.shape(name).rank().unwrap_or(rank);
        ensure!(
            found == rank,
            "`{name}` must have rank {rank}, found {}",
            self.shape(name)
        );
        Ok(())
    }
}

/// The elements of input `i`, if they are known exactly and some have symbols.
pub(crate) fn formulas(bounds: &[Option<Vec<ValueRange>>], i: usize) -> Option<Vec<Formula>> {
    symbolic(bounds, i, ValueRange::formula)
}

/// The elements of input `i`, whatever their type is, if all are integers that are known exactly and some have symbols.
pub(crate) fn whole_numbers(bounds: &[Option<Vec<ValueRange>>], i: usize) -> Option<Vec<Formula>> {
    symbolic(bounds, i, ValueRange::whole_number)
}

/// Makes a formula of each element of input `i` by `of`. `None` if one element has no formula, or no formula has symbols.
fn symbolic(
    bounds: &[Option<Vec<ValueRange>>],
    i: usize,
    of: fn(ValueRange) -> Option<Formula>,
) -> Option<Vec<Formula>> {
    let ranges = bounds.get(i)?.as_ref()?.iter();
    let numbers: Vec<Formula> = ranges.map(|range| of(*range)).collect::<Option<_>>()?;
    let is_symbolic = |number: &Formula| number.as_number().is_none();
    numbers.iter().any(is_symbolic).then_some(numbers)
}

/// Pins the elements of input `i` that have symbols.
pub(crate) fn pin(bounds: &[Option<Vec<ValueRange>>], i: usize) {
    for range in bounds.get(i).into_iter().flatten().flatten() {
        range.pinned();
    }
}

/// The extents in an interval.
pub(crate) fn extent(interval: Interval) -> Dim {
    let natural = |x: i64| usize::try_from(x.max(0)).unwrap_or(usize::MAX);
    // The largest number stands for no bound, except alone.
    let is_bounded = interval.high < i64::MAX || interval.low == interval.high;
    Dim::between(
        natural(interval.low),
        is_bounded.then(|| natural(interval.high)),
    )
}

/// `axis` counted from the front; it must lie in `-rank..rank`.
pub(crate) fn normalize_axis(axis: i64, rank: usize) -> Result<usize, OpError> {
    let n = rank as i64;
    ensure!(
        (-n..n).contains(&axis),
        "axis {axis} is out of range for rank {rank}"
    );
    Ok(if axis < 0 { axis + n } else { axis } as usize)
}

/// The dim of `axis`, which is counted from the front or, if negative, from the end. A scalar counts as one dim of one element, as it
/// does for OpenVINO: `axis` is 0 or -1 then, and there is no dim.
pub(crate) fn dim_of_axis(axis: i64, rank: usize) -> Result<Option<usize>, OpError> {
    let dim = normalize_axis(axis, rank.max(1))?;
    Ok((dim < rank).then_some(dim))
}

/// For each dim, whether one of `axes` is it, by the rule of [`dim_of_axis`].
pub(crate) fn dims_of_axes(axes: &[i64], rank: usize) -> Result<Vec<bool>, OpError> {
    let mut named = vec![false; rank];
    for &axis in axes {
        if let Some(dim) = dim_of_axis(axis, rank)? {
            named[dim] = true;
        }
    }
    Ok(named)
}

/// Distinct axes counted from the front, in the order given.
pub(crate) fn normalize_axes(axes: &[i64], rank: usize) -> Result<Vec<usize>, OpError> {
    let mut seen = vec![false; rank];
    let mut normal = Vec::with_capacity(axes.len());
    for &axis in axes {
        let a = normalize_axis(axis, rank)?;
        ensure!(!seen[a], "axis {axis} occurs twice in {axes:?}");
        seen[a] = true;
        normal.push(a);
    }
    Ok(normal)
}

/// Apart, so that there is one copy for all that operators accept.
#[cold]
fn wrong_type(input: &'static str, expected: &str, found: ElementType) -> OpError {
    OpError::Type {
        input,
        expected: expected.to_owned(),
        found: found.to_string(),
    }
}
