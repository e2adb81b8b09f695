//! Stages whose results are constant: they run once, before the first run of a plan.

use crate::Error;
use crate::compile::Settings;
use crate::compile::kernels::Kernels;
use crate::compile::packed_operands::PlanSlots;
use crate::compile::plan::Plan;
use crate::compile::slot::Slot;
use crate::compile::symbolic_plan::SymbolicPlan;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::{Arc, Mutex};
use vinelift_nest::{Aliases, BufferId, Contraction, Kind, Nest, Role, Stage};
use vinelift_tensor::{ElementType, Shape};

/// The stages of a nest that depend on constants alone.
pub(crate) struct Prologue {
    pub(crate) plan: Arc<Plan>,
    /// The buffers that it computes, with their types: those of its outputs, in order.
    pub(crate) targets: Vec<(BufferId, ElementType, Shape)>,
}

/// The work of a stage that is done before the first run, in nanoseconds: as much as goes unnoticed, or as reading its
/// constants [`MOST_TURNS`] times takes. More is left to the run, which can be stopped.
const MOST_NANOSECONDS: usize = 100_000_000;
const MOST_TURNS: usize = 64;

/// Results of at most this size are kept from before the first run, whatever makes them.
const SMALL_BYTES: usize = 1 << 18;

/// The operands of contractions, the folds, the copies and the small stages that depend on constants alone, and what becomes of them,
/// as a plan; their stages leave the nest, in which the targets that it reads are then inputs.
pub(crate) fn constant_stages(
    nest: &mut Nest,
    slots: &[Slot],
    settings: &Settings<'_>,
) -> Result<Option<Prologue>, Error> {
    let operands: FxHashSet<BufferId> = nest
        .stages
        .iter()
        .filter_map(|stage| Contraction::of(nest, stage))
        .flat_map(|c| [c.left.tensor.buffer, c.right.tensor.buffer])
        .collect();
    let mut made_once: FxHashSet<BufferId> = FxHashSet::default();
    for (target, writers) in by_target(nest) {
        let is_wanted = |k: &usize| {
            let stage = &nest.stages[*k];
            operands.contains(&target)
                || matches!(stage.value.kind(), Kind::Reduce { .. })
                || bytes(nest, target) <= SMALL_BYTES
                || reorders(nest, stage)
                || shrinks(nest, stage, &made_once)
        };
        let is_constant = |buffer: &BufferId| {
            matches!(slots[buffer.0 as usize], Slot::Constant(_))
                || matches!(nest.buf(*buffer).role, Role::Table(_))
                || made_once.contains(buffer)
        };
        if writers.iter().any(is_wanted)
            && depends_on_constants(nest, target, &writers, &is_constant)
        {
            made_once.insert(target);
        }
    }
    let stages = nest.stages.iter().cloned();
    let (constant, rest): (Vec<Stage>, Vec<Stage>) =
        stages.partition(|stage| made_once.contains(&stage.target));
    if constant.is_empty() {
        return Ok(None);
    }
    let needed: FxHashSet<BufferId> = rest.iter().flat_map(Stage::loads).collect();
    let mut part = nest.clone();
    // The plan has no inputs: what only a run has is absent.
    let constants = slots.iter().map(|slot| match slot {
        Slot::Constant(tensor) => Slot::Constant(tensor.clone()),
        _ => Slot::Absent,
    });
    let mut part_slots: Vec<Slot> = constants.collect();
    let mut targets = Vec::with_capacity(made_once.len());
    for stage in &constant {
        let target = stage.target.0 as usize;
        let buffer = &mut part.buffers[target];
        if buffer.role == Role::Output || !needed.contains(&stage.target) {
            continue;
        }
        buffer.role = Role::Output;
        nest.buffers[target].role = Role::Input;
        part_slots[target] = Slot::Output(targets.len());
        targets.push((stage.target, buffer.ty, buffer.example()));
    }
    part.stages = constant;
    nest.stages = rest;
    let plan = plan_of(part, part_slots, settings)?;
    Ok(Some(Prologue {
        plan: Arc::new(plan),
        targets,
    }))
}

