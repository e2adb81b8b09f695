//! The functions that the C++ side calls: `Engine` of `crates/plugin/cpp/engine.hpp`, in the same order.

use super::ffi::{Keeper, Outcome, Slice, Text, View, free, free_message};
use super::model::{Counts, Setting};
use super::request::{Each, Request, Sink, TimeOfKernel};
use super::{machine, model, request, variables};
use std::ffi::{c_char, c_void};
use vinelift::{CompiledModel, Model};

type EachText = unsafe extern "C" fn(*mut c_void, Text);

/// The table. What each function asks of its caller is said where it is defined.
#[repr(C)]
pub(crate) struct Engine {
    version: extern "C" fn() -> Text,
    target: extern "C" fn() -> Text,
    full_name: extern "C" fn() -> Text,
    threads: extern "C" fn() -> usize,
    free_message: unsafe extern "C" fn(*mut c_char),
    read: unsafe extern "C" fn(Text, Slice<Slice<u8>>, Keeper, *mut *mut Model) -> Outcome,
    free_model: unsafe extern "C" fn(*mut Model),
    unsupported: unsafe extern "C" fn(&Model, *mut c_void, EachText) -> Outcome,
    compile: unsafe extern "C" fn(&Model, Slice<Setting>, *mut *mut CompiledModel) -> Outcome,
    statistics: unsafe extern "C" fn(&CompiledModel, *mut Counts) -> Outcome,
    free_compiled: unsafe extern "C" fn(*mut CompiledModel),
    create_request: unsafe extern "C" fn(&CompiledModel, bool, *mut *mut Request) -> Outcome,
    free_request: unsafe extern "C" fn(*mut Request),
    infer: unsafe extern "C" fn(&Request, Slice<View>, Slice<View>, Sink) -> Outcome,
    set_cancelled: extern "C" fn(&Request, bool),
    times: unsafe extern "C" fn(&Request, Each<TimeOfKernel>) -> Outcome,
    get_variable: unsafe extern "C" fn(&Request, Text, Each<View>) -> Outcome,
    set_variable: unsafe extern "C" fn(&Request, Text, Text, &View) -> Outcome,
    reset_variable: unsafe extern "C" fn(&Request, Text) -> Outcome,
}

pub(crate) static ENGINE: Engine = Engine {
    version: machine::version,
    target: machine::target,
    full_name: machine::full_name,
    threads: machine::threads,
    free_message,
    read: model::read,
    free_model: free::<Model>,
    unsupported: model::unsupported,
    compile: model::compile,
    statistics: model::statistics,
    free_compiled: free::<CompiledModel>,
    create_request: request::create,
    free_request: free::<Request>,
    infer: request::infer,
    set_cancelled: request::set_cancelled,
    times: request::times,
    get_variable: variables::get_variable,
    set_variable: variables::set_variable,
    reset_variable: variables::reset_variable,
};
