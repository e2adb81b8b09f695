//! `ov_profiling_info_list_t`: how long layers took.

use crate::memory;
use crate::status::Result;
use libc::c_char;
use std::collections::HashMap;
use std::time::Duration;
use vinelift::KernelTime;
use vinelift_graph::NodeKind;

/// `ov_profiling_info_list_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct ProfilingInfos {
    infos: *mut ProfilingInfo,
    size: usize,
}

/// `ov_profiling_info_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct ProfilingInfo {
    status: i32,
    /// In microseconds.
    real_time: i64,
    cpu_time: i64,
    node_name: *mut c_char,
    exec_type: *mut c_char,
    node_type: *mut c_char,
}

const NOT_RUN: i32 = 0;
const OPTIMIZED_OUT: i32 = 1;
const EXECUTED: i32 = 2;

impl ProfilingInfos {
    /// Of the layers of a model; none of them ran if there are no times.
    pub(crate) fn of(
        model: &vinelift::Model,
        times: Option<&[KernelTime]>,
    ) -> Result<ProfilingInfos> {
        let infos = infos(model, times)?;
        Ok(ProfilingInfos {
            infos: memory::copy_items(&infos)?,
            size: infos.len(),
        })
    }
}

/// One entry for each layer but constants.
fn infos(model: &vinelift::Model, times: Option<&[KernelTime]>) -> Result<Vec<ProfilingInfo>> {
    let mut of_layer: HashMap<&str, Duration> = HashMap::new();
    for kernel in times.unwrap_or_default() {
        if let Some(last) = kernel.layers.last() {
            *of_layer.entry(last.as_str()).or_default() += kernel.time;
        }
    }
    let graph = model.graph();
    let layers = graph.order.iter().map(|node| graph.node(*node));
    let layers = layers.filter(|node| !matches!(node.kind, NodeKind::Constant(_)));
    let info = |node: &vinelift_graph::Node| {
        let time = of_layer.get(node.layer.name.as_str());
        let (status, exec_type) = match (times, time) {
            (None, _) => (NOT_RUN, "not run"),
            (Some(_), None) => (OPTIMIZED_OUT, "part of another layer's code"),
            (Some(_), Some(_)) => (EXECUTED, "native code"),
        };
        let microseconds = time.map_or(0, |t| i64::try_from(t.as_micros()).unwrap_or(i64::MAX));
        Ok(ProfilingInfo {
            status,
            real_time: microseconds,
            cpu_time: microseconds,
            node_name: memory::copy_text(&node.layer.name)?,
            exec_type: memory::copy_text(exec_type)?,
            node_type: memory::copy_text(&node.layer.type_)?,
        })
    };
    layers.map(info).collect()
}

/// Frees a list of times.
///
/// # Safety
/// It comes from this library and was not freed, or has `NULL` for its array, or is `NULL`.
#[unsafe(no_mangle)]
unsafe extern "C" fn ov_profiling_info_list_free(profiling_infos: Option<&mut ProfilingInfos>) {
    let Some(list) = profiling_infos.filter(|list| !list.infos.is_null()) else {
        return;
    };
    // SAFETY: the caller's promise: the array has `size` elements, whose texts all come from
    // `memory`. The pointers are forgotten.
    unsafe {
        for k in 0..list.size {
            let info = *list.infos.add(k);
            memory::release(info.node_name);
            memory::release(info.exec_type);
            memory::release(info.node_type);
        }
        memory::release(list.infos);
    }
    *list = ProfilingInfos {
        infos: std::ptr::null_mut(),
        size: 0,
    };
}