/// The targets of all stages, in the order in which they are first written, each with the numbers of the stages that do.
fn by_target(nest: &Nest) -> Vec<(BufferId, Vec<usize>)> {
    let mut targets: Vec<(BufferId, Vec<usize>)> = Vec::new();
    let mut places: FxHashMap<BufferId, usize> = FxHashMap::default();
    for (k, stage) in nest.stages.iter().enumerate() {
        let place = *places.entry(stage.target).or_insert(targets.len());
        match targets.get_mut(place) {
            Some((_, writers)) => writers.push(k),
            None => targets.push((stage.target, vec![k])),
        }
    }
    targets
}

/// Whether a stage makes no more of what is made once than that has.
fn shrinks(nest: &Nest, stage: &Stage, made_once: &FxHashSet<BufferId>) -> bool {
    let loads = stage.loads();
    let read = loads.iter().filter(|b| made_once.contains(b));
    let read = read.map(|b| bytes(nest, *b)).fold(0, usize::saturating_add);
    bytes(nest, stage.target) <= read
}

/// Whether a stage stores elements of a buffer in another order, and no more of them than the buffer has.
fn reorders(nest: &Nest, stage: &Stage) -> bool {
    match stage.value.kind() {
        Kind::Load { buffer, .. } => bytes(nest, stage.target) <= bytes(nest, *buffer),
        _ => false,
    }
}

fn bytes(nest: &Nest, buffer: BufferId) -> usize {
    nest.buf(buffer).byte_len().unwrap_or(usize::MAX)
}

/// Whether a temporary, which the stages of these numbers write, depends on constants alone, is read by nothing before it is whole, and
/// is worth its time and memory before the first run.
fn depends_on_constants(
    nest: &Nest,
    target: BufferId,
    writers: &[usize],
    is_constant: &dyn Fn(&BufferId) -> bool,
) -> bool {
    if nest.buf(target).role != Role::Temporary {
        return false;
    }
    let of_writers = || writers.iter().map(|k| &nest.stages[*k]);
    let mut loads: Vec<BufferId> = of_writers().flat_map(Stage::loads).collect();
    loads.sort_unstable();
    loads.dedup();
    let between = match writers {
        [first, .., last] => &nest.stages[*first..*last],
        _ => &[],
    };
    let is_one = writers.len() == 1;
    let is_read_before = |other: &Stage| other.loads().contains(&target);
    !loads.is_empty()
        && loads.iter().all(is_constant)
        && (is_one || of_writers().all(|writer| writer.group.is_none()))
        && !between.iter().any(is_read_before)
        && is_worth(nest, writers, target, &loads)
}

/// Whether the stages that write a temporary take little time and memory, at least in comparison with the constants that it reads.
fn is_worth(nest: &Nest, writers: &[usize], target: BufferId, loaded: &[BufferId]) -> bool {
    let points = writers.iter().map(|k| nest.points_in(*k..*k + 1));
    let points = points.fold(0, usize::saturating_add);
    // A run computes constants whose shapes have symbols.
    let has_symbols = |k| nest.is_symbolic() && nest.extract(k..k + 1).nest.is_symbolic();
    if writers.iter().any(|k| has_symbols(*k)) {
        return false;
    }
    let read = loaded.iter().map(|b| bytes(nest, *b));
    let read = read.fold(0, usize::saturating_add);
    let large = MOST_TURNS.saturating_mul(read);
    (points <= MOST_NANOSECONDS || points <= large) && bytes(nest, target) <= large.max(1 << 20)
}

/// The plan of stages that have no symbols.
fn plan_of(nest: Nest, slots: Vec<Slot>, settings: &Settings<'_>) -> Result<Plan, Error> {
    let settings = Settings {
        threads: 1,
        ..*settings
    };
    let kernels = Kernels::of(&nest, false, &|_| false, &Aliases::default(), &settings)?;
    let plan = SymbolicPlan {
        extents: Vec::new(),
        symbolic_buffers: Vec::new(),
        kernels: Some(kernels),
        nest: Arc::new(nest),
        slots: PlanSlots::new(slots),
        candidates: Vec::new(),
        last: Mutex::default(),
        outputs: Vec::new(),
        constants: Arc::default(),
        calls: Vec::new(),
        wanted: Vec::new(),
        shape_values: Vec::new(),
        forgotten: Arc::default(),
        micro_batches: None,
    };
    let unbound = || Error::internal("constants whose shapes have symbols");
    plan.bound_to(&[], &settings)?.ok_or_else(unbound)
}

