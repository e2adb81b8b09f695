//! A nest as one Cranelift function.
//!
//! ```text
//! fn(buffers: *const *mut u8, fault: *mut RawFault, begin: i64, end: i64, scratch: *mut u8) -> u32
//!                                                             0 = done, 1 = fault, 2 = told to stop
//! ```
//!
//! `begin..end` is the part to do, of a nest that can be cut ([`Parts`]); otherwise it is ignored. `scratch` is
//! memory for what the call keeps meanwhile, of [`Emitted::scratch`] bytes.
//!
//! A stage becomes one loop for each axis with more than one point, tested at the top. Before a
//! loop is opened, what reads memory or can fault and does not depend on its axis is computed
//! ([`hoist`]); arithmetic alone is left to Cranelift, which moves it out of loops by itself.
//!
//! Scalars are emitted from a list of tasks instead of by recursion ([`scalar`]), so that their
//! depth is bounded by memory and not by the stack. Each is emitted once in a scope: a loop's body or
//! a side of a select opens one, and what was computed in it is forgotten at its end, because it
//! does not dominate what follows.

mod address;
mod block_columns;
mod cast;
mod checked;
mod collect;
mod copy;
mod float;
mod float_rem;
mod hoist;
mod integer;
mod loops;
mod memory;
mod packed;
mod poll;
mod scalar;
mod scan;
mod stage;
mod update;
mod vector;
mod vector_call;
mod wrap;

pub(crate) use copy::Support;
pub(crate) use poll::STOPPED;
pub(crate) use vector_call::{LoopCode, signature as loop_signature};
pub(crate) use wrap::RawFault;

use crate::analysis::Analysis;
use crate::analysis::legality::Runs;
use crate::target::Target;
use crate::text;
use cranelift_codegen::ir::{
    self, AbiParam, AliasRegionData, Block, ExternalName, Function, GlobalValueData, InstBuilder,
    MemFlagsData, Signature, StackSlot, Type, UserExternalName, Value, types,
};
use cranelift_codegen::isa::TargetIsa;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_module::{DataId, FuncId};
use loops::{Loop, Turns};
use rustc_hash::FxHashMap;
use scalar::{Slot, Task};
use vinelift_nest::{AxisId, Nest, Parts, Scalar};
use vinelift_tensor::ElementType;

/// Kernels beyond this are refused: compiling takes about a microsecond for each.
pub(crate) const MOST_INSTRUCTIONS: usize = 1 << 21;

/// Why a nest has no code.
pub(crate) enum Refusal {
    /// An operation that is no primitive, or not one of its type.
    NoPrimitive(String),
    /// More than [`MOST_INSTRUCTIONS`].
    TooLarge,
}

pub(crate) type Result<T = ()> = std::result::Result<T, Refusal>;

/// That of every kernel.
pub(crate) fn signature(isa: &dyn TargetIsa) -> Signature {
    let mut signature = Signature::new(isa.default_call_conv());
    signature.params.extend([AbiParam::new(types::I64); 5]);
    signature.returns.push(AbiParam::new(types::I32));
    signature
}

/// What kernels are made of besides their nest.
pub(crate) struct Around<'a> {
    /// The table behind each buffer, if there is one.
    pub(crate) tables: &'a [Option<DataId>],
    /// For each stage a function that may be defined for it.
    pub(crate) loop_functions: &'a [FuncId],
    pub(crate) support: Support,
    pub(crate) isa: &'a dyn TargetIsa,
    /// What strips may consist of; `None` for no strips.
    pub(crate) target: Option<Target>,
}

/// What has been emitted besides the function.
pub(crate) struct Emitted {
    /// How each stage runs.
    pub(crate) runs: Vec<Runs>,
    /// What else is to be said of that.
    pub(crate) notes: Vec<String>,
    /// The strips that the function calls.
    pub(crate) loop_codes: Vec<LoopCode>,
    /// Into which parts it can be cut.
    pub(crate) parts: Parts,
    /// Bytes of scratch memory that a call needs.
    pub(crate) scratch: usize,
}

/// The nest of a kernel.
#[derive(Clone, Copy)]
pub(crate) struct Nests<'n> {
    pub(crate) legal: &'n Nest,
    /// The same with casts between `f16` and `f32`, which strips have instructions for.
    pub(crate) halves: Option<&'n Nest>,
}

