//! The context of `lower`: static shapes, known values, and a nest to append to.

use crate::Signature;
use crate::infer::{formulas, pin, whole_numbers};
use vinelift_nest::{
    Axis, Binary, BufferId, LayerId, Mode, Nest, Policy, Role, Scalar, Site, Stage, ValueRange,
    build,
};
use vinelift_tensor::{ElementType, Extent, Formula, Tensor, symbols};

/// The user's choice for data-dependent indices that are out of range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum IndexPolicy {
    /// The rule of each operator's specification.
    #[default]
    Spec,
    /// An error, everywhere.
    Error,
    /// Reads give 0 and writes are left out, everywhere.
    Zero,
}

impl IndexPolicy {
    /// All of them.
    pub const ALL: [IndexPolicy; 3] = [IndexPolicy::Spec, IndexPolicy::Error, IndexPolicy::Zero];

    /// Lower-case name.
    pub const fn name(self) -> &'static str {
        match self {
            IndexPolicy::Spec => "spec",
            IndexPolicy::Error => "error",
            IndexPolicy::Zero => "zero",
        }
    }
}

/// The nest under construction, for [`crate::Op::lower`].
pub struct Lower<'a> {
    nest: &'a mut Nest,
    signature: Signature,
    layer: LayerId,
    inputs: Vec<BufferId>,
    outputs: Vec<BufferId>,
    values: &'a [Option<&'a Tensor>],
    /// The known ranges of the elements of inputs whose values have symbols.
    bounds: &'a [Option<Vec<ValueRange>>],
    policy: IndexPolicy,
    /// Whether the model keeps state from run to run.
    has_state: bool,
    /// Of the stages that are being added, if they take turns.
    group: Option<u32>,
}

/// The value of a formula, which may be negative.
pub(crate) fn formula(formula: &Formula) -> Scalar {
    if let Some(number) = formula.as_number() {
        return build::index(number);
    }
    if let Some(extent) = Extent::of(*formula) {
        return Scalar::extent(extent);
    }
    let negative = Formula::number(0).minus(formula);
    match negative.and_then(Extent::of) {
        Some(extent) => -Scalar::extent(extent),
        None => build::index(symbols::pin(formula).unwrap_or_default()),
    }
}

/// The element of `elements` at `place`, their position; 0 if there are none.
pub fn chosen(place: &Scalar, elements: &[Formula]) -> Scalar {
    let last = elements.last().map_or(build::index(0), formula);
    let others = elements.iter().enumerate().rev().skip(1);
    others.fold(last, |rest, (k, element)| {
        build::select(place.eq(build::index(k as i64)), formula(element), rest)
    })
}

