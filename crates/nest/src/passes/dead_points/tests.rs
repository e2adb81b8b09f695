use super::*;
use crate::analysis::verify;
use crate::ir::parse;

/// The stages after the pass over a nest of this text, in which the contents of what begins with `w` are known.
fn passed(text: &str) -> Vec<String> {
    let mut nest = parse(text).unwrap();
    verify(&nest).unwrap();
    let names: Vec<String> = nest.buffers.iter().map(|b| b.name.clone()).collect();
    dead_points(&mut nest, &|buffer| {
        names[buffer.0 as usize].starts_with('w')
    });
    verify(&nest).unwrap();
    nest.stage_texts()
}

/// Whether the pass leaves a nest of this text as it is.
fn stays(text: &str) -> bool {
    passed(text) == parse(text).unwrap().stage_texts()
}

#[test]
fn strides_move_to_where_windows_overlap() {
    let stages = passed(
        "input x: f32[4, 30]\ninput w: f32[8, 4, 3]\ninput w1: f32[2, 8, 1]\ninput w2: f32[3, 8, 1]\n\
         temporary c: f32[8, 28]\ntemporary r: f32[8, 28]\noutput y: f32[2, 14]\noutput z: f32[3, 14]\n\
         for i<8, j<28: c[i, j] = add[k<4, l<3; 0.0](term(x[k, (j + l)], w[i, k, l]))\n\
         for i<8, j<28: r[i, j] = max(0.0, c[i, j])\n\
         for i<2, j<14: y[i, j] = add[k<8, l<1; 0.0](term(r[k, ((j * 2) + l)], w1[i, k, l]))\n\
         for i<3, j<14: z[i, j] = add[k<8, l<1; 0.0](term(r[k, ((j * 2) + l)], w2[i, k, l]))\n",
    );
    assert_eq!(
        stages,
        [
            "for i<8, j<14: c[i, j] = add[k<4, l<3; 0.0](term(x[k, ((j * 2) + l)], w[i, k, l]))",
            "for i<8, j<14: r[i, j] = max(0.0, c[i, j])",
            "for i<2, j<14: y[i, j] = add[k<8, l<1; 0.0](term(r[k, j], w1[i, k, l]))",
            "for i<3, j<14: z[i, j] = add[k<8, l<1; 0.0](term(r[k, j], w2[i, k, l]))",
        ]
    );
}

#[test]
fn of_slices_and_single_rows_the_rest_is_not_computed() {
    let stages = passed(
        "input x: f32[6, 10]\ntemporary a: f32[6, 10]\ntemporary b: f32[6, 10]\noutput y: f32[3, 10]\noutput z: f32[10]\n\
         for i<6, j<10: a[i, j] = (x[i, j] + 1.0)\n\
         for i<6, j<10: b[i, j] = (x[i, j] * 2.0)\n\
         for i<3, j<10: y[i, j] = a[(i + 2), j]\n\
         for i<10: z[i] = b[5, i]\n",
    );
    assert_eq!(
        stages,
        [
            "for i<3, j<10: a[i, j] = (x[(i + 2), j] + 1.0)",
            "for i<1, j<10: b[i, j] = (x[5, j] * 2.0)",
            "for i<3, j<10: y[i, j] = a[i, j]",
            "for i<10: z[i] = b[0, i]",
        ]
    );
}

#[test]
fn what_readers_do_not_have_in_common_stays() {
    let nest = |readers: &str| {
        format!(
            "input x: f32[10]\ntemporary a: f32[10]\noutput y: f32[5]\noutput z: f32[5]\n\
             for i<10: a[i] = (x[i] + 1.0)\n{readers}"
        )
    };
    let common = "for i<5: y[i] = a[(i * 2)]\nfor i<5: z[i] = a[(i * 2)]\n";
    assert!(!stays(&nest(common)));
    for readers in [
        "for i<5: y[i] = a[(i * 2)]\nfor i<5: z[i] = a[((i * 2) + 1)]\n",
        "for i<5: y[i] = a[i]\nfor i<5: z[i] = a[(i + 5)]\n",
        "for i<5: y[i] = (a[i] + a[(i + 1)])\n",
        "for i<5: y[i] = a[(4 - i)]\n",
    ] {
        assert!(stays(&nest(readers)), "{readers}");
    }
}

#[test]
fn guards_and_outputs_stay() {
    // More points than the temporary has, of which a guard leaves some out.
    assert!(stays(
        "input x: f32[10]\ntemporary a: f32[10]\noutput y: f32[12]\n\
         for i<10: a[i] = (x[i] + 1.0)\n\
         for i<12: y[i] = select((i < 10), a[i], 0.0)\n"
    ));
    assert!(stays(
        "input x: f32[10]\noutput a: f32[10]\noutput y: f32[5]\n\
         for i<10: a[i] = (x[i] + 1.0)\n\
         for i<5: y[i] = a[(i * 2)]\n"
    ));
}

#[test]
fn points_that_may_fault_stay() {
    let nest = |policy: &str| {
        format!(
            "input x: f32[7]\ninput n: i64[10]\ntemporary a: f32[10]\noutput y: f32[5]\n\
             for i<10: a[i] = x[{policy}(n[i], 7)]\n\
             for i<5: y[i] = a[(i * 2)]\n"
        )
    };
    assert!(stays(&nest("check")));
    assert!(!stays(&nest("wrap?")));
}

#[test]
fn what_is_computed_once_stays() {
    let nest = |name: &str| {
        format!(
            "input {name}: f32[10]\ntemporary a: f32[10]\noutput y: f32[5]\n\
             for i<10: a[i] = ({name}[i] + 1.0)\n\
             for i<5: y[i] = a[i]\n"
        )
    };
    assert!(stays(&nest("w")));
    assert!(!stays(&nest("x")));
}

#[test]
fn extents_may_have_symbols() {
    let stages = passed(
        "symbols s0=20, s1=7\ninput x: f32[4, 2*s0]\ntemporary a: f32[4, 2*s0]\ntemporary b: f32[s1, 2*s0]\n\
         output y: f32[4, s0]\noutput z: f32[2*s0]\n\
         for i<4, j<2*s0: a[i, j] = (x[i, j] + 1.0)\n\
         for i<s1, j<2*s0: b[i, j] = (x[2, j] * 2.0)\n\
         for i<4, j<s0: y[i, j] = a[i, (j * 2)]\n\
         for i<2*s0: z[i] = b[0, i]\n",
    );
    assert_eq!(
        stages,
        [
            "for i<4, j<s0: a[i, j] = (x[i, (j * 2)] + 1.0)",
            "for i<1, j<2*s0: b[i, j] = (x[2, j] * 2.0)",
            "for i<4, j<s0: y[i, j] = a[i, j]",
            "for i<2*s0: z[i] = b[0, i]",
        ]
    );
    // The dim of a temporary that has a number of points keeps it, though its reader has a symbol.
    assert!(stays(
        "symbols s0=20\ninput x: f32[100]\ntemporary a: f32[100]\noutput y: f32[s0]\n\
         for i<100: a[i] = (x[i] + 1.0)\n\
         for i<s0: y[i] = select((i < 100), a[i], 0.0)\n"
    ));
}
