//! Code for extents with symbols is right for all numbers: made once, run at many.

use crate::common::symbols::check;
use crate::common::{random, text_for_256_bits, vector_loops};
use vinelift_nest::{Nest, Role, parse};
use vinelift_tensor::ElementType::{self, Boolean, F16, F32, F64, I32, I64};
use vinelift_tensor::element_count;

const SOME: [usize; 14] = [2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 100, 257];

/// Values of two symbols: each of [`SOME`], with some of the others.
fn values() -> Vec<Vec<usize>> {
    let pairs = (0..SOME.len()).flat_map(|a| [0, 1, 3, 6].map(|by| (a, (a + by) % SOME.len())));
    pairs.map(|(a, b)| vec![SOME[a], SOME[b]]).collect()
}

/// Bytes for the inputs of a nest; those of indices are of `-limit..limit` and, now and then, beyond.
fn inputs(nest: &Nest, limit: i64, beyond: bool) -> Vec<Vec<u8>> {
    let mut next = random(nest.buffers.iter().flat_map(|b| b.example()).sum::<usize>() as u64);
    let buffers = nest.buffers.iter().filter(|b| b.role == Role::Input);
    let mut of = |ty: ElementType, count: usize| -> Vec<u8> {
        let mut bytes = Vec::new();
        for _ in 0..count {
            let bits = next();
            let small = (bits >> 8) as i64 % 1000;
            let index = match beyond && bits.is_multiple_of(97) {
                true => limit + small.abs(),
                false => (bits >> 8) as i64 % limit,
            };
            match ty {
                F32 => bytes.extend((small as f32 / 64.0).to_le_bytes()),
                F64 => bytes.extend((small as f64 / 64.0).to_le_bytes()),
                // Small numbers.
                F16 => bytes.extend((0x3000 | (bits as u16 & 0x8fff)).to_le_bytes()),
                I32 => bytes.extend((index as i32).to_le_bytes()),
                I64 => bytes.extend(index.to_le_bytes()),
                Boolean => bytes.push((bits & 1) as u8),
                _ => bytes.push(bits as u8),
            }
        }
        bytes.truncate(ty.byte_len(count).unwrap());
        bytes
    };
    buffers
        .map(|b| of(b.ty, element_count(&b.example()).unwrap()))
        .collect()
}

/// Larger tensors take the interpreter seconds, and run in the same ways as these.
const MOST_ELEMENTS: usize = 70_000;

fn check_text(text: &str) {
    let nest = parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut values = values();
    values.retain(|values| {
        nest.bound_to(values).is_none_or(|bound| {
            let mut counts = bound.buffers.iter().map(|b| b.example().iter().product());
            counts.all(|count: usize| count <= MOST_ELEMENTS)
        })
    });
    check(&nest, &values, |bound| inputs(bound, 100, false));
}

const TWO: &str = "symbols s0=37, s1=21\n";

#[test]
fn elements_of_all_types() {
    let of = |ty: &str, value: &str| {
        for (shape, at, axes) in [
            ("s0", "i", "i<s0"),
            ("s0, 24", "i, j", "i<s0, j<24"),
            ("12, s0", "i, j", "i<12, j<s0"),
            ("s0, s1", "i, j", "i<s0, j<s1"),
            ("s0, 3, s1, 20", "i, j, k, l", "i<s0, j<3, k<s1, l<20"),
        ] {
            let value = value.replace('@', at);
            check_text(&format!(
                "{TWO}input x: {ty}[{shape}]\noutput y: {ty}[{shape}]\nfor {axes}: y[{at}] = {value}\n"
            ));
        }
    };
    of("f32", "((x[@] * 2.5) + exp(x[@]))");
    of("f64", "(x[@] / 3.0f64)");
    of("i32", "(x[@] + 7i32)");
    of("i64", "((x[@] * 3) - i)");
    of("u8", "(x[@] * 3u8)");
    of("boolean", "(x[@] == false)");
    of("f16", "f16((f32(x[@]) * 1.5))");
    of("u4", "u4((i32(x[@]) + 1i32))");
    of("f32", "x[@]");
    of("boolean", "x[@]");
    of("u4", "x[@]");
}

