//! The types of what a node that runs sub-graphs gives.

use crate::control::{Branch, Collect, Control, Feed, Repeat, Slices, iteration_shape};
use crate::error::Problem;
use crate::model::{Model, Node, NodeKind, TensorId};
use crate::specialize::{BodyTypes, Budget, Types, infer_body};
use petgraph::graph::NodeIndex;
use rustc_hash::FxHashMap;
use vinelift_ops::{ParameterAttributes, Stop, TensorType};
use vinelift_tensor::{Dim, ElementType, Extent, PartialShape, Tensor};
use vinelift_xml::BodyKind;

/// How often the types of carried tensors are widened before their shapes are given up as unknown.
const WIDENINGS: usize = 2;

/// The inputs of the node: their types, and their values where they are known.
pub(crate) struct Inputs<'a> {
    pub(crate) types: &'a [TensorType],
    pub(crate) values: &'a [Option<&'a Tensor>],
}

impl Control {
    /// The types of the outputs of `node`, whose sub-graphs this runs.
    pub(crate) fn infer(
        &self,
        node: &Node,
        inputs: &Inputs<'_>,
        budget: &Budget<'_>,
    ) -> Result<Vec<TensorType>, Problem> {
        match self {
            Control::If { then, otherwise } => {
                inputs.expect_only(0, "condition", ElementType::Boolean)?;
                let of = |kind, branch: &Branch| {
                    let types = branch_types(node.body(kind)?, kind, branch, inputs, budget)?;
                    Ok::<_, Problem>(types)
                };
                let condition =
                    inputs.values[0].and_then(|c| c.to_i64_vec().ok()?.first().copied());
                match condition {
                    Some(0) => of(BodyKind::Else, otherwise),
                    Some(_) => of(BodyKind::Then, then),
                    None => hulls(&of(BodyKind::Then, then)?, &of(BodyKind::Else, otherwise)?),
                }
            }
            Control::Repeat(repeat) => repeat.infer(node, inputs, budget),
        }
    }
}

impl Model {
    /// The sub-graphs that `node` may run, with the types of their parameters.
    pub fn body_types(
        &self,
        node: NodeIndex,
        types: &Types,
        values: &FxHashMap<TensorId, Tensor>,
    ) -> Result<Vec<(BodyKind, Vec<TensorType>)>, Problem> {
        let NodeKind::Control(control) = &self.node(node).kind else {
            return Ok(Vec::new());
        };
        let tensors = self.inputs(node);
        let types = tensors.iter().map(|t| types.get(*t).cloned());
        let Some(types) = types.collect::<Option<Vec<_>>>() else {
            return Ok(Vec::new());
        };
        let values: Vec<Option<&Tensor>> = tensors.iter().map(|t| values.get(t)).collect();
        let inputs = Inputs {
            types: &types,
            values: &values,
        };
        let branch = |b: &Branch| b.feeds.iter().map(|i| types[*i].clone()).collect();
        match control {
            Control::If { then, otherwise } => Ok(vec![
                (BodyKind::Then, branch(then)),
                (BodyKind::Else, branch(otherwise)),
            ]),
            Control::Repeat(repeat) => {
                let body = self.node(node).body(BodyKind::Body)?;
                let budget = Budget::new(Stop::NEVER);
                let (_, parameters) = repeat.body_types(body, &inputs, &budget)?;
                Ok(vec![(BodyKind::Body, parameters)])
            }
        }
    }
}

impl Model {
    /// The types of the outputs of `node`, whose sub-graphs `control` runs, for these inputs.
    ///
    /// # Errors
    /// If the inputs do not fit.
    pub fn output_types(
        &self,
        node: NodeIndex,
        control: &Control,
        inputs: &[Tensor],
    ) -> Result<Vec<TensorType>, Problem> {
        let types = inputs
            .iter()
            .map(|t| TensorType::new(t.element_type(), t.shape().into()));
        let types: Vec<TensorType> = types.collect();
        let values: Vec<Option<&Tensor>> = inputs.iter().map(Some).collect();
        let inputs = Inputs {
            types: &types,
            values: &values,
        };
        control.infer(self.node(node), &inputs, &Budget::new(Stop::NEVER))
    }
}

impl Inputs<'_> {
    /// Input `i` must be of a type and have a single element.
    fn expect_only(&self, i: usize, name: &str, element: ElementType) -> Result<(), Problem> {
        let found = &self.types[i];
        let fits = |d: &Dim| d.contains(1);
        let single = found
            .shape
            .dims()
            .is_none_or(|d| d.len() <= 1 && d.iter().all(fits));
        if found.element == element && single {
            return Ok(());
        }
        let text = format!("`{name}` must be a single {element}, found {found}");
        Err(Problem::Graph(text))
    }
}

