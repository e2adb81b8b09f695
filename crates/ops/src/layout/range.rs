//! `Range`: `out[i] = start + i · step`, as long as that is before `stop`.
//!
//! Specifications: Range-1 and -4. The values are read while compiling, for the length,
//! `max(ceil((stop - start) / step), 0)`, depends on them. If the output and all three are integers
//! this is exact, and wraps; else it is done in `f64` and rounded once, after truncation of the three
//! if the output is an integer. A step of 0, undefined in Range-4, is an error.

use super::index_map::extent;
use crate::error::ensure;
use crate::lower::formula;
use crate::op::parse;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use std::fmt;
use vinelift_nest::build::number;
use vinelift_tensor::{Dim, ElementType, Extent, Formula, PartialShape, Tensor};

pub(crate) static V1: OpDef = range(&["opset1"], Build::Op(parse::<Plain>));
pub(crate) static V4: OpDef = range(&["opset4"], Build::Op(parse::<Range>));

const INPUTS: [&str; 3] = ["start", "stop", "step"];

const fn range(versions: &'static [&'static str], build: Build) -> OpDef {
    let signature = Signature::new(&INPUTS);
    OpDef {
        name: "Range",
        versions,
        signature,
        family: Family::Layout,
        build,
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Plain {}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Range {
    #[serde(deserialize_with = "crate::attrs::element_type")]
    output_type: ElementType,
}

impl Op for Plain {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        cx.expect_same("start", "stop")?;
        cx.expect_same("start", "step")?;
        infer(cx, cx.element("start"))
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        lower(cx);
    }
}

impl Op for Range {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        infer(cx, self.output_type)
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        lower(cx);
    }
}

fn infer(cx: &Infer<'_>, output: ElementType) -> Result<Vec<TensorType>, OpError> {
    let numeric = |t: ElementType| t.is_integer() || t.is_float();
    let found = output.to_string();
    ensure!(
        numeric(output),
        "`output_type` must be a numeric type, found {found}"
    );
    let mut values = Vec::new();
    if let Some(steps) = WholeSteps::of(
        |name| cx.whole_numbers(name),
        |name| cx.constant(name),
        output,
    ) {
        let shape = PartialShape::ranked(vec![steps.length.into()]);
        return Ok(vec![TensorType::new(output, shape)]);
    }
    for name in INPUTS {
        cx.expect(name, "a numeric type", numeric)?;
        let shape = cx.shape(name);
        let one = shape
            .dims()
            .is_none_or(|dims| dims.iter().all(|d| d.contains(1)));
        ensure!(one, "`{name}` must hold one element, found {shape}");
        values.extend(cx.constant(name));
    }
    let length = match values.as_slice() {
        [start, stop, step] => Dim::fixed(Progression::new(start, stop, step, output)?.length()?),
        _ => likely_length(cx).unwrap_or(Dim::ANY),
    };
    Ok(vec![TensorType::new(
        output,
        PartialShape::ranked(vec![length]),
    )])
}

/// How many integers there are where their ends lie in intervals, and the step is known.
fn likely_length(cx: &Infer<'_>) -> Option<Dim> {
    let only = |name| match cx.intervals(name)?.as_slice() {
        [interval] => Some(*interval),
        _ => None,
    };
    let (start, stop, step) = (only("start")?, only("stop")?, only("step")?);
    if step.low != step.high || step.low == 0 {
        return None;
    }
    let length = |start, stop| {
        let [start, stop, step] = [start, stop, step.low].map(i128::from);
        Progression::Integers { start, stop, step }.length().ok()
    };
    let (least, most) = match step.low > 0 {
        true => ((start.high, stop.low), (start.low, stop.high)),
        false => ((start.low, stop.high), (start.high, stop.low)),
    };
    let is_finite = |(a, b): (i64, i64)| {
        let ends = [i64::MIN, i64::MAX];
        !ends.contains(&a) && !ends.contains(&b)
    };
    let min = match is_finite(least) {
        true => length(least.0, least.1)?,
        false => 0,
    };
    let max = match is_finite(most) {
        true => length(most.0, most.1),
        false => None,
    };
    Some(Dim::between(min, max))
}

/// Integers that go up or down from or to where symbols say.
struct WholeSteps {
    start: Formula,
    step: i64,
    length: Extent,
}