#[test]
fn softmax() {
    for (rows, columns) in [("s0", "s1"), ("s0", "48"), ("12", "s1"), ("s0*s1", "s0")] {
        check_text(&format!(
            "{TWO}input x: f32[{rows}, {columns}]\ntemporary m: f32[{rows}]\n\
             temporary e: f32[{rows}, {columns}]\ntemporary t: f32[{rows}]\n\
             output y: f32[{rows}, {columns}]\n\
             for i<{rows}: m[i] = max[j<{columns}; -inf](x[i, j])\n\
             for i<{rows}, j<{columns}: e[i, j] = exp((x[i, j] - m[i]))\n\
             for i<{rows}: t[i] = add[j<{columns}; 0.0](e[i, j])\n\
             for i<{rows}, j<{columns}: y[i, j] = (e[i, j] / t[i])\n"
        ));
    }
}

#[test]
fn norm_of_rows() {
    for columns in ["96", "s1"] {
        check_text(&format!(
            "{TWO}input x: f32[s0, {columns}]\ninput b: f32[{columns}]\ntemporary m: f32[s0]\n\
             temporary v: f32[s0]\noutput y: f32[s0, {columns}]\n\
             for i<s0: m[i] = (add[j<{columns}; 0.0](x[i, j]) / 96.0)\n\
             for i<s0: v[i] = sqrt(add[j<{columns}; 1.0](((x[i, j] - m[i]) * (x[i, j] - m[i]))))\n\
             for i<s0, j<{columns}: y[i, j] = (((x[i, j] - m[i]) / v[i]) + b[j])\n"
        ));
    }
}

#[test]
fn folds_in_every_lane() {
    for text in [
        // Two folds, one after the other, of the same elements and of neighbours.
        "input x: f32[s0, 40]\noutput y: f32[40]\n\
         for j<40: y[j] = (add[i<s0; 0.0](x[i, j]) + max[k<s0; 0.0](x[k, j]))\n",
        "input x: f64[9, 60, s0]\noutput y: f64[9, s0]\n\
         for i<9, j<s0: y[i, j] = (add[k<60; 0.0f64](x[i, k, j]) - max[l<60; 0.0f64](x[i, l, j]))\n",
        "input x: f32[9, 62, s0]\noutput y: f32[9, s0]\n\
         for i<9, j<s0: y[i, j] = ((add[k<60; 0.0](x[i, k, j]) + max[l<40; 0.0](x[i, l, j])) \
         * min[m<60; 0.0](x[i, (m + 2), j]))\n",
        // As partial folds are written.
        "input x: f32[s0, 16*s1]\noutput y: f32[s0, 16]\n\
         for i<s0, l<16: y[i, l] = add[t<s1; 0.0](x[i, ((t * 16) + l)])\n",
        "input x: f32[s0, 24]\noutput y: f32[24]\nfor j<24: y[j] = max[i<s0; -inf](x[i, j])\n",
        "input x: f32[s0, s1]\noutput y: f32[s1]\nfor j<s1: y[j] = add[i<s0; 0.0](x[i, j])\n",
        "input x: f32[s0, 5, 40]\noutput y: f32[40]\n\
         for j<40: y[j] = add[i<s0, k<5; 0.0](x[i, k, j])\n",
        "input x: f32[3, s0, 40]\noutput y: f32[3, 40]\n\
         for k<3, j<40: y[k, j] = add[i<s0; 0.0](x[k, i, j])\n",
        "input a: f32[s0, s1]\ninput b: f32[s1, 64]\noutput y: f32[s0, 64]\n\
         for i<s0, j<64: y[i, j] = add[k<s1; 0.0](term(a[i, k], b[k, j]))\n",
        "input a: f32[7, s1]\ninput b: f32[s1, s0]\noutput y: f32[7, s0]\n\
         for i<7, j<s0: y[i, j] = add[k<s1; 0.0](term(a[i, k], b[k, j]))\n",
        "input x: i32[s0, s1]\noutput y: i64[s0]\nfor i<s0: y[i] = add[k<s1; 0](i64(x[i, k]))\n",
        "input x: f32[s0 + 2, s1]\noutput y: f32[s0, s1]\n\
         for i<s0, j<s1: y[i, j] = max[k<3; -inf](x[(i + k), j])\n",
        "input x: f32[20, s0 + 2]\noutput y: f32[18, s0]\n\
         for i<18, j<s0: y[i, j] = add[k<3, l<3; 0.0](x[(i + k), (j + l)])\n",
        "input x: f32[s0 + 2, 34]\noutput y: f32[s0, 32]\n\
         for i<s0, j<32: y[i, j] = add[k<3, l<3; 0.0](x[(i + k), (j + l)])\n",
    ] {
        check_text(&format!("{TWO}{text}"));
    }
}

