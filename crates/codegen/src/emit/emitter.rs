//! The emitter of a kernel: what it knows and has emitted so far, and the scopes of computed scalars.

use super::state::{Binding, Bounds, Looks, Loop, Numbers, Slot, Task};
use crate::analysis::Analysis;
use crate::analysis::runs::Runs;
pub(super) use crate::target::clif128::register;
use crate::target::{Mark, Target};
use cranelift_codegen::ir::{
    self, AliasRegionData, Block, ExternalName, GlobalValueData, InstBuilder, MemFlagsData,
    StackSlot, UserExternalName, Value, types,
};
use cranelift_codegen::isa::TargetIsa;
use cranelift_frontend::FunctionBuilder;
use cranelift_module::{DataId, FuncId};
use rustc_hash::FxHashMap;
use vinelift_nest::{AxisId, BufferId, Nest, Scalar};
use vinelift_tensor::ElementType;

/// The surroundings of a kernel besides its nest.
pub(crate) struct Around<'a> {
    /// The table behind each buffer, if there is one.
    pub(crate) tables: &'a [Option<DataId>],
    /// For each stage a function that may be defined for it, and then twice another for each if there are symbols.
    pub(crate) loop_functions: &'a [FuncId],
    pub(crate) support: Support,
    pub(crate) isa: &'a dyn TargetIsa,
    /// Whether it has the vector instructions that Cranelift counts on.
    pub(crate) has_vectors: bool,
    /// The machine that vector loops are compiled for; `None` if there are to be none.
    pub(crate) target: Option<Target>,
}

/// The nest of a kernel.
#[derive(Clone, Copy)]
pub(crate) struct Nests<'n> {
    pub(crate) legal: &'n Nest,
    /// The same with casts between `f16` and `f32`, which vector loops have instructions for.
    pub(crate) halves: Option<&'n Nest>,
}

/// The functions that kernels call.
#[derive(Clone, Copy)]
pub(crate) struct Support {
    /// `fn(to, from, bytes)`
    pub(crate) copy: FuncId,
    /// `fn(to, bytes)`
    pub(crate) clear: FuncId,
}

/// The code of a vector loop.
pub(crate) struct LoopCode {
    /// The function that it becomes.
    pub(crate) function: FuncId,
    /// The number of its stage.
    pub(crate) stage: usize,
    pub(crate) bytes: Vec<u8>,
    /// How many of them are instructions; constants follow.
    pub(crate) code: usize,
    /// Labels of its instructions, for the listing.
    pub(crate) marks: Vec<Mark>,
    /// The buffers behind those of its arguments that are addresses.
    pub(crate) buffers: Vec<Option<BufferId>>,
}

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

pub(crate) struct Emitter<'n, 'f> {
    pub(super) analysis: Analysis<'n>,
    /// The nest with casts of `f16`.
    pub(super) halves: Option<&'n Nest>,
    pub(super) builder: FunctionBuilder<'f>,
    /// The block that returns, with the status of the call.
    pub(super) end: Block,
    /// Where each buffer begins.
    pub(super) bases: Vec<Value>,
    /// How each buffer is accessed.
    pub(super) flags: Vec<MemFlagsData>,
    /// Where a fault is written.
    pub(super) fault: Value,
    /// Which loops of the current stage look whether to stop.
    pub(super) looks: Looks,
    /// Where the chunk to run begins and ends.
    pub(super) chunk: [Value; 2],
    /// Where scratch memory begins, and how much of it is used.
    pub(super) scratch: Value,
    pub(super) scratch_bytes: usize,
    /// The formulas whose numbers the caller hands over.
    pub(super) numbers: Numbers,
    /// The axes in scope.
    pub(super) axes: FxHashMap<AxisId, Binding>,
    /// The loops that are open, outermost first.
    pub(super) loops: Vec<Loop>,
    /// The accumulators of the reductions that are open.
    pub(super) accumulators: Vec<Value>,
    /// The scalars that have been computed, by address.
    pub(super) slots: FxHashMap<usize, Slot>,
    /// The keys of `slots` in the order in which they came.
    pub(super) order: Vec<usize>,
    /// Length of `order` at the start of each open scope.
    pub(super) scopes: Vec<usize>,
    pub(super) tasks: Vec<Task<'n>>,
    /// How each stage runs.
    pub(super) runs: Vec<Runs>,
    /// Memory for what the current stage collects, a piece for each load.
    pub(super) collected: Vec<StackSlot>,
    /// Where an index that is wrong leads to, if it is not to be reported at once.
    pub(super) instead_of_faults: Option<Block>,
    /// The axis that has only some of its points for now, and which.
    pub(super) narrowed: Option<(AxisId, Bounds)>,
    /// Where the first column of each panel of the current stage would begin, if all columns were packed.
    pub(super) panel_bases: Vec<Value>,
    /// The function that the vector loop of each stage becomes, if it has one.
    pub(super) loop_functions: &'n [FuncId],
    pub(super) loop_codes: Vec<LoopCode>,
    /// The note of a dump on each stage.
    pub(super) notes: Vec<String>,
    pub(super) support: Support,
    pub(super) is_x86: bool,
}

