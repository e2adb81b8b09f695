//! The text form: printed, parsed, verified.

use proptest::prelude::*;
use std::fs;
use std::path::Path;
use vinelift_nest::build::{boolean, index, integer, number, select};
use vinelift_nest::{
    Binary, BufferId, LayerId, Mode, Nest, Policy, Role, Scalar, Site, Stage, Unary, parse, verify,
};
use vinelift_tensor::ElementType::{
    self, BF16, Boolean, F16, F32, F64, I4, I32, I64, U8, U16, U64,
};

/// Every file says in `# error:` lines what the verifier must say of the nest below them.
#[test]
fn the_verifier_says_what_is_wrong() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/verifier");
    let mut files: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort_unstable();
    assert!(!files.is_empty());
    let mut wrong = String::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let (expected, nest): (Vec<&str>, Vec<&str>) =
            text.lines().partition(|line| line.starts_with('#'));
        let expected: Vec<&str> = expected
            .iter()
            .filter_map(|line| line.strip_prefix("# error: "))
            .collect();
        let nest = parse(&nest.join("\n")).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        let found = verify(&nest).err().unwrap_or_default();
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        if found != expected {
            wrong += &format!("{}: found\n  {}\n", file.display(), found.join("\n  "));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

fn round_trip(nest: &Nest) -> Nest {
    let text = nest.to_string();
    let parsed = parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert_eq!(parsed.to_string(), text);
    assert_eq!(verify(&parsed), verify(nest), "{text}");
    parsed
}

/// A scalar of each kind, for a stage over `[2, 3]`.
fn every_scalar(
    n: &mut Nest,
    at: &[Scalar],
    layer: LayerId,
    [data, indices, half, table]: [BufferId; 4],
) -> Scalar {
    let site = |input: &str| Site {
        layer,
        input: input.to_owned(),
    };
    let plain = n.load(indices, at.to_vec());
    let plain = n.wrap(plain, 2, Policy::WRAP, site("max"), at.to_vec());
    let shifted = n.load(table, vec![index(1)]) + at[0].clone();
    let shifted = n.wrap(
        shifted,
        3,
        Policy {
            negative: false,
            zero: true,
        },
        site("an index"),
        vec![],
    );
    let gathered = n.load(data, vec![plain, shifted]);
    let axes = n.axes(&[3]);
    let k = Scalar::axis(axes[0].id);
    let body = n
        .load(data, vec![at[0].clone(), k.clone()])
        .max(k.cast(F32));
    let sum = Scalar::reduce(Binary::Add, axes, number(-0.0, F32), body);
    let empty = Scalar::reduce(
        Binary::Max,
        vec![],
        number(f64::NEG_INFINITY, F32),
        n.load(half, vec![]).cast(F32),
    );
    let same = n.load(half, vec![]).bitcast(U16).gt(integer(9, U16)) & boolean(true);
    select(
        same,
        &sum * &sum - gathered,
        Scalar::unary(Unary::Expm1, empty),
    )
}

/// A stage with each kind of scalar, names with marks of the text in them, and a stage without points.
fn nest_of_everything() -> Nest {
    let mut nest = Nest::new();
    let data = nest.buffer("a \"b\"\n\\é/c", F32, &[2, 3], Role::Input);
    let indices = nest.buffer("max", I32, &[2, 3], Role::Input);
    let half = nest.buffer("scope/half.0", F16, &[0usize; 0], Role::Input);
    let table = nest.table(
        "table",
        I64,
        2,
        &[1, 0, 0, 0, 0, 0, 0, 0, 0xff, 0, 0, 0, 0, 0, 0, 0x80],
    );
    let out = nest.buffer("out", F32, &[2, 3], Role::Output);
    let layers = vec![
        nest.layer("first", "Gather, opset8"),
        nest.layer("second  # layer", "Exp, opset1"),
    ];
    let buffers = [data, indices, half, table];
    nest.define(layers.clone(), out, |n, at| {
        every_scalar(n, at, layers[0], buffers)
    });
    let domain = nest.axes(&[0]);
    let at = vec![index(-1), Scalar::axis(domain[0].id)];
    let mode = Mode::Combine(Binary::Min);
    nest.stages.push(Stage {
        domain,
        target: out,
        at,
        mode,
        value: number(f64::NAN, F32),
        layers: vec![],
        group: None,
    });
    nest
}

#[test]
fn everything_that_can_be_printed_is_read_back() {
    let parsed = round_trip(&nest_of_everything());
    assert_eq!(
        parsed.layers.iter().map(|l| &l.name).collect::<Vec<_>>(),
        ["first", "second  # layer"]
    );
    assert_eq!(
        parsed.sites.iter().map(|s| &s.input).collect::<Vec<_>>(),
        ["max", "an index"]
    );
}

#[test]
fn errors_say_where() {
    assert!(parse("table empty: u3[0] = ").is_ok());
    for (text, message) in [
        ("input x: f32[2", "line 1, column 15: expected `,`"),
        (
            "input x: f33[2]",
            "line 1, column 10: no element type `f33`",
        ),
        (
            "input x: f32[2]\ninput x: f32[2]",
            "line 2, column 7: a second buffer `x`",
        ),
        (
            "table t: i64[2] = 00",
            "line 1, column 10: 1 bytes for i64[2]",
        ),
        (
            "table t: i64[2] = 0+",
            "line 1, column 19: expected pairs of hexadecimal digits",
        ),
        (
            "outputs",
            "line 1, column 1: expected `for`, `turn`, or a buffer before the first stage",
        ),
        ("for : x[] = 1.0", "line 1, column 7: no buffer `x`"),
    ] {
        assert_eq!(parse(text).unwrap_err().to_string(), message);
    }
    for (value, message) in [
        ("(y[i] + 1)", "column 17: operands of f32 and i64"),
        ("y[i] y", "column 22: expected the end of the line"),
        ("300u8", "column 17: no constant `300u8`"),
        ("1f16", "column 17: no constant `1f16`"),
        ("0x1ffff_f16", "column 17: no constant `0x1ffff_f16`"),
        ("nan(0x1)", "column 17: `0x1` is no nan of f32"),
        ("(y[i] ? y[i])", "column 23: expected an infix operator"),
        ("sum[k<2; 0.0](y[k])", "column 17: no operator `sum`"),
        ("root(y[i])", "column 17: no function `root` of 1 arguments"),
        ("min(y[i])", "column 17: no function `min` of 1 arguments"),
        (
            "bits.f64(y[i])",
            "column 17: the bits of f32 are as many as f64 has",
        ),
        (
            "y[wrap(i, 2)]",
            "column 28: expected `in`, since the index is no load",
        ),
        ("\"y", "column 17: a name without an end"),
        ("", "column 17: expected an expression"),
    ] {
        let text = format!("output y: f32[2]\nfor i<2: y[i] = {value}");
        assert_eq!(
            parse(&text).unwrap_err().to_string(),
            format!("line 2, {message}"),
            "{value}"
        );
    }
}

#[test]
fn depth_is_limited() {
    let nested = |open: &str, close: &str, depth: usize| {
        let value = format!("{}y[0]{}", open.repeat(depth), close.repeat(depth));
        parse(&format!("output y: f32[2]\nfor i<2: y[i] = {value}"))
    };
    for (open, close, depth) in [
        ("abs(", ")", 498),
        ("(y[i] + ", ")", 498),
        ("max[; 0.0](", ")", 498),
        ("select(true, 1.0, ", ")", 498),
        ("y[i64(", ")]", 249),
        ("y[wrap(i32(", "), 2 in y[])]", 166),
    ] {
        round_trip(&nested(open, close, depth).unwrap());
    }
    let error = nested("abs(", ")", 1_000_000).unwrap_err();
    assert_eq!(error.message, "an expression of more than 500 levels");
}

#[test]
fn an_axis_that_is_printed_twice_is_bound_once() {
    let mut nest = Nest::new();
    let x = nest.buffer("x", F32, &[4], Role::Input);
    let y = nest.buffer("y", F32, &[4], Role::Output);
    nest.define(vec![], y, |n, _| {
        let axes = n.axes(&[4]);
        let body = n.load(x, vec![Scalar::axis(axes[0].id)]);
        let sum = Scalar::reduce(Binary::Add, axes, number(0.0, F32), body);
        &sum * &sum
    });
    assert_eq!(verify(&round_trip(&nest)), Ok(()));
}

/// A scalar of type `ty` from random choices; `at` are the axes in scope.
fn random(
    n: &mut Nest,
    buffers: &[BufferId],
    at: &[Scalar],
    ty: ElementType,
    choices: &mut impl Iterator<Item = u64>,
) -> Scalar {
    let Some(choice) = choices.next() else {
        return Scalar::constant(0, ty);
    };
    let detail = choices.next().unwrap_or(0);
    let pick = |count: usize| (detail % count as u64) as usize;
    let bits = detail & (u64::MAX >> (64 - ty.bits()));
    let axis = at[pick(at.len())].clone();
    match choice % 8 {
        0 if ty == Boolean => Scalar::constant(detail & 1, ty),
        0 => Scalar::constant(bits, ty),
        1 if ty == I64 => axis,
        2 if ty.is_arithmetic() && ty != Boolean => {
            let op = [
                Binary::Add,
                Binary::Mul,
                Binary::Min,
                Binary::Rem,
                Binary::Pow,
            ][pick(5)];
            let a = random(n, buffers, at, ty, choices);
            Scalar::binary(op, a, random(n, buffers, at, ty, choices))
        }
        3 => {
            let c = random(n, buffers, at, I64, choices).lt(axis);
            let yes = random(n, buffers, at, ty, choices);
            select(c, yes, random(n, buffers, at, ty, choices))
        }
        4 => {
            let from = [F32, F64, I64, U8, I4, BF16][pick(6)];
            random(n, buffers, at, from, choices).cast(ty)
        }
        5 if ty.is_arithmetic() && ty != Boolean => {
            let axes = n.axes(&[pick(4)]);
            let inner = [at, &[Scalar::axis(axes[0].id)]].concat();
            let body = random(n, buffers, &inner, ty, choices);
            Scalar::reduce(Binary::Max, axes, Scalar::constant(bits, ty), body)
        }
        6 if ty == I64 => {
            let index = random(n, buffers, at, [I64, U8][pick(2)], choices);
            let layer = LayerId(0);
            let site = Site {
                layer,
                input: ["a", "b c", ""][pick(3)].to_owned(),
            };
            n.wrap(index, pick(9), Policy::WRAP, site, vec![axis])
        }
        _ => {
            let buffer = buffers[pick(buffers.len())];
            n.load(buffer, vec![axis]).cast(ty)
        }
    }
}

proptest! {
    #[test]
    fn random_nests_are_read_back(choices: Vec<u64>) {
        let mut nest = Nest::new();
        let layer = nest.layer("layer", "Op, opset1");
        let buffers = [F32, F16, BF16, I64, U8, I4, Boolean].map(|ty| nest.buffer(ty.name(), ty, &[4], Role::Input));
        let mut choices = choices.into_iter();
        for ty in [F32, F64, F16, I32, U64, I4] {
            let out = nest.buffer("out", ty, &[3, 2], Role::Output);
            nest.define(vec![layer], out, |n, at| random(n, &buffers, at, ty, &mut choices));
        }
        round_trip(&nest);
    }

    #[test]
    fn any_text_is_read_or_refused(text in r#"(output y: f32\[2\]\nfor i<2: y\[i\] = )?[-\"()\[\]<;:,.?=+ #\nabfinorwxy0-9é\\]*"#) {
        let _ = parse(&text).map(|nest| verify(&nest));
    }
}

/// The verifier accepts a nest with symbols only if its accesses are inside for all values of the symbols.
#[test]
fn nests_with_symbols() {
    let proven = |text: &str| {
        let nest = parse(text).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(nest.to_string(), text);
        vinelift_nest::verify(&nest).is_ok()
    };
    let head = "symbols s0=5, s1=9\ninput x: f32[s0, s1]\noutput y: f32[s1 + s0, 4*s0]\n";
    let stage = |text: &str| format!("{head}for {text}\n");
    assert!(proven(&stage(
        "i<s0, j<s0: y[(i + extent(s1)), (j * 4)] = x[i, 1]"
    )));
    assert!(proven(&stage("i<s0, j<s1: y[(i + j), 0] = x[i, j]")));
    assert!(proven(&stage(
        "i<s1, j<s0: y[i, j] = select((i < extent(s0)), x[i, 1], 0.0)"
    )));
    assert!(
        proven(&stage(
            "i<s0*s1: y[0, 0] = x[(i / extent(s1)), (i % extent(s1))]"
        )) || cfg!(target_pointer_width = "32")
    );
    assert!(!proven(&stage("i<s1, j<s0: y[i, j] = x[i, 1]")));
    assert!(!proven(&stage(
        "i<s0: y[(i + extent(s1)), (i * 5)] = x[i, 1]"
    )));
    let nest = parse(&stage("i<s0, j<s1: y[(i + j), 0] = x[i, j]")).unwrap();
    let bound = nest.bound_to(&[2, 3]).unwrap().to_string();
    assert!(
        bound.contains("output y: f32[5, 8]\nfor i<2, j<3: "),
        "{bound}"
    );
    assert!(nest.bound_to(&[1, 3]).is_none() && nest.bound_to(&[2]).is_none());
}
