//! The module that kernels are linked in: declarations before they are compiled, and the code afterwards.

use super::kernel::Compiled;
use crate::code::{Code, CodeMemory, Entry};
use crate::emit;
use crate::error::{CodegenError, refused};
use cranelift_codegen::isa::TargetIsa;
use cranelift_jit::JITModule;
use cranelift_module::{DataDescription, DataId, FuncId, Linkage, Module, ModuleError};
use rustc_hash::FxHashMap;
use vinelift_nest::{Nest, Role};

/// The table behind each buffer of a nest, in the order of its buffers.
pub(super) type Tables = Vec<Option<DataId>>;

/// Puts the tables of all nests into the module; equal bytes are stored once.
pub(super) fn define_tables(
    module: &mut JITModule,
    nests: &[Nest],
) -> Result<Vec<Tables>, CodegenError> {
    let mut known: FxHashMap<&[u8], DataId> = FxHashMap::default();
    let mut all = Vec::with_capacity(nests.len());
    for (kernel, nest) in nests.iter().enumerate() {
        let mut tables = Tables::with_capacity(nest.buffers.len());
        for buffer in &nest.buffers {
            tables.push(match &buffer.role {
                Role::Table(bytes) => Some(match known.get(&**bytes) {
                    Some(&id) => id,
                    None => {
                        let id = define_table(module, kernel, bytes)?;
                        known.insert(bytes, id);
                        id
                    }
                }),
                _ => None,
            });
        }
        all.push(tables);
    }
    Ok(all)
}

fn define_table(
    module: &mut JITModule,
    kernel: usize,
    bytes: &[u8],
) -> Result<DataId, CodegenError> {
    let failed = |e| refused(kernel, bytes.len(), e);
    let id = module
        .declare_anonymous_data(false, false)
        .map_err(failed)?;
    let mut data = DataDescription::new();
    data.set_align(64);
    data.define(bytes.into());
    module.define_data(id, &data).map_err(failed)?;
    Ok(id)
}

/// Declares the function of each kernel.
pub(super) fn declare_functions(
    module: &mut JITModule,
    nests: &[Nest],
    isa: &dyn TargetIsa,
) -> Result<Vec<FuncId>, CodegenError> {
    let signature = emit::signature(isa);
    nests
        .iter()
        .enumerate()
        .map(|(kernel, nest)| {
            module
                .declare_function(&profiled_name(kernel, nest), Linkage::Local, &signature)
                .map_err(|e| refused(kernel, 0, e))
        })
        .collect()
}

/// The name by which a profiler shows a kernel: no two are the same.
fn profiled_name(kernel: usize, nest: &Nest) -> String {
    let layer = nest.layers.first().map_or("", |layer| &layer.name);
    let layer: String = layer.chars().filter(|c| !c.is_control()).collect();
    format!("kernel{kernel} {layer}")
}

/// Declares, for each kernel, a function for each stage, which is defined if the stage has a vector loop; for nests with symbols
/// then two more for each stage, for narrower loops.
pub(super) fn declare_loops(
    module: &mut JITModule,
    nests: &[Nest],
) -> Result<Vec<Vec<FuncId>>, CodegenError> {
    let signature = emit::loop_signature();
    let of = |(kernel, nest): (usize, &Nest)| {
        let name = profiled_name(kernel, nest);
        let mut declare = |number: usize| {
            let name = format!("{name}, vector loop {number}");
            module
                .declare_function(&name, Linkage::Local, &signature)
                .map_err(|e| refused(kernel, 0, e))
        };
        let rounds = if nest.is_symbolic() { 3 } else { 1 };
        (0..rounds * nest.stages.len()).map(&mut declare).collect()
    };
    nests.iter().enumerate().map(of).collect()
}

/// Defines the functions of all kernels, and gives the code that can run.
pub(super) fn link(
    mut memory: CodeMemory,
    functions: &[FuncId],
    compiled: Vec<Compiled>,
) -> Result<Code, CodegenError> {
    let bytes = compiled.iter().map(Compiled::size).sum();
    let no_memory = |e: ModuleError| CodegenError::Memory {
        bytes,
        message: e.to_string(),
    };
    let module = memory.module();
    for (&function, c) in functions.iter().zip(&compiled) {
        module
            .define_function_bytes(function, c.align, &c.bytes, &c.relocations)
            .map_err(no_memory)?;
        for code in &c.loop_codes {
            module
                .define_function_bytes(code.function, 64, &code.bytes, &[])
                .map_err(no_memory)?;
        }
    }
    module.finalize_definitions().map_err(no_memory)?;
    let entries = functions
        .iter()
        .zip(compiled)
        .map(|(&function, c)| Entry {
            address: module.get_finalized_function(function),
            size: c.size(),
            chunks: c.chunks,
            scratch: c.scratch,
            extents: c.extents,
            time: c.time,
            text: c.text,
        })
        .collect();
    Ok(Code::new(memory, entries))
}