fn branch_types(
    body: &Model,
    kind: BodyKind,
    branch: &Branch,
    inputs: &Inputs<'_>,
    budget: &Budget<'_>,
) -> Result<Vec<TensorType>, Problem> {
    let types: Vec<TensorType> = branch
        .feeds
        .iter()
        .map(|i| inputs.types[*i].clone())
        .collect();
    let values: Vec<Option<&Tensor>> = branch.feeds.iter().map(|i| inputs.values[*i]).collect();
    let found = infer_body(body, &types, &values, budget).map_err(|e| Problem::body(kind, e))?;
    Ok(branch
        .outputs
        .iter()
        .map(|r| found.results[*r].clone())
        .collect())
}

fn hulls(a: &[TensorType], b: &[TensorType]) -> Result<Vec<TensorType>, Problem> {
    a.iter().zip(b).map(|(a, b)| hull(a, b)).collect()
}

fn hull(a: &TensorType, b: &TensorType) -> Result<TensorType, Problem> {
    if a.element != b.element {
        let text = format!("an output is {a} or {b}, expected the same element type");
        return Err(Problem::Graph(text));
    }
    Ok(TensorType::new(a.element, a.shape.hull(&b.shape)))
}

impl Repeat {
    fn infer(
        &self,
        node: &Node,
        inputs: &Inputs<'_>,
        budget: &Budget<'_>,
    ) -> Result<Vec<TensorType>, Problem> {
        if self.counted {
            let trips = inputs.types[0].element;
            if !matches!(trips, ElementType::I32 | ElementType::I64) {
                let text = format!("`trip_count` must be i32 or i64, found {}", inputs.types[0]);
                return Err(Problem::Graph(text));
            }
            inputs.expect_only(0, "trip_count", trips)?;
            inputs.expect_only(1, "condition", ElementType::Boolean)?;
        }
        let body = node.body(BodyKind::Body)?;
        let (found, parameters) = self.body_types(body, inputs, budget)?;
        let count = self.iterations(inputs, &found);
        if self.counted
            && !count.contains(0)
            && number(inputs.values[0]) == Some(-1)
            && self.goes_on(&found) == Some(true)
        {
            return Err(Problem::Graph("it never ends".to_owned()));
        }
        let never = count.contains(0);
        let collect = |collect: &Collect| match collect {
            Collect::Last(result) => {
                let last = &found.results[*result];
                match self.carried(*result) {
                    Some(parameter) if never => hull(last, &parameters[parameter]),
                    _ => Ok(last.clone()),
                }
            }
            Collect::All(result, slices) => {
                let part = &found.results[*result];
                let shape = side_by_side(&part.shape, slices, count)?;
                Ok(TensorType::new(part.element, shape))
            }
        };
        self.outputs.iter().map(collect).collect()
    }

    /// The types that hold in every iteration: of the results, and of the parameters.
    fn body_types(
        &self,
        body: &Model,
        inputs: &Inputs<'_>,
        budget: &Budget<'_>,
    ) -> Result<(BodyTypes, Vec<TensorType>), Problem> {
        let mut parameters = Vec::with_capacity(self.feeds.len());
        for (feed, parameter) in self.feeds.iter().zip(&body.parameters) {
            parameters.push(match feed {
                Feed::Whole(i) | Feed::Carried { first: i, .. } => inputs.types[*i].clone(),
                Feed::Slice(i, slices) => {
                    let whole = &inputs.types[*i];
                    TensorType::new(whole.element, slice_shape(&whole.shape, slices)?)
                }
                Feed::Iteration => iteration_type(body, *parameter)?,
            });
        }
        let values: Vec<Option<&Tensor>> = self
            .feeds
            .iter()
            .map(|feed| match feed {
                Feed::Whole(i) => inputs.values[*i],
                _ => None,
            })
            .collect();
        for round in 0.. {
            let found = infer_body(body, &parameters, &values, budget)
                .map_err(|e| Problem::body(BodyKind::Body, e))?;
            let mut stable = true;
            for (feed, ty) in self.feeds.iter().zip(&mut parameters) {
                let Feed::Carried { result, .. } = feed else {
                    continue;
                };
                let both = hull(ty, &found.results[*result])?;
                if both == *ty {
                    continue;
                }
                stable = false;
                ty.shape = match round {
                    0..WIDENINGS => widen(&ty.shape, &both.shape),
                    _ => PartialShape::DYNAMIC,
                };
            }
            if stable {
                return Ok((found, parameters));
            }
        }
        Err(Problem::Graph("its carried types do not settle".to_owned()))
    }

