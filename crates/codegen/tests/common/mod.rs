//! Runs nests compiled and interpreted, over buffers that lie at odd addresses between guards.

#![allow(dead_code, reason = "each test crate uses a part")]

pub(crate) mod symbols;

use proptest::test_runner::Config as ProptestConfig;
use std::ops::Range;
use std::sync::LazyLock;
use std::sync::atomic::AtomicBool;
use vinelift_codegen::{Code, Compiler, Interrupt, KernelText, Options, Pointer, Vectors};
use vinelift_nest::{
    BufferBytes, BufferId, Fault, InterpretError, LayerId, Nest, Role, Scalar, Site, interpret,
};
use vinelift_tensor::{ElementType, element_count};

pub(crate) static COMPILER: LazyLock<Compiler> = LazyLock::new(|| Compiler::new().unwrap());

/// Whether this machine has vector loops of 256 bits, and of 512.
pub(crate) fn vector_loops() -> [bool; 2] {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::is_x86_feature_detected as has;
        let is_256 = has!("avx2") && has!("fma") && has!("f16c");
        let is_512 = has!("avx512f") && has!("avx512vl") && has!("avx512bw") && has!("avx512dq");
        [is_256, is_256 && is_512]
    }
    #[cfg(not(target_arch = "x86_64"))]
    [false; 2]
}

/// The widths of vectors that make a difference on this machine, the widest first.
pub(crate) fn widths() -> impl Iterator<Item = Vectors> {
    let [is_256, is_512] = vector_loops();
    let differ = [is_512, is_256, true];
    let all = Vectors::ALL.into_iter().zip(differ);
    all.filter_map(|(vectors, differs)| differs.then_some(vectors))
}

pub(crate) fn compile(nest: &Nest) -> Code {
    COMPILER
        .compile(&[nest], &Options::default())
        .unwrap_or_else(|e| panic!("{e}\n{nest}"))
}

/// The code of a nest for vectors of up to 256 bits, as text.
pub(crate) fn text_for_256_bits(nest: &Nest) -> KernelText {
    let options = Options {
        capture_text: true,
        vectors: Vectors::Bits256,
    };
    let code = COMPILER.compile(&[nest], &options).unwrap();
    code.text(0).unwrap().clone()
}

/// The configuration of a random test of `all` cases, of which a quarter is run unless the variable `VINELIFT_ALL_CASES` is
/// set. The variable `PROPTEST_CASES` sets another number, as runs under emulation need.
pub(crate) fn cases(all: u32) -> ProptestConfig {
    let default = ProptestConfig::default();
    let is_set = |name| std::env::var_os(name).is_some();
    let cases = match (is_set("PROPTEST_CASES"), is_set("VINELIFT_ALL_CASES")) {
        (true, _) => default.cases,
        (false, true) => all,
        (false, false) => all / 4,
    };
    ProptestConfig {
        cases,
        failure_persistence: None,
        ..default
    }
}

const GUARD: u8 = 0xa5;
/// Before each buffer; odd, so that no element is aligned.
const BEFORE: usize = 17;

/// The contents of buffers after a run, and how it ended.
pub(crate) type Outcome = (Vec<Vec<u8>>, Result<(), Fault>);

/// The bytes of all buffers before a run, and after two.
type Memories<'a> = (&'a [Vec<u8>], &'a [Vec<u8>], &'a [Vec<u8>]);

/// The bytes of each buffer after a run, and how it ended. `inputs` go to the inputs in order; what
/// is written starts as zeros. It must end in the same way part by part, and by vectors of any width; what
/// has been written when it faults may differ.
pub(crate) fn run(nest: &Nest, inputs: &[Vec<u8>]) -> Outcome {
    Compiled::of(nest).run(inputs)
}

/// The code of a nest in all forms in which it must do the same, made once for any number of runs.
pub(crate) struct Compiled<'n> {
    pub(crate) nest: &'n Nest,
    by_width: Vec<(Vectors, Code)>,
    with_symbols: Vec<symbols::Variant>,
}