impl<'n, 'f> Emitter<'n, 'f> {
    pub(super) fn new(
        analysis: Analysis<'n>,
        nests: Nests<'n>,
        around: &Around<'n>,
        mut builder: FunctionBuilder<'f>,
    ) -> Emitter<'n, 'f> {
        let entry = builder.create_block();
        builder.append_block_params_for_function_params(entry);
        builder.switch_to_block(entry);
        let parameter = |k: usize| builder.block_params(entry)[k];
        let (pointers, fault, chunk) = (parameter(0), parameter(1), [parameter(2), parameter(3)]);
        let (scratch, numbers) = (parameter(4), Numbers::new(parameter(5)));
        let nest = nests.legal;
        let (bases, flags) = buffers(&mut builder, nest, around.tables, pointers);
        let end = builder.create_block();
        builder.append_block_param(end, types::I32);
        Emitter {
            analysis,
            halves: nests.halves,
            builder,
            end,
            bases,
            flags,
            fault,
            looks: Looks::default(),
            chunk,
            scratch,
            scratch_bytes: 0,
            numbers,
            axes: FxHashMap::default(),
            loops: Vec::new(),
            accumulators: Vec::new(),
            slots: FxHashMap::default(),
            order: Vec::new(),
            scopes: Vec::new(),
            tasks: Vec::new(),
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

    pub(super) fn open_scope(&mut self) {
        self.scopes.push(self.order.len());
    }

    pub(super) fn close_scope(&mut self) {
        let start = self.scopes.pop().unwrap_or(0);
        for address in self.order.drain(start..) {
            self.slots.remove(&address);
        }
    }

    pub(super) fn is_known(&self, x: &Scalar) -> bool {
        self.slots.contains_key(&x.address())
    }

    pub(super) fn set(&mut self, x: &Scalar, slot: impl Into<Slot>) {
        if self.slots.insert(x.address(), slot.into()).is_none() {
            self.order.push(x.address());
        }
    }

    /// The value of a scalar that has been computed.
    pub(super) fn get(&self, x: &Scalar) -> Value {
        self.slots[&x.address()].value
    }

    pub(super) fn index(&mut self, value: i64) -> Value {
        self.builder.ins().iconst(types::I64, value)
    }

    /// All bits zero.
    pub(super) fn zero(&mut self, ty: ElementType) -> Value {
        self.constant(0, ty)
    }

    pub(super) fn constant(&mut self, bits: u64, ty: ElementType) -> Value {
        let ins = self.builder.ins();
        match ty {
            ElementType::F32 => ins.f32const(ir::immediates::Ieee32::with_bits(bits as u32)),
            ElementType::F64 => ins.f64const(ir::immediates::Ieee64::with_bits(bits)),
            ElementType::Boolean => ins.iconst(types::I8, i64::from(bits != 0)),
            _ => ins.iconst(register(ty), (bits & (u64::MAX >> (64 - ty.bits()))) as i64),
        }
    }
}

/// Analyses a nest before anything is emitted; a refusal if a stride has no formula.
pub(super) fn analysis<'n>(nest: &'n Nest, around: &Around<'n>) -> Result<Analysis<'n>> {
    match Analysis::new(nest, around.target, around.has_vectors) {
        Some(analysis) => Ok(analysis),
        None => no_primitive("a buffer whose strides are too long formulas"),
    }
}

/// Where each buffer begins, and how it is accessed.
fn buffers(
    builder: &mut FunctionBuilder<'_>,
    nest: &Nest,
    tables: &[Option<DataId>],
    pointers: Value,
) -> (Vec<Value>, Vec<MemFlagsData>) {
    let (mut bases, mut flags) = (Vec::new(), Vec::new());
    for (b, buffer) in nest.buffers.iter().enumerate() {
        bases.push(match tables.get(b).copied().flatten() {
            Some(table) => table_base(builder, table),
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
    (bases, flags)
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

pub(super) fn no_primitive<T>(what: impl std::fmt::Display) -> Result<T> {
    Err(Refusal::NoPrimitive(what.to_string()))
}

/// Whether the machine has the vector instructions that Cranelift counts on.
pub(crate) fn has_vectors(isa: &dyn TargetIsa) -> bool {
    let flags = isa.isa_flags();
    let has = |name: &str| {
        flags
            .iter()
            .any(|f| f.name == name && f.as_bool() == Some(true))
    };
    match isa.name() {
        "x64" => has("has_ssse3") && has("has_sse41"),
        "aarch64" => true,
        _ => false,
    }
}