    /// How many iterations there are.
    fn iterations(&self, inputs: &Inputs<'_>, body: &BodyTypes) -> Dim {
        let value = |i: usize| number(inputs.values[i]);
        if !self.counted {
            return self
                .slices()
                .filter_map(|(i, slices)| slice_count(&inputs.types[i].shape, slices))
                .next()
                .unwrap_or(if self.slices().next().is_none() {
                    Dim::fixed(1)
                } else {
                    Dim::ANY
                });
        }
        if value(1) == Some(0) {
            return Dim::fixed(0);
        }
        let most = value(0).and_then(|n| usize::try_from(n).ok());
        match (value(1), self.goes_on(body), most) {
            (Some(_), Some(true), Some(n)) => Dim::fixed(n),
            // Only a count that is known is known not to be 0.
            (Some(_), _, most) => {
                let least = value(0).is_some_and(|count| count != 0);
                Dim::between(usize::from(least), most)
            }
            _ => Dim::between(0, most),
        }
    }

    /// Whether there is another iteration after each, if that is constant.
    fn goes_on(&self, body: &BodyTypes) -> Option<bool> {
        let condition = body.values[self.condition?].as_ref();
        number(condition).map(|c| c != 0)
    }
}

/// The type of the parameter that gets the number of the iteration.
fn iteration_type(body: &Model, parameter: NodeIndex) -> Result<TensorType, Problem> {
    let declared = match &body.node(parameter).kind {
        NodeKind::Parameter(ParameterAttributes {
            element_type: None,
            shape,
        }) => TensorType::new(ElementType::I64, shape.clone()),
        _ => body.declared_type(parameter),
    };
    let shape = iteration_shape(&declared);
    let is_integer = matches!(declared.element, ElementType::I32 | ElementType::I64);
    if is_integer && declared.shape.contains(shape) {
        return Ok(TensorType::new(declared.element, shape.into()));
    }
    Err(Problem::Graph(format!(
        "the number of the iteration is i32 or i64, [] or [1], found a parameter {declared}"
    )))
}

/// The first element of a tensor of integers or booleans.
fn number(value: Option<&Tensor>) -> Option<i64> {
    value?.to_i64_vec().ok()?.first().copied()
}

/// The dims that stay the same, and nothing of those that change.
fn widen(before: &PartialShape, both: &PartialShape) -> PartialShape {
    let (Some(before), Some(both)) = (before.dims(), both.dims()) else {
        return PartialShape::DYNAMIC;
    };
    let dims = before.iter().zip(both);
    PartialShape::ranked(
        dims.map(|(a, b)| if a == b { *a } else { Dim::ANY })
            .collect(),
    )
}

fn axis_of(shape: &[Dim], slices: &Slices) -> Result<usize, Problem> {
    slices.axis(shape.len()).ok_or_else(|| {
        let shape = PartialShape::ranked(shape.to_vec());
        Problem::Graph(format!(
            "axis {} of {shape}, which it does not have",
            slices.axis
        ))
    })
}

fn slice_shape(shape: &PartialShape, slices: &Slices) -> Result<PartialShape, Problem> {
    let Some(dims) = shape.dims() else {
        return Ok(PartialShape::DYNAMIC);
    };
    let axis = axis_of(dims, slices)?;
    let mut dims = dims.to_vec();
    dims[axis] = Dim::fixed(slices.part);
    Ok(PartialShape::ranked(dims))
}

fn slice_count(shape: &PartialShape, slices: &Slices) -> Option<Dim> {
    let dims = shape.dims()?;
    let dim = dims[slices.axis(dims.len())?];
    let extent = dim.extent()?;
    if !extent.is_symbolic() || !slices.span_all() {
        return Some(Dim::fixed(slices.count(dim.get()?)));
    }
    let (part, stride) = (slices.part, slices.stride.unsigned_abs() as usize);
    if !Extent::from(part).at_most(extent) {
        return Some(Dim::fixed(0));
    }
    // `(extent - part) / stride + 1`, without an intermediate that is less than a symbol may be.
    let reach = match stride.checked_sub(part) {
        Some(more) => extent.sum(more.into()),
        None => extent.difference((part - stride).into()),
    };
    Some(reach.quotient(stride.into()).into())
}

fn side_by_side(
    shape: &PartialShape,
    slices: &Slices,
    count: Dim,
) -> Result<PartialShape, Problem> {
    let Some(dims) = shape.dims() else {
        return Ok(PartialShape::DYNAMIC);
    };
    let axis = axis_of(dims, slices)?;
    let mut dims = dims.to_vec();
    dims[axis] = dims[axis].mul(count);
    Ok(PartialShape::ranked(dims))
}
