//! Random graphs with large tensors give the same bits in every way to run them: the bytes are the choices of which
//! a graph is made.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::OnceLock;
use vinelift::Core;
use vinelift_tests::big_graphs::{Choices, check, grow};

fuzz_target!(|bytes: &[u8]| {
    static CORE: OnceLock<Core> = OnceLock::new();
    let core = CORE.get_or_init(|| Core::new().unwrap());
    if let Err(text) = check(core, &grow(&mut Choices::new(bytes))) {
        panic!("{text}");
    }
});