#[cfg(test)]
mod tests {
    use crate::{Core, Stage, Tensor};

    const INPUTS: usize = 16;
    const OUTPUTS: usize = 24;
    const SIDE: usize = 6;

    /// A picture that is constant, and filters that are not.
    const CONVOLUTION: &str = r#"<net name="m" version="11"><layers>
<layer id="0" name="x" type="Parameter" version="opset1"><data element_type="f32" shape="24,16,3,3"/><output><port id="0" precision="FP32"><dim>24</dim><dim>16</dim><dim>3</dim><dim>3</dim></port></output></layer>
<layer id="1" name="w" type="Const" version="opset1"><data element_type="f32" shape="1,16,6,6" offset="0" size="2304"/><output><port id="0" precision="FP32"><dim>1</dim><dim>16</dim><dim>6</dim><dim>6</dim></port></output></layer>
<layer id="2" name="y" type="Convolution" version="opset1"><data strides="1,1" dilations="1,1" pads_begin="1,1" pads_end="1,1" auto_pad="explicit"/><input><port id="0" precision="FP32"><dim>1</dim><dim>16</dim><dim>6</dim><dim>6</dim></port><port id="1" precision="FP32"><dim>24</dim><dim>16</dim><dim>3</dim><dim>3</dim></port></input><output><port id="2" precision="FP32"><dim>1</dim><dim>24</dim><dim>6</dim><dim>6</dim></port></output></layer>
<layer id="3" name="r" type="Result" version="opset1"><input><port id="0" precision="FP32"><dim>1</dim><dim>24</dim><dim>6</dim><dim>6</dim></port></input></layer>
</layers><edges><edge from-layer="1" from-port="0" to-layer="2" to-port="0"/><edge from-layer="0" from-port="0" to-layer="2" to-port="1"/><edge from-layer="2" from-port="2" to-layer="3" to-port="0"/></edges></net>"#;

    /// A constant picture with zeros around it is several stages, of which some load nothing. All run once.
    #[test]
    fn a_constant_with_zeros_around_it_is_made_once() {
        let number = |k: usize| (k * 7 % 11) as f32 - 5.0;
        let w: Vec<f32> = (0..INPUTS * SIDE * SIDE).map(number).collect();
        let x: Vec<f32> = (0..INPUTS * OUTPUTS * 9).map(|k| number(k + 3)).collect();
        let bytes: Vec<u8> = w.iter().flat_map(|w| w.to_le_bytes()).collect();
        let core = Core::new().unwrap();
        let model = core.read_model_from_memory(CONVOLUTION.as_bytes(), bytes);
        let compiled = core.compile_model(&model.unwrap()).unwrap();
        let text = compiled.dump(Stage::Scheduled, &[None], None).unwrap();
        let (once, each) = text.split_once("# in each run").unwrap();
        assert!(once.contains("= w[") && once.contains(" = 0.0"), "{text}");
        assert!(!each.contains("= w["), "{text}");

        let mut expected = vec![0.0; OUTPUTS * SIDE * SIDE];
        for (k, x) in x.iter().enumerate() {
            let (to, from, row, column) = (k / 9 / INPUTS, k / 9 % INPUTS, k / 3 % 3, k % 3);
            for place in 0..SIDE * SIDE {
                let (r, c) = (place / SIDE + row, place % SIDE + column);
                if (1..=SIDE).contains(&r) && (1..=SIDE).contains(&c) {
                    expected[to * SIDE * SIDE + place] +=
                        x * w[(from * SIDE + r - 1) * SIDE + c - 1];
                }
            }
        }
        let mut request = compiled.create_request();
        let input = Tensor::from_slice(&[OUTPUTS, INPUTS, 3, 3], &x).unwrap();
        request.set_input_at(0, input).unwrap();
        for _ in 0..2 {
            request.infer().unwrap();
            let found = request.output(0).unwrap();
            assert_eq!(found.as_slice::<f32>().unwrap().to_vec(), expected);
        }
    }
}
