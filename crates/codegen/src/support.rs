//! The functions that kernels call: long copies are best left to those who know the machine.

use crate::CodegenError;
use crate::compile::refused;
use crate::emit::Support;
use cranelift_codegen::ir::{AbiParam, types};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Linkage, Module};

const COPY: &str = "vinelift_copy";
const CLEAR: &str = "vinelift_clear";

/// # Safety
///
/// `from` is valid for reads of `bytes` bytes, `to` for writes, and they do not overlap.
unsafe extern "C" fn copy(to: *mut u8, from: *const u8, bytes: usize) {
    // SAFETY: the caller vouches for it; bytes may lie anywhere.
    unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) }
}

/// # Safety
///
/// `to` is valid for writes of `bytes` bytes.
unsafe extern "C" fn clear(to: *mut u8, bytes: usize) {
    // SAFETY: the caller vouches for it; bytes may lie anywhere.
    unsafe { std::ptr::write_bytes(to, 0, bytes) }
}

/// Has a module find the functions.
pub(crate) fn define(builder: &mut JITBuilder) {
    builder.symbol(COPY, copy as *const u8);
    builder.symbol(CLEAR, clear as *const u8);
}

pub(crate) fn declare(module: &mut JITModule) -> Result<Support, CodegenError> {
    Ok(Support {
        copy: function(module, COPY, 3)?,
        clear: function(module, CLEAR, 2)?,
    })
}

fn function(module: &mut JITModule, name: &str, parameters: usize) -> Result<FuncId, CodegenError> {
    let mut signature = module.make_signature();
    signature.params = vec![AbiParam::new(types::I64); parameters];
    let declared = module.declare_function(name, Linkage::Import, &signature);
    declared.map_err(|e| refused(0, 0, e))
}
