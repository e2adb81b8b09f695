//! Code that is dropped gives its memory back. A process of its own: no other test may take memory
//! meanwhile.

mod common;

use common::{compile, pointwise};
use vinelift_nest::Role;
use vinelift_tensor::ElementType::F32;

#[cfg(target_os = "linux")]
#[test]
fn dropped_code_gives_its_memory_back() {
    let resident = || -> usize {
        let status = std::fs::read_to_string("/proc/self/statm").unwrap();
        status.split(' ').nth(1).unwrap().parse().unwrap()
    };
    let mut nest = pointwise(&[F32], F32, 16, |x| &x[0] * 2.0 + 1.0);
    let table = nest.table("t", F32, 4096, &[0; 4 * 4096]);
    let z = nest.buffer("z", F32, &[4096], Role::Output);
    nest.define(vec![], z, |nest, at| nest.load(table, at.to_vec()));
    for _ in 0..50 {
        drop(compile(&nest));
    }
    let before = resident();
    for _ in 0..2000 {
        drop(compile(&nest));
    }
    let grown = resident().saturating_sub(before);
    // Leaked, it would be at least 6 pages each time.
    assert!(grown < 2000, "{grown} pages more");
}