impl<'a> Lower<'a> {
    /// `inputs` and `outputs` are buffers of `nest`, in the operator's order.
    pub fn new(
        nest: &'a mut Nest,
        signature: Signature,
        layer: LayerId,
        inputs: Vec<BufferId>,
        outputs: Vec<BufferId>,
        values: &'a [Option<&'a Tensor>],
        policy: IndexPolicy,
    ) -> Lower<'a> {
        Lower {
            nest,
            signature,
            layer,
            inputs,
            outputs,
            values,
            bounds: &[],
            policy,
            has_state: false,
            group: None,
        }
    }

    /// The same with what is known of the elements of inputs whose values have symbols.
    pub fn with_bounds(self, bounds: &'a [Option<Vec<ValueRange>>]) -> Lower<'a> {
        Lower { bounds, ..self }
    }

    /// The same in a model that keeps state from run to run, if `has_state`.
    pub fn with_state(self, has_state: bool) -> Lower<'a> {
        Lower { has_state, ..self }
    }

    /// Whether the model keeps state from run to run.
    pub(crate) fn has_state(&self) -> bool {
        self.has_state
    }

    /// The buffer of input `name`.
    pub fn input(&self, name: &str) -> BufferId {
        self.inputs[self.signature.position(name)]
    }

    /// Whether the optional input `name` is there.
    pub fn has(&self, name: &str) -> bool {
        self.signature.position(name) < self.inputs.len()
    }

    /// All inputs, for variadic operators.
    pub fn inputs(&self) -> &[BufferId] {
        &self.inputs
    }

    /// The buffer of output `i`.
    pub fn output(&self, i: usize) -> BufferId {
        self.outputs[i]
    }

    /// All outputs.
    pub fn outputs(&self) -> &[BufferId] {
        &self.outputs
    }

    /// The shape of a buffer in numbers: symbols are pinned.
    pub fn shape_of(&self, buffer: BufferId) -> Vec<usize> {
        self.nest
            .buf(buffer)
            .shape
            .iter()
            .map(|n| n.pin())
            .collect()
    }

    /// The shape of a buffer.
    pub fn extents_of(&self, buffer: BufferId) -> Vec<Extent> {
        self.nest.buf(buffer).shape.clone()
    }

    /// The rank of a buffer.
    pub fn rank_of(&self, buffer: BufferId) -> usize {
        self.nest.buf(buffer).shape.len()
    }

    /// The shape of input `name`.
    pub fn extents(&self, name: &str) -> Vec<Extent> {
        self.extents_of(self.input(name))
    }

    /// The shape of input `name` in numbers: symbols are pinned.
    pub fn shape(&self, name: &str) -> Vec<usize> {
        self.shape_of(self.input(name))
    }

    /// The element type of a buffer.
    pub fn type_of(&self, buffer: BufferId) -> ElementType {
        self.nest.buf(buffer).ty
    }

    /// The element type of input `name`.
    pub fn element(&self, name: &str) -> ElementType {
        self.type_of(self.input(name))
    }

    /// The value of input `name`, which `infer` has asked for; `None` if the input is not there.
    pub fn constant(&self, name: &str) -> Option<&'a Tensor> {
        let i = self.signature.position(name);
        pin(self.bounds, i);
        self.values.get(i).copied().flatten()
    }

    /// The elements of input `name`, of an integer type, if they are known exactly and some have symbols.
    pub fn formulas(&self, name: &str) -> Option<Vec<Formula>> {
        formulas(self.bounds, self.signature.position(name))
    }

    /// The elements of input `name`, whatever its type is, if all are integers that are known exactly and some have symbols.
    pub fn whole_numbers(&self, name: &str) -> Option<Vec<Formula>> {
        whole_numbers(self.bounds, self.signature.position(name))
    }

    /// As [`Lower::integers`], with their symbols where they have any.
    pub fn elements(&self, name: &str) -> Option<Vec<Formula>> {
        self.formulas(name).or_else(|| {
            let numbers = self.integers(name)?;
            Some(numbers.into_iter().map(Formula::number).collect())
        })
    }

    /// As [`Lower::constant`], as integers.
    pub fn integers(&self, name: &str) -> Option<Vec<i64>> {
        self.constant(name)?.to_i64_vec().ok()
    }

    /// As [`Lower::integers`], for a single element.
    pub fn integer(&self, name: &str) -> Option<i64> {
        self.integers(name)?.first().copied()
    }

    /// `name[at]`, of the input's element type.
    pub fn load(&self, name: &str, at: &[Scalar]) -> Scalar {
        self.nest.load(self.input(name), at.to_vec())
    }

    /// `buffer[at]`, of the buffer's element type.
    pub fn load_from(&self, buffer: BufferId, at: &[Scalar]) -> Scalar {
        self.nest.load(buffer, at.to_vec())
    }

    /// A buffer for values in between.
    pub fn temporary(
        &mut self,
        name: &str,
        ty: ElementType,
        shape: &[impl Into<Extent> + Copy],
    ) -> BufferId {
        self.nest.buffer(name, ty, shape, Role::Temporary)
    }

    /// A one-dimensional table of `i64` constants.
    pub fn table(&mut self, name: &str, values: &[i64]) -> BufferId {
        self.table_of(name, ElementType::I64, values)
    }

    /// The same of type `ty`, which is `i32` or `i64`.
    pub fn table_of(&mut self, name: &str, ty: ElementType, values: &[i64]) -> BufferId {
        let bytes: Vec<u8> = match ty {
            ElementType::I32 => values
                .iter()
                .flat_map(|v| (*v as i32).to_le_bytes())
                .collect(),
            _ => values.iter().flat_map(|v| v.to_le_bytes()).collect(),
        };
        self.nest.table(name, ty, values.len(), &bytes)
    }

    /// A one-dimensional table of constants of type `ty`, which is `f32` or `f64`.
    pub fn weights(&mut self, name: &str, ty: ElementType, values: &[f64]) -> BufferId {
        let bytes: Vec<u8> = match ty {
            ElementType::F32 => values
                .iter()
                .flat_map(|v| (*v as f32).to_le_bytes())
                .collect(),
            _ => values.iter().flat_map(|v| v.to_le_bytes()).collect(),
        };
        self.nest.table(name, ty, values.len(), &bytes)
    }

    /// `target[at] = value(at)` for every `at` in the target's shape.
    pub fn define(&mut self, target: BufferId, value: impl FnOnce(&mut Self, &[Scalar]) -> Scalar) {
        let (domain, point) = self.point_in(target);
        let value = value(self, &point);
        self.push(domain, target, Mode::Set, point, value);
    }

    /// `target[at] mode= value` for every point of `domain` in row-major order, where `body` gives
    /// `(at, value)` for a point.
    pub fn stage(
        &mut self,
        domain: &[impl Into<Extent> + Copy],
        target: BufferId,
        mode: Mode,
        body: impl FnOnce(&mut Self, &[Scalar]) -> (Vec<Scalar>, Scalar),
    ) {
        let (domain, point) = self.point(domain);
        let (at, value) = body(self, &point);
        self.push(domain, target, mode, at, value);
    }

    /// Axes of `extents`, and the point that they make. Of the callers there is a copy for each operator, which is to
    /// be small.
    #[inline(never)]
    fn point(&mut self, extents: &[impl Into<Extent> + Copy]) -> (Vec<Axis>, Vec<Scalar>) {
        let axes = self.nest.axes(extents);
        let point = axes.iter().map(|a| Scalar::axis(a.id)).collect();
        (axes, point)
    }

    /// The same of the shape of `buffer`.
    #[inline(never)]
    fn point_in(&mut self, buffer: BufferId) -> (Vec<Axis>, Vec<Scalar>) {
        self.point(&self.extents_of(buffer))
    }

    #[inline(never)]
    fn push(
        &mut self,
        domain: Vec<Axis>,
        target: BufferId,
        mode: Mode,
        at: Vec<Scalar>,
        value: Scalar,
    ) {
        self.nest.stages.push(Stage {
            domain,
            target,
            at,
            mode,
            value,
            layers: vec![self.layer],
            group: self.group,
        });
    }

    /// The stages that `f` adds take turns: at each point of their outermost axes, one after the other.
    pub fn in_turns(&mut self, f: impl FnOnce(&mut Self)) {
        self.group = u32::try_from(self.nest.stages.len()).ok();
        f(self);
        self.group = None;
    }

    /// `init op body(k) op …` over the points `k` of a box of `extents`, in row-major order.
    pub fn reduce(
        &mut self,
        op: Binary,
        extents: &[impl Into<Extent> + Copy],
        init: Scalar,
        body: impl FnOnce(&mut Self, &[Scalar]) -> Scalar,
    ) -> Scalar {
        let (axes, point) = self.point(extents);
        let body = body(self, &point);
        Scalar::reduce(op, axes, init, body)
    }

    /// `Σ x · y` over axes of `extents`: each product is added without being rounded before.
    pub fn sum_of_products(
        &mut self,
        extents: &[impl Into<Extent> + Copy],
        ty: ElementType,
        factors: impl FnOnce(&mut Self, &[Scalar]) -> (Scalar, Scalar),
    ) -> Scalar {
        self.reduce(Binary::Add, extents, build::zero(ty), |cx, point| {
            let (x, y) = factors(cx, point);
            Scalar::binary(Binary::Term, x, y)
        })
    }

    /// The only element of input `name`, whatever its rank.
    pub fn load_only(&self, name: &str) -> Scalar {
        let at = vec![build::index(0); self.extents(name).len()];
        self.load(name, &at)
    }

    /// The index `name[at]` into a dim of `extent`, checked at run time. `spec` is what the
    /// operator's specification says of indices out of range.
    pub fn index(
        &mut self,
        name: &str,
        at: &[Scalar],
        extent: impl Into<Extent>,
        spec: Policy,
    ) -> Scalar {
        let index = self.load(name, at);
        let zero = match self.policy {
            IndexPolicy::Spec => spec.zero,
            IndexPolicy::Error => false,
            IndexPolicy::Zero => true,
        };
        self.wrap(index, extent, Policy { zero, ..spec }, name, at)
    }

    /// `index` as an index into a dim of `extent`, for the operator's own use: `policy` holds
    /// whatever the user wants of indices. Messages say that it came from `name[position]`.
    pub fn wrap(
        &mut self,
        index: Scalar,
        extent: impl Into<Extent>,
        policy: Policy,
        name: &str,
        position: &[Scalar],
    ) -> Scalar {
        let ty = index.ty().compute();
        let site = Site {
            layer: self.layer,
            input: name.to_owned(),
        };
        self.nest
            .wrap(index.cast(ty), extent, policy, site, position.to_vec())
    }
}