/// Fills `func`, which is empty.
pub(crate) fn kernel(
    nests: Nests<'_>,
    around: &Around<'_>,
    func: &mut Function,
    shared: &mut FunctionBuilderContext,
) -> Result<Emitted> {
    let isa = around.isa;
    func.signature = signature(isa);
    let mut emitter = Emitter::new(nests, around, FunctionBuilder::new(func, shared));
    if let Err(refusal) = emitter.stages() {
        // Half a function is left in there.
        *shared = FunctionBuilderContext::new();
        return Err(refusal);
    }
    let emitted = Emitted {
        runs: std::mem::take(&mut emitter.runs),
        notes: std::mem::take(&mut emitter.notes),
        loop_codes: std::mem::take(&mut emitter.loop_codes),
        parts: emitter.analysis.parts,
        scratch: emitter.scratch_bytes,
    };
    emitter.builder.finalize(isa.frontend_config());
    Ok(emitted)
}

pub(crate) struct Emitter<'n, 'f> {
    pub(crate) analysis: Analysis<'n>,
    /// The nest with casts of `f16`.
    halves: Option<&'n Nest>,
    pub(crate) builder: FunctionBuilder<'f>,
    /// Where each buffer begins.
    bases: Vec<Value>,
    /// How each buffer is accessed.
    flags: Vec<MemFlagsData>,
    /// Where a fault is written.
    fault: Value,
    /// Which loops of the current stage look whether to stop.
    looks: poll::Looks,
    /// Where the part to do begins and ends.
    part: [Value; 2],
    /// Where scratch memory begins, and how much of it is used.
    scratch: Value,
    scratch_bytes: usize,
    /// The axes in scope.
    axes: FxHashMap<AxisId, Binding>,
    /// The loops that are open, outermost first.
    loops: Vec<Loop>,
    /// The accumulators of the reductions that are open.
    accumulators: Vec<Value>,
    /// What has been computed, by address of the scalar.
    slots: FxHashMap<usize, Slot>,
    /// The keys of `slots` in the order in which they came.
    order: Vec<usize>,
    /// Length of `order` at the start of each open scope.
    scopes: Vec<usize>,
    tasks: Vec<Task<'n>>,
    /// Of the stage that runs by vectors.
    vectors: vector::Vectors,
    /// How each stage runs.
    runs: Vec<Runs>,
    /// Memory for what the current stage collects, a piece for each load.
    pub(crate) collected: Vec<StackSlot>,
    /// Where an index that is wrong leads to, if it is not to be reported at once.
    instead_of_faults: Option<Block>,
    /// The axis that has only some of its points for now, and which.
    narrowed: Option<(AxisId, Turns)>,
    /// Where the first column of each panel of the current stage would begin, if all columns were packed.
    panel_bases: Vec<Value>,
    /// The function that the strip of each stage becomes, if it has one.
    pub(crate) loop_functions: &'n [FuncId],
    pub(crate) loop_codes: Vec<LoopCode>,
    /// What a dump says of each stage besides.
    notes: Vec<String>,
    support: Support,
    is_x86: bool,
}

/// An axis in scope.
#[derive(Clone, Copy)]
struct Binding {
    value: Value,
    /// What is added to that.
    plus: i64,
    /// How many loops are open around its values.
    depth: usize,
}