impl WholeSteps {
    /// Where the step is a number and the ends are integers, of which one has symbols. A narrow integer type of results wraps them
    /// only if the step is of an integer type, too.
    fn of<'t>(
        whole_numbers: impl Fn(&'static str) -> Option<Vec<Formula>>,
        constant: impl Fn(&'static str) -> Option<&'t Tensor>,
        output: ElementType,
    ) -> Option<WholeSteps> {
        let [start, stop, step] = INPUTS.map(&whole_numbers);
        if step.is_some() || (start.is_none() && stop.is_none()) {
            return None;
        }
        let step = constant(INPUTS[2])?;
        let is_exact = output.is_float() || output == ElementType::I64;
        if !is_exact && !step.element_type().is_integer() {
            return None;
        }
        let step = whole_number(step)?;
        let end = |name, numbers: Option<Vec<Formula>>| match numbers.as_deref() {
            Some([formula]) => Some(*formula),
            Some(_) => None,
            None => whole_number(constant(name)?).map(Formula::number),
        };
        let (start, stop) = (end(INPUTS[0], start)?, end(INPUTS[1], stop)?);
        let span = match step.signum() {
            1 => stop.minus(&start)?,
            -1 => start.minus(&stop)?,
            _ => return None,
        };
        let size = usize::try_from(step.unsigned_abs()).ok()?;
        let length = Extent::of(span)?.sum((size - 1).into());
        Some(WholeSteps {
            start,
            step,
            length: length.quotient(size.into()),
        })
    }
}

fn lower(cx: &mut Lower<'_>) {
    let ty = cx.type_of(cx.output(0));
    if let Some(steps) = WholeSteps::of(|name| cx.whole_numbers(name), |name| cx.constant(name), ty)
    {
        let start = formula(&steps.start);
        return cx.define(cx.output(0), |_, at| {
            (&at[0] * steps.step + &start).cast(ty)
        });
    }
    let values = INPUTS.map(|name| cx.constant(name));
    let [Some(start), Some(stop), Some(step)] = values else {
        return;
    };
    let Ok(progression) = Progression::new(start, stop, step, ty) else {
        return;
    };
    cx.define(cx.output(0), |_, at| match progression {
        // Arithmetic modulo 2^64 is enough: every integer type keeps at most the low 64 bits.
        Progression::Integers { start, step, .. } => {
            (&at[0] * (step as i64) + (start as i64)).cast(ty)
        }
        Progression::Floats { start, step, .. } => {
            let i = at[0].clone().cast(ElementType::F64);
            (i * number(step, ElementType::F64) + start).cast(ty)
        }
    });
}

/// The only element of a tensor, if it is an integer, whatever the type is, that an `f64` holds, too.
fn whole_number(tensor: &Tensor) -> Option<i64> {
    let numbers = tensor.to_f64_vec().ok()?;
    let [number] = numbers[..] else {
        return None;
    };
    let fits = number.fract() == 0.0 && number.abs() < 2f64.powi(53);
    fits.then_some(number as i64)
}

/// The first element of a tensor of integers of any type.
fn first_integer(tensor: &Tensor) -> Option<i128> {
    tensor.to_i128_vec().ok()?.first().copied()
}

#[derive(Clone, Copy)]
enum Progression {
    Integers { start: i128, stop: i128, step: i128 },
    Floats { start: f64, stop: f64, step: f64 },
}

impl Progression {
    fn new(
        start: &Tensor,
        stop: &Tensor,
        step: &Tensor,
        output: ElementType,
    ) -> Result<Progression, OpError> {
        let unreadable = || OpError::Shape("start, stop and step must be numbers".to_owned());
        let tensors = [start, stop, step];
        if output.is_integer() && tensors.iter().all(|t| t.element_type().is_integer()) {
            let values = tensors.map(first_integer);
            let [Some(start), Some(stop), Some(step)] = values else {
                return Err(unreadable());
            };
            return Ok(Progression::Integers { start, stop, step });
        }
        let values = tensors.map(|t| t.to_f64_vec().ok().and_then(|v| v.first().copied()));
        let [Some(start), Some(stop), Some(step)] = values else {
            return Err(unreadable());
        };
        let cut = |x: f64| if output.is_integer() { x.trunc() } else { x };
        Ok(Progression::Floats {
            start: cut(start),
            stop: cut(stop),
            step: cut(step),
        })
    }

