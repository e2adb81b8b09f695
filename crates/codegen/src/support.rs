//! The functions that kernels call: long copies are best left to those who know the machine, and some
//! machines have no instruction for a fused multiply-add.

use crate::emit::Support;
use crate::error::{CodegenError, refused};
use cranelift_codegen::ir::{AbiParam, LibCall, types};
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

extern "C" fn fma_f32(x: f32, y: f32, z: f32) -> f32 {
    x.mul_add(y, z)
}

extern "C" fn fma_f64(x: f64, y: f64, z: f64) -> f64 {
    x.mul_add(y, z)
}

/// Whether kernels may call this function of the run-time library.
pub(crate) fn has(call: LibCall) -> bool {
    matches!(call, LibCall::FmaF32 | LibCall::FmaF64)
}

/// Has a module find the functions.
pub(crate) fn define(builder: &mut JITBuilder) {
    let name = cranelift_module::default_libcall_names();
    builder.symbol(name(LibCall::FmaF32), fma_f32 as *const u8);
    builder.symbol(name(LibCall::FmaF64), fma_f64 as *const u8);
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
