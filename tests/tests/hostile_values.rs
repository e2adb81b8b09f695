//! Every sample with values that nobody expects: whatever they are, a run ends with outputs or with an
//! error that is not ours, and the outputs or the error are the same interpreted and as optimised code.

use std::panic::{AssertUnwindSafe, catch_unwind};
use vinelift::{Core, Element, ElementType, Level, Port, Tensor};
use vinelift_tests::{files, outputs, repository, same};

/// The same numbers on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        ((self.0 >> 33) as usize) % n
    }

    fn of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len())]
    }
}

/// A tensor that fits the port; dims that are open are 0 to 3.
fn tensor(port: &Port, random: &mut Random) -> Tensor {
    fn of<T: Element>(shape: &[usize], mut value: impl FnMut() -> T) -> Tensor {
        let count = shape.iter().product();
        let values: Vec<T> = (0..count).map(|_| value()).collect();
        Tensor::from_slice(shape, &values).unwrap()
    }
    let shape: Vec<usize> = match port.shape.dims() {
        Some(dims) => dims
            .iter()
            .map(|d| d.get().unwrap_or_else(|| d.min() + random.below(4)))
            .collect(),
        None => (0..random.below(4)).map(|_| random.below(4)).collect(),
    };
    // Mostly small, so that what looks like an index or a count often is one.
    let integers = [
        0,
        1,
        2,
        3,
        -1,
        -2,
        5,
        i64::MAX,
        i64::MIN,
        1 << 31,
        -(1 << 31),
        1 << 40,
    ];
    let usual = if random.below(3) == 0 {
        integers.len()
    } else {
        4
    };
    let floats = [
        0.0,
        1.0,
        -1.0,
        0.5,
        2.5,
        -0.0,
        1e-45,
        3e38,
        -3e38,
        1e300,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        1e10,
    ];
    let common = if random.below(2) == 0 {
        floats.len()
    } else {
        5
    };
    let mut integer = || random.of(&integers[..usual]);
    let shape = &shape[..];
    match port.element_type {
        ElementType::Boolean => {
            let count = shape.iter().product();
            let values: Vec<bool> = (0..count).map(|_| integer() & 1 == 1).collect();
            Tensor::from_bools(shape, &values).unwrap()
        }
        ElementType::I8 => of(shape, || integer() as i8),
        ElementType::I16 => of(shape, || integer() as i16),
        ElementType::I32 => of(shape, || integer() as i32),
        ElementType::I64 => of(shape, integer),
        ElementType::U8 => of(shape, || integer() as u8),
        ElementType::U16 => of(shape, || integer() as u16),
        ElementType::U32 => of(shape, || integer() as u32),
        ElementType::U64 => of(shape, || integer() as u64),
        ElementType::F32 => of(shape, || random.of(&floats[..common]) as f32),
        ElementType::F64 => of(shape, || random.of(&floats[..common])),
        ElementType::String => {
            let count = shape.iter().product();
            let texts = (0..count).map(|_| random.of(&["", "a", "é", "long text"]).to_owned());
            Tensor::from_strings(shape, texts.collect()).unwrap()
        }
        other => Tensor::zeros(other, shape).unwrap(),
    }
}

#[test]
fn no_values_do_harm() {
    let core = Core::new().unwrap();
    let mut random = Random(1);
    let mut wrong = Vec::new();
    for path in files(&repository().join("ir-samples"), "xml") {
        // What is random is so each time, and a long range takes gigabytes.
        let name = path.to_string_lossy().into_owned();
        if ["random_uniform", "samples/range"]
            .iter()
            .any(|skipped| name.contains(skipped))
        {
            continue;
        }
        let Ok(model) = core.read_model(&path) else {
            continue;
        };
        for _ in 0..3 {
            let inputs: Vec<Tensor> = model
                .inputs()
                .iter()
                .map(|port| tensor(port, &mut random))
                .collect();
            let mut at = |level| {
                let result =
                    catch_unwind(AssertUnwindSafe(|| outputs(&core, &model, level, &inputs)));
                let result = result.unwrap_or_else(|_| Err("internal error: panic".to_owned()));
                if let Err(e) = &result
                    && e.contains("internal error")
                {
                    wrong.push(format!(
                        "{} {}: {e}\n  {inputs:?}",
                        path.display(),
                        level.name()
                    ));
                }
                result
            };
            let (plain, optimised) = (at(Level::Interpreted), at(Level::Scheduled));
            let agree = match (&plain, &optimised) {
                (Ok(a), Ok(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
                (Err(a), Err(b)) => a == b,
                _ => false,
            };
            if !agree {
                let place = path.display();
                wrong.push(format!(
                    "{place}: {plain:?}\n  or {optimised:?}\n  of {inputs:?}"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