impl<'n, 'f> Emitter<'n, 'f> {
    fn new(
        Nests {
            legal: nest,
            halves,
        }: Nests<'n>,
        around: &Around<'n>,
        mut builder: FunctionBuilder<'f>,
    ) -> Emitter<'n, 'f> {
        let entry = builder.create_block();
        builder.append_block_params_for_function_params(entry);
        builder.switch_to_block(entry);
        let parameter = |k: usize| builder.block_params(entry)[k];
        let (pointers, fault, part) = (parameter(0), parameter(1), [parameter(2), parameter(3)]);
        let scratch = parameter(4);
        let (mut bases, mut flags) = (Vec::new(), Vec::new());
        for (b, buffer) in nest.buffers.iter().enumerate() {
            bases.push(match around.tables.get(b).copied().flatten() {
                Some(table) => table_base(&mut builder, table),
                None => {
                    let once = MemFlagsData::trusted().with_readonly().with_can_move();
                    builder.ins().load(types::I64, once, pointers, b as i32 * 8)
                }
            });
            // No two buffers overlap. Elements may lie at any address.
            let region = AliasRegionData {
                user_id: b as u32,
                description: buffer.name.clone().into(),
            };
            let region = builder.func.dfg.alias_regions.insert(region);
            flags.push(
                MemFlagsData::new()
                    .with_notrap()
                    .with_endianness(ir::Endianness::Little)
                    .with_alias_region(Some(region)),
            );
        }
        Emitter {
            analysis: Analysis::new(nest, around.target, vector::is_supported(around.isa)),
            halves,
            builder,
            bases,
            flags,
            fault,
            looks: poll::Looks::default(),
            part,
            scratch,
            scratch_bytes: 0,
            axes: FxHashMap::default(),
            loops: Vec::new(),
            accumulators: Vec::new(),
            slots: FxHashMap::default(),
            order: Vec::new(),
            scopes: Vec::new(),
            tasks: Vec::new(),
            vectors: vector::Vectors::default(),
            runs: vec![Runs::SCALAR; nest.stages.len()],
            collected: Vec::new(),
            instead_of_faults: None,
            narrowed: None,
            panel_bases: Vec::new(),
            loop_functions: around.loop_functions,
            loop_codes: Vec::new(),
            notes: vec![String::new(); nest.stages.len()],
            support: around.support,
            is_x86: around.isa.name() == "x64",
        }
    }

    fn stages(&mut self) -> Result {
        for (number, stage) in self.analysis.nest.stages.iter().enumerate() {
            self.builder.set_srcloc(text::location(number));
            self.stage(number, stage)?;
        }
        self.builder
            .set_srcloc(text::location(self.analysis.nest.stages.len()));
        let done = self.builder.ins().iconst(types::I32, 0);
        self.builder.ins().return_(&[done]);
        self.builder.seal_all_blocks();
        Ok(())
    }

    fn open_scope(&mut self) {
        self.scopes.push(self.order.len());
    }

    fn close_scope(&mut self) {
        let start = self.scopes.pop().unwrap_or(0);
        for address in self.order.drain(start..) {
            self.slots.remove(&address);
        }
    }

    fn is_known(&self, x: &Scalar) -> bool {
        self.slots.contains_key(&x.address())
    }

    fn set(&mut self, x: &Scalar, slot: impl Into<Slot>) {
        if self.slots.insert(x.address(), slot.into()).is_none() {
            self.order.push(x.address());
        }
    }

    /// The value of a scalar that has been computed.
    pub(crate) fn get(&self, x: &Scalar) -> Value {
        self.slots[&x.address()].value
    }

    pub(crate) fn index(&mut self, value: i64) -> Value {
        self.builder.ins().iconst(types::I64, value)
    }

    /// All bits zero.
    fn zero(&mut self, ty: ElementType) -> Value {
        self.constant(0, ty)
    }

    fn constant(&mut self, bits: u64, ty: ElementType) -> Value {
        let ins = self.builder.ins();
        match ty {
            ElementType::F32 => ins.f32const(ir::immediates::Ieee32::with_bits(bits as u32)),
            ElementType::F64 => ins.f64const(ir::immediates::Ieee64::with_bits(bits)),
            ElementType::Boolean => ins.iconst(types::I8, i64::from(bits != 0)),
            _ => ins.iconst(register(ty), (bits & (u64::MAX >> (64 - ty.bits()))) as i64),
        }
    }
}

fn table_base(builder: &mut FunctionBuilder, table: DataId) -> Value {
    let name = UserExternalName {
        namespace: 1,
        index: table.as_u32(),
    };
    let name = builder.func.declare_imported_user_function(name);
    let symbol = builder.create_global_value(GlobalValueData::Symbol {
        name: ExternalName::user(name),
        offset: 0.into(),
        // Data may be mapped too far from the code for a short reference.
        colocated: false,
        tls: false,
    });
    builder.ins().symbol_value(types::I64, symbol)
}

/// How a value is held in a register: floats of 32 and 64 bits as such, all else as its bits with
/// zeros above them, booleans as 0 and 1.
fn register(ty: ElementType) -> Type {
    match ty {
        ElementType::F32 => types::F32,
        ElementType::F64 => types::F64,
        _ => match ty.bits() {
            ..=8 => types::I8,
            16 => types::I16,
            32 => types::I32,
            _ => types::I64,
        },
    }
}

fn no_primitive<T>(what: impl std::fmt::Display) -> Result<T> {
    Err(Refusal::NoPrimitive(what.to_string()))
}