    fn length(self) -> Result<usize, OpError> {
        let length = match self {
            Progression::Integers { start, stop, step } => {
                ensure!(step != 0, "`step` must not be 0");
                let span = (stop - start) * step.signum();
                let step = step.abs();
                usize::try_from((span.max(0) + step - 1) / step).ok()
            }
            Progression::Floats { start, stop, step } => {
                let all = [start, stop, step];
                ensure!(
                    all.iter().all(|x| x.is_finite()),
                    "start, stop and step must be finite, found {self}"
                );
                ensure!(step != 0.0, "`step` must not be 0");
                let length = ((stop - start) / step).ceil().max(0.0);
                (length < extent(usize::MAX) as f64).then_some(length as usize)
            }
        };
        let length = length.filter(|&n| extent(n) < i64::MAX);
        length.ok_or_else(|| {
            let text =
                format!("start, stop and step, {self}, give more elements than can be counted");
            OpError::Shape(text)
        })
    }
}

impl fmt::Display for Progression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Progression::Integers { start, stop, step } => write!(f, "{start}, {stop} and {step}"),
            Progression::Floats { start, stop, step } => write!(f, "{start}, {stop} and {step}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, f32s, i32s, i64s, run};

    fn integers(start: i64, stop: i64, step: i64) -> [Tensor; 3] {
        [start, stop, step].map(|x| i64s(&[], &[x]))
    }

    /// The examples of the specification.
    #[test]
    fn of_the_specification() {
        let to_i32 = [("output_type", "i32")];
        let up = i32s(&[7], &[2, 5, 8, 11, 14, 17, 20]);
        assert_eq!(run(&V4, &to_i32, &integers(2, 23, 3)), up);
        let down = i32s(&[7], &[23, 20, 17, 14, 11, 8, 5]);
        assert_eq!(run(&V4, &to_i32, &integers(23, 2, -3)), down);
        let floats = [1.0, 2.5, 0.5].map(|x| f32s(&[], &[x]));
        let want = f32s(&[3], &[1.0, 1.5, 2.0]);
        assert_eq!(run(&V4, &[("output_type", "f32")], &floats), want);
        assert_eq!(run(&V1, &[], &floats), want);
        assert_eq!(run(&V1, &[], &integers(2, 8, 3)), i64s(&[2], &[2, 5]));
    }

    #[test]
    fn empty_truncated_and_extreme() {
        assert_eq!(run(&V1, &[], &integers(3, 3, 1)), i64s(&[0], &[]));
        assert_eq!(run(&V1, &[], &integers(3, 5, -1)), i64s(&[0], &[]));
        let (min, max) = (i64::MIN, i64::MAX);
        assert_eq!(
            run(&V1, &[], &integers(min, max, max)),
            i64s(&[3], &[min, -1, max - 1])
        );
        let of_u64 = |shape: &[usize], values: &[u64]| Tensor::from_slice(shape, values).unwrap();
        let large = [u64::MAX - 7, u64::MAX, 3].map(|x| of_u64(&[], &[x]));
        let want = of_u64(&[3], &[u64::MAX - 7, u64::MAX - 4, u64::MAX - 1]);
        assert_eq!(run(&V1, &[], &large), want);
        // NumPy: np.arange(1, 4, 1), the numbers being truncated first.
        let floats = [1.9, 4.9, 1.5].map(|x| f32s(&[], &[x]));
        assert_eq!(
            run(&V4, &[("output_type", "i32")], &floats),
            i32s(&[3], &[1, 2, 3])
        );
    }

    #[test]
    fn what_has_no_length() {
        assert_eq!(error(&V1, &[], &integers(0, 1, 0)), "`step` must not be 0");
        let message = "start, stop and step, -9223372036854775808, 9223372036854775807 and 1, give more elements \
                       than can be counted";
        assert_eq!(error(&V1, &[], &integers(i64::MIN, i64::MAX, 1)), message);
        let floats = [0.0, f32::INFINITY, 1.0].map(|x| f32s(&[], &[x]));
        let message = "start, stop and step must be finite, found 0, inf and 1";
        assert_eq!(error(&V1, &[], &floats), message);
        let inputs = [i64s(&[2], &[0, 0]), i64s(&[], &[1]), i64s(&[], &[1])];
        assert_eq!(
            error(&V1, &[], &inputs),
            "`start` must hold one element, found [2]"
        );
    }
}