impl<'n> Compiled<'n> {
    pub(crate) fn of(nest: &'n Nest) -> Compiled<'n> {
        Compiled::with_choices(nest, symbols::choices(nest))
    }

    /// Of one of many random nests: symbols in place of one of the choices of extents, in turns with other nests.
    pub(crate) fn of_random(nest: &'n Nest, number: u64) -> Compiled<'n> {
        let mut choices = symbols::choices(nest);
        if !choices.is_empty() {
            choices = vec![choices.swap_remove(number as usize % choices.len())];
        }
        Compiled::with_choices(nest, choices)
    }

    fn with_choices(nest: &'n Nest, choices: Vec<Vec<usize>>) -> Compiled<'n> {
        let of = |numbers| symbols::Variant::of(nest, numbers);
        Compiled {
            nest,
            by_width: symbols::compile_all(nest),
            with_symbols: choices.into_iter().filter_map(of).collect(),
        }
    }

    /// As [`run`].
    pub(crate) fn run(&self, inputs: &[Vec<u8>]) -> Outcome {
        let nest = self.nest;
        let mut outcomes = self.by_width.iter().rev().map(|(vectors, code)| {
            let outcome = run_code(nest, code, &[], inputs);
            (vectors, outcome)
        });
        let (_, (bytes, result)) = outcomes.next().expect("a width");
        for (vectors, (wide, wide_result)) in outcomes {
            assert_eq!(wide_result, result, "{vectors:?}\n{nest}");
            if result.is_err() {
                continue;
            }
            for (b, (wide, bytes)) in nest.buffers.iter().zip(wide.iter().zip(&bytes)) {
                assert!(
                    same(b.ty, wide, bytes),
                    "`{}` by {vectors:?} is\n{wide:?}, else\n{bytes:?}\n{nest}",
                    b.name
                );
            }
        }
        let outcome = (bytes, result);
        for variant in &self.with_symbols {
            variant.compare(nest, inputs, &outcome);
        }
        outcome
    }
}

/// Runs the code of `nest`, or of one with symbols where these are such that it is `nest`.
pub(crate) fn run_code(nest: &Nest, code: &Code, numbers: &[i64], inputs: &[Vec<u8>]) -> Outcome {
    let parts = code.chunks(0, numbers);
    let run_parts = |nest, code, inputs, parts: &[_]| run_parts(nest, code, numbers, inputs, parts);
    let whole = run_parts(nest, code, inputs, &parts.ranges(1));
    for count in [2, 3, parts.extent] {
        let mut ranges = parts.ranges(count);
        // In any order.
        ranges.reverse();
        let by_parts = run_parts(nest, code, inputs, &ranges);
        match parts.dim.is_some() {
            // Which fault is the first, the parts do not say.
            true => assert_eq!(
                by_parts.1.is_ok(),
                whole.1.is_ok(),
                "{count} parts of\n{nest}"
            ),
            false => assert_eq!(by_parts.1, whole.1, "{count} parts of\n{nest}"),
        }
        if whole.1.is_ok() {
            assert_eq!(by_parts.0, whole.0, "{count} parts of\n{nest}");
            for part in ranges.iter().take(MOST_ALONE) {
                let (alone, _) = run_parts(nest, code, inputs, std::slice::from_ref(part));
                writes_its_own(nest, (&contents(nest, inputs), &alone, &whole.0), part);
            }
        }
    }
    whole
}

/// Parts that are run alone, too.
const MOST_ALONE: usize = 3;

/// Asserts that a part alone leaves each byte as it was or as the whole run leaves it: it writes nothing in the rows of
/// other parts, which it would have computed from other values.
fn writes_its_own(nest: &Nest, (before, alone, whole): Memories<'_>, part: &Range<usize>) {
    for (k, buffer) in nest.buffers.iter().enumerate() {
        let wrong = first_foreign(&before[k], &alone[k], &whole[k]);
        assert_eq!(
            wrong, None,
            "byte of `{}`, part {part:?} of\n{nest}",
            buffer.name
        );
    }
}

/// The first byte that is neither as `before` nor as in the `whole` run.
fn first_foreign(before: &[u8], alone: &[u8], whole: &[u8]) -> Option<usize> {
    // Nearly all blocks are equal to one of the two, and blocks are compared many bytes at a time.
    const BLOCK: usize = 256;
    let mut starts = (0..alone.len()).step_by(BLOCK);
    starts.find_map(|start| {
        let end = alone.len().min(start + BLOCK);
        let is_as = |other: &[u8]| alone[start..end] == other[start..end];
        if is_as(whole) || is_as(before) {
            return None;
        }
        (start..end).find(|&k| alone[k] != before[k] && alone[k] != whole[k])
    })
}

/// Runs parts in the order given; the fault is that of the first part, not of the first to run.
fn run_parts(
    nest: &Nest,
    code: &Code,
    numbers: &[i64],
    inputs: &[Vec<u8>],
    parts: &[Range<usize>],
) -> Outcome {
    let mut memory: Vec<Vec<u8>> = contents(nest, inputs)
        .iter()
        .map(|bytes| [&[GUARD; BEFORE], &bytes[..], &[GUARD; 16]].concat())
        .collect();
    let pointers: Vec<Pointer> = memory
        .iter_mut()
        .map(|m| Pointer(m.as_mut_ptr().wrapping_add(BEFORE)))
        .collect();
    let used = code.scratch_bytes(0);
    let mut scratch = vec![GUARD; used + 16];
    let mut faults = Vec::new();
    for part in parts {
        // SAFETY: one pointer for each buffer, to as many bytes as it takes, and all of the scratch memory.
        let ended = unsafe {
            let scratch = Pointer(scratch.as_mut_ptr());
            let never = AtomicBool::new(false);
            code.run_chunk(0, &pointers, numbers, part.clone(), scratch, &never)
        };
        match ended {
            Ok(()) => {}
            Err(Interrupt::Fault(fault)) => faults.push((part.start, fault)),
            Err(Interrupt::Stopped) => panic!("nobody has stopped it\n{nest}"),
        }
    }
    assert!(
        scratch[used..].iter().all(|&b| b == GUARD),
        "wrote outside scratch memory\n{nest}"
    );
    let first = faults.into_iter().min_by_key(|(start, _)| *start);
    let result = first.map_or(Ok(()), |(_, fault)| Err(fault));
    let bytes = memory
        .iter()
        .map(|m| {
            let (before, rest) = m.split_at(BEFORE);
            let (bytes, after) = rest.split_at(rest.len() - 16);
            assert!(
                before.iter().chain(after).all(|&b| b == GUARD),
                "wrote outside a buffer\n{nest}"
            );
            bytes.to_vec()
        })
        .collect();
    (bytes, result)
}

/// As [`run`], by the interpreter.
pub(crate) fn reference(nest: &Nest, inputs: &[Vec<u8>]) -> Outcome {
    let mut memory = contents(nest, inputs);
    let mut buffers: Vec<BufferBytes> = memory.iter_mut().map(|m| BufferBytes::Write(m)).collect();
    let result = match interpret(nest, &mut buffers) {
        Ok(()) => Ok(()),
        Err(InterpretError::Fault(fault)) => Err(fault),
        Err(e) => panic!("{e}\n{nest}"),
    };
    (memory, result)
}

fn contents(nest: &Nest, inputs: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut inputs = inputs.iter();
    nest.buffers
        .iter()
        .map(|b| {
            let count = element_count(&b.example()).unwrap();
            let zeros = vec![0; b.ty.byte_len(count).unwrap()];
            match b.role {
                Role::Input => {
                    let bytes = inputs.next().expect("an input for each").clone();
                    assert_eq!(bytes.len(), zeros.len(), "`{}`", b.name);
                    bytes
                }
                _ => zeros,
            }
        })
        .collect()
}

/// Runs a nest whose last buffer is the output.
pub(crate) fn output(nest: &Nest, inputs: &[Vec<u8>]) -> Vec<u8> {
    let (mut bytes, result) = run(nest, inputs);
    assert_eq!(result, Ok(()), "{nest}");
    bytes.pop().unwrap()
}

/// `out[i] = f(x[i], y[i], …)` over vectors of these types.
pub(crate) fn pointwise(
    inputs: &[ElementType],
    out: ElementType,
    count: usize,
    f: impl FnOnce(&[Scalar]) -> Scalar,
) -> Nest {
    let mut nest = Nest::new();
    let ids: Vec<BufferId> = inputs
        .iter()
        .map(|&ty| nest.buffer("x", ty, &[count], Role::Input))
        .collect();
    let y = nest.buffer("y", out, &[count], Role::Output);
    nest.define(vec![], y, |nest, at| {
        let loads: Vec<Scalar> = ids.iter().map(|&x| nest.load(x, at.to_vec())).collect();
        f(&loads)
    });
    nest
}

pub(crate) fn site(nest: &mut Nest) -> Site {
    let layer = match nest.layers.len() {
        0 => nest.layer("g", "Gather, opset8"),
        _ => LayerId(0),
    };
    Site {
        layer,
        input: "indices".into(),
    }
}

/// Whether all elements are the same, any NaN being the same as any other.
pub(crate) fn same(ty: ElementType, a: &[u8], b: &[u8]) -> bool {
    let is_nan = |bytes: &[u8]| match ty {
        ElementType::F32 => f32::from_le_bytes(bytes.try_into().unwrap()).is_nan(),
        ElementType::F64 => f64::from_le_bytes(bytes.try_into().unwrap()).is_nan(),
        _ => false,
    };
    let size = ty.bits().div_ceil(8);
    let mut elements = a.chunks(size).zip(b.chunks(size));
    // Mostly there are no NaNs, and all bytes are compared at once.
    a == b || a.len() == b.len() && elements.all(|(a, b)| a == b || (is_nan(a) && is_nan(b)))
}

pub(crate) trait Number: Copy {
    const TY: ElementType;
    fn le(self) -> Vec<u8>;
    fn from_le(bytes: &[u8]) -> Self;
}

macro_rules! number {
    ($($t:ty: $ty:ident),*) => { $(
        impl Number for $t {
            const TY: ElementType = ElementType::$ty;
            fn le(self) -> Vec<u8> {
                self.to_le_bytes().to_vec()
            }
            fn from_le(bytes: &[u8]) -> $t {
                <$t>::from_le_bytes(bytes.try_into().unwrap())
            }
        }
    )* };
}

number!(u8: U8, u16: U16, u32: U32, u64: U64, i8: I8, i16: I16, i32: I32, i64: I64, f32: F32, f64: F64);

pub(crate) fn bytes<T: Number>(values: &[T]) -> Vec<u8> {
    values.iter().flat_map(|v| v.le()).collect()
}

pub(crate) fn values<T: Number>(bytes: &[u8]) -> Vec<T> {
    bytes.chunks(T::TY.bits() / 8).map(T::from_le).collect()
}

/// xorshift
pub(crate) fn random(seed: u64) -> impl FnMut() -> u64 {
    let mut s = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    move || {
        s ^= s << 13;
        s ^= s >> 7;
        s ^= s << 17;
        s
    }
}
