//! The machine's peak.

#[test]
fn a_peak_is_a_number() {
    let peak = vinelift_kernels::peak();
    assert!(
        [peak.f32_flops, peak.f64_flops, peak.byte_ops, peak.bytes]
            .iter()
            .all(|speed| *speed > 1e6 && speed.is_finite()),
        "{peak:?}"
    );
}