#[test]
fn what_is_moved() {
    for text in [
        "input x: f32[s0, 12, 64]\noutput y: f32[12, s0, 64]\n\
         for h<12, i<s0, d<64: y[h, i, d] = x[i, h, d]\n",
        "input x: f32[s0, 12, 64]\noutput y: f32[12, 64, s0]\n\
         for h<12, d<64, i<s0: y[h, d, i] = x[i, h, d]\n",
        "input x: f32[s0, s1]\noutput y: f32[s1, s0]\nfor i<s1, j<s0: y[i, j] = x[j, i]\n",
        "input x: u8[s0, 48]\noutput y: u8[48, s0]\nfor i<48, j<s0: y[i, j] = x[j, i]\n",
        "input x: f32[s0, 48]\noutput y: f32[48, s0]\nfor i<48, j<s0: y[i, j] = exp(x[j, i])\n",
        "input x: f32[48, s0]\noutput y: f32[s0, 48]\nfor j<s0, i<48: y[j, i] = exp(x[i, j])\n",
        // Beside each other.
        "input x: f32[s0, 8]\ninput z: f32[s1, 8]\noutput y: f32[s0 + s1, 8]\n\
         for i<s0, j<8: y[i, j] = x[i, j]\nfor i<s1, j<8: y[(i + extent(s0)), j] = z[i, j]\n",
        "input x: u8[5, s0, 8]\ninput z: u8[5, s1, 8]\noutput y: u8[5, s0 + s1, 8]\n\
         for k<5, i<s0, j<8: y[k, i, j] = x[k, i, j]\n\
         for k<5, i<s1, j<8: y[k, (i + extent(s0)), j] = z[k, i, j]\n",
        "input x: i64[5, s0]\ninput z: i64[5, s1]\noutput y: i64[5, s0 + s1]\n\
         for k<5, i<s0: y[k, i] = x[k, i]\nfor k<5, i<s1: y[k, (i + extent(s0))] = z[k, i]\n",
        "input x: f32[s0 + s1, s0]\noutput y: f32[s1, s0]\n\
         for i<s1, j<s0: y[i, j] = x[(i + extent(s0)), j]\n",
        // From behind, and with steps.
        "input x: f32[s0]\noutput y: f32[s0]\nfor i<s0: y[i] = x[((extent(s0) - 1) - i)]\n",
        "input x: f32[2*s0, s1]\noutput y: f32[s0, s1]\nfor i<s0, j<s1: y[i, j] = x[(i * 2), j]\n",
        "input x: f32[s1, 2*s0]\noutput y: f32[s1, s0]\n\
         for i<s1, j<s0: y[i, j] = (x[i, (j * 2)] + x[i, ((j * 2) + 1)])\n",
        // Rows of constant numbers.
        "input x: f32[3, s0, s1]\noutput y: f32[s0, s1]\n\
         for i<s0, j<s1: y[i, j] = (x[0, i, j] + x[2, i, j])\n",
        "input x: f32[s0, s1]\noutput y: f32[s0*s1]\n\
         for i<s0*s1: y[i] = x[(i / extent(s1)), (i % extent(s1))]\n",
        "input x: f32[s0*s1]\noutput y: f32[s0, s1]\n\
         for i<s0, j<s1: y[i, j] = x[((i * extent(s1)) + j)]\n",
        "input x: u4[s0, s1]\noutput y: u4[s1, s0]\nfor i<s1, j<s0: y[i, j] = x[j, i]\n",
        "input x: f32[s0 + s1, s0 + s1]\noutput y: f32[s0 + s1]\nfor i<s0 + s1: y[i] = x[i, i]\n",
        // Rows that become columns.
        "input x: f32[s0, s1]\noutput y: f32[s1, s0]\nfor i<s1, j<s0: y[i, j] = x[j, i]\n",
        "input x: u8[s0, 3, s1]\noutput y: u8[s1, 3, s0]\n\
         for i<s1, k<3, j<s0: y[i, k, j] = x[j, k, i]\n",
        "input x: f32[s0, s1, 24]\noutput y: f32[24, s0, s1]\n\
         for k<24, i<s0, j<s1: y[k, i, j] = x[i, j, k]\n",
        "input x: f32[3, s0, s1]\noutput y: f32[s0, s1, 3]\n\
         for i<s0, j<s1, k<3: y[i, j, k] = x[k, i, j]\n",
        "input x: u8[s0, s1]\noutput y: u8[s0, 2*s1]\n\
         for i<s0, j<s1, k<2: y[i, ((j * 2) + k)] = x[i, j]\n",
        "input x: f16[24, s0, s1]\noutput y: f16[s0, s1, 24]\n\
         for i<s0, j<s1, k<24: y[i, j, k] = x[k, i, j]\n",
    ] {
        check_text(&format!("{TWO}{text}"));
    }
}

#[test]
fn guards_and_numbers() {
    for text in [
        "input x: f32[s0]\noutput y: f32[s0 + s1]\n\
         for i<s0 + s1: y[i] = select((i < extent(s0)), x[i], 0.0)\n",
        "input x: f32[7, s0]\noutput y: f32[7, s0 + s1]\n\
         for k<7, i<s0 + s1: y[k, i] = select((i < extent(s0)), x[k, i], f32(extent(s1)))\n",
        "output y: f32[s0, s1]\nfor i<s0, j<s1: y[i, j] = f32(((i * extent(s1)) + j))\n",
        "input x: f32[s0, s1]\noutput y: f32[s0, s1]\n\
         for i<s0, j<s1: y[i, j] = select((j <= i), x[i, j], -inf)\n",
        "output y: i64[s0]\nfor i<s0: y[i] = (extent(s0*s1) - (extent(s0) * i))\n",
    ] {
        check_text(&format!("{TWO}{text}"));
    }
}

#[test]
fn several_stages_and_turns() {
    for text in [
        "input x: f32[s0]\ntemporary t: f32[2*s0]\noutput y: f32[s0]\n\
         for i<2*s0: t[i] = x[(i / 2)]\nfor i<s0: y[i] = (t[(i * 2)] + t[((i * 2) + 1)])\n",
        "input x: f32[s0, s1]\noutput y: f32[s0, s1]\n\
         turn 0 for t<s0, i<s1: y[t, i] = (x[t, i] * 0.5)\n",
        "input x: f32[s0]\noutput y: f32[s0]\nturn 0 for t<s0: y[t] = (x[t] * 0.5)\n",
        // Each point goes on from the one before, or from that of the row before.
        "input x: f32[s0, s1]\noutput y: f32[s0, s1]\n\
         for i<s0, j<s1: y[i, j] = (y[i, max((j - 1), 0)] + x[i, j])\n",
        "input x: f32[s0, s1]\noutput y: f32[s0, s1]\n\
         for i<s0, j<s1: y[i, j] = (y[max((i - 1), 0), j] + x[i, j])\n",
        "input x: f32[s0 + 37]\noutput y: f32[s0 + 37]\n\
         for i<s0: y[(i + 37)] = (y[i] + x[i])\n",
        "input x: f32[s0, s1]\noutput y: f32[s1]\nfor i<s0, j<s1: y[j] add= x[i, j]\n",
        "input x: f32[s0, s1]\noutput y: f32[s0]\nfor i<s0, j<s1: y[i] max= x[i, j]\n",
    ] {
        check_text(&format!("{TWO}{text}"));
    }
}

#[test]
fn indices_of_data() {
    for (ty, policy) in [
        ("i32", "wrap"),
        ("i64", "wrap"),
        ("i32", "check"),
        ("i64", "wrap?"),
        ("u8", "check?"),
    ] {
        for text in [
            "input x: f32[s1, 16]\noutput y: f32[s0, 16]\n\
             for i<s0, j<16: y[i, j] = x[P(ix[i], s1), j]\n",
            "input x: f32[16, s1]\noutput y: f32[16, s0]\n\
             for i<16, j<s0: y[i, j] = x[i, P(ix[j], s1)]\n",
            "input x: f32[s1, s0]\noutput y: f32[s0, s0]\n\
             for i<s0, j<s0: y[i, j] = (x[P(ix[i], s1), j] * 2.0)\n",
            "input x: f32[20, s1]\noutput y: f32[s0, s1]\n\
             for i<s0, j<s1: y[i, j] = x[P(ix[i], 20), j]\n",
            "input x: u8[20]\noutput y: u8[s0]\nfor i<s0: y[i] = x[P(ix[i], 20)]\n",
            "input x: u8[s1]\noutput y: u8[s0]\nfor i<s0: y[i] = (x[P(ix[i], s1)] + 1u8)\n",
            "input x: f32[s0, 32]\noutput y: f32[s1, 32]\n\
             for i<s0, j<32: y[P(ix[i], s1), j] add= x[i, j]\n",
            "input x: f32[s0, s0]\noutput y: f32[s1, s0]\n\
             for i<s0, j<s0: y[P(ix[i], s1), j] = x[i, j]\n",
            "input x: f32[s0, s0]\noutput y: f32[s0, s1]\n\
             for i<s0, j<s0: y[i, P(ix[j], s1)] add= x[i, j]\n",
        ] {
            let text = text.replace("P(", &format!("{policy}("));
            let text = format!("{TWO}input ix: {ty}[s0]\n{text}");
            let nest = parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
            for beyond in [false, true] {
                check(&nest, &values(), |bound| {
                    let least = bound.buffers.iter().flat_map(|b| b.example()).min();
                    inputs(bound, least.unwrap().min(20) as i64, beyond)
                });
            }
        }
    }
}

/// How each stage of a nest runs, as dumps say.
fn how(text: &str) -> Vec<String> {
    let nest = parse(&format!("{TWO}{text}")).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let text = text_for_256_bits(&nest).clif;
    let headings = text.lines().filter(|line| line.starts_with("; @"));
    let how = headings.map(|line| line.split_once(", ").unwrap_or_default().1);
    how.map(|how| how.split_once(": ").unwrap_or((how, "")).0.to_owned())
        .collect()
}

#[test]
fn dumps_say_how_stages_run() {
    if !vector_loops()[0] {
        return;
    }
    for (text, want) in [
        (
            "input x: f32[s0, 384]\noutput y: f32[s0, 384]\n\
             for i<s0, j<384: y[i, j] = exp(x[i, j])\n",
            "vectorised ×16 on 256 bits",
        ),
        (
            "input x: f32[s0, s1]\noutput y: f32[s0, s1]\n\
             for i<s0, j<s1: y[i, j] = exp(x[i, j])\n",
            "vectorised ×16 on 256 bits, from 16 points on",
        ),
        (
            "input x: f32[s0, 16*s1]\noutput y: f32[s0, 16]\n\
             for i<s0, l<16: y[i, l] = add[t<s1; 0.0](x[i, ((t * 16) + l)])\n",
            "vectorised ×16 on 256 bits",
        ),
        (
            "input a: f32[s0, s1]\ninput b: f32[s1, 64]\noutput y: f32[s0, 64]\n\
             for i<s0, j<64: y[i, j] = add[k<s1; 0.0](term(a[i, k], b[k, j]))\n",
            "vectorised ×32 on 256 bits",
        ),
        (
            "input x: f32[s0, 12, 64]\noutput y: f32[12, s0, 64]\n\
             for h<12, i<s0, d<64: y[h, i, d] = x[i, h, d]\n",
            "copies of 256 bytes",
        ),
        (
            "input x: f32[12, s0, 64]\noutput y: f32[12, s0 + s1, 64]\n\
             for h<12, i<s0, d<64: y[h, i, d] = x[h, i, d]\n",
            "copies of 256*s0 bytes",
        ),
        (
            "input x: f32[48, s0]\noutput y: f32[s0, 48]\n\
             for j<s0, i<48: y[j, i] = exp(x[i, j])\n",
            "vectorised ×8 on 256 bits, collected in blocks of 16 × 48",
        ),
    ] {
        assert_eq!(how(text), [want], "{text}");
    }
}

/// Folds over two dims as one: the offset of a quotient and a rest by the same extent is that of the whole.
#[test]
fn quotients_and_rests_of_one_number() {
    for extents in ["s0, s1", "3, s1", "s0, s1 + 2"] {
        let (_, inner) = extents.split_once(", ").unwrap();
        let count = match extents {
            "s0, s1" => "s0*s1",
            "3, s1" => "3*s1",
            _ => "s0*s1 + 2*s0",
        };
        for (axes, at) in [
            ("i<5, j<N", "i, (j / (D)), (j % (D))"),
            ("j<N, i<5", "i, (j / (D)), (j % (D))"),
        ] {
            let out = if axes.starts_with('i') {
                "5, N"
            } else {
                "N, 5"
            };
            let own = if axes.starts_with('i') {
                "i, j"
            } else {
                "j, i"
            };
            let text = format!(
                "{TWO}input x: f32[5, {extents}]\noutput y: f32[{out}]\noutput z: f32[5]\n\
                 for {axes}: y[{own}] = (x[{at}] + 1.0)\n\
                 for i<5: z[i] = add[j<N; 0.0](x[{at}])\n"
            );
            check_text(
                &text
                    .replace("(D)", &format!("extent({inner})"))
                    .replace('N', count),
            );
        }
    }
}
