//! How the shapes of an elementwise operator's inputs are brought together.
//!
//! Specification: Broadcast Rules For Elementwise Operations.

use crate::error::ensure;
use crate::{Infer, Lower, OpError};
use serde::Deserialize;
use vinelift_nest::{BufferId, Scalar, build::index};
use vinelift_tensor::{Dim, Extent, PartialShape};

/// The attribute `auto_broadcast`.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Mode {
    /// Not at all: the shapes are equal.
    /// Old files write `explicit` for it.
    #[serde(alias = "explicit")]
    None,
    /// NumPy's rules.
    #[default]
    Numpy,
    /// The others are laid over the first from an axis on, and stretched to it.
    Pdpd,
}

/// A rule, and for `pdpd` the axis that it starts at: -1 aligns the last dims. The specification calls
/// it `axis`, files that OpenVINO writes `auto_broadcast.auto_broadcast_axis`. A file that names no axis
/// means 0.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Broadcast {
    pub(crate) mode: Mode,
    pub(crate) axis: i64,
}

/// Which dims of the output the dims of an input are laid over.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Alignment {
    /// The last ones.
    Last,
    /// The dims from an axis on, unless the input has the shape of the output.
    From(usize),
}

impl Broadcast {
    /// NumPy's rules.
    pub(crate) const NUMPY: Broadcast = Broadcast {
        mode: Mode::Numpy,
        axis: 0,
    };

    /// The shape of the inputs at these positions taken together. For `pdpd` the first of them is
    /// the one that the others are stretched to.
    pub(crate) fn join(self, cx: &Infer<'_>, inputs: &[usize]) -> Result<PartialShape, OpError> {
        let shape = |i: usize| &cx.inputs()[i].shape;
        let mut joined = shape(inputs[0]).clone();
        for &i in &inputs[1..] {
            let (next, must) = match self.mode {
                Mode::None => (joined.intersect(shape(i)), "have the same shape"),
                Mode::Numpy => (joined.broadcast(shape(i)), "broadcast together"),
                Mode::Pdpd => (self.stretched(&joined, shape(i)), "broadcast to the first"),
            };
            let (first, other) = (cx.name(inputs[0]), cx.name(i));
            ensure!(
                next.is_some(),
                "`{first}` {joined} and `{other}` {} must {must}",
                shape(i)
            );
            joined = next.unwrap_or(joined);
        }
        Ok(joined)
    }

    /// `first`, if `other` can be stretched to it.
    fn stretched(self, first: &PartialShape, other: &PartialShape) -> Option<PartialShape> {
        let (Some(dims), Some(over)) = (first.dims(), other.dims()) else {
            return Some(first.clone());
        };
        if let Some(equal) = first.intersect(other) {
            return Some(equal);
        }
        let axis = match self.axis {
            -1 => dims.len().checked_sub(over.len())?,
            axis => usize::try_from(axis).ok()?,
        };
        let one = |d: &Dim| d.contains(1);
        let fits = |(k, d): (usize, &Dim)| match dims.get(axis + k) {
            Some(target) => one(d) || target.intersect(*d).is_some(),
            None => one(d),
        };
        (axis <= dims.len() && over.iter().enumerate().all(fits)).then(|| first.clone())
    }

    /// Where an input's dims go; `first` is the one that the others are stretched to.
    pub(crate) fn alignment(self, first: bool) -> Alignment {
        match (self.mode, usize::try_from(self.axis)) {
            (Mode::Pdpd, Ok(axis)) if !first => Alignment::From(axis),
            _ => Alignment::Last,
        }
    }
}

/// The element of `buffer` that belongs to `at` in the output.
pub(crate) fn read(
    cx: &Lower<'_>,
    alignment: Alignment,
    buffer: BufferId,
    at: &[Scalar],
) -> Scalar {
    let shape = cx.extents_of(buffer);
    let is_output = || {
        let out = cx.extents_of(cx.output(0));
        let mut both = shape.iter().zip(&out);
        shape.len() == out.len() && both.all(|(own, out)| own.same(*out))
    };
    let skip = match alignment {
        Alignment::From(axis) if !is_output() => axis,
        _ => at.len() - shape.len(),
    };
    let place = |(k, &extent): (usize, &Extent)| match at.get(skip + k) {
        Some(i) if extent != 1 => i.clone(),
        _ => index(0),
    };
    let at: Vec<Scalar> = shape.iter().enumerate().map(place).collect();
    cx.load_from(buffer, &at)
}

#[cfg(test)]
mod tests {
    use crate::find;
    use crate::testing::{error, i32s, run};
    use crate::{Infer, TensorType};
    use vinelift_tensor::{Dim, ElementType, PartialShape};

    fn add(attributes: &[(&str, &str)], a: &[usize], b: &[usize]) -> Vec<usize> {
        let tensor = |shape: &[usize]| i32s(shape, &vec![0; shape.iter().product()]);
        let def = find("Add", "opset1").unwrap();
        run(def, attributes, &[tensor(a), tensor(b)])
            .shape()
            .to_vec()
    }

    /// The examples of the specification.
    #[test]
    fn shapes_of_the_specification() {
        assert_eq!(add(&[], &[], &[]), [0usize; 0]);
        assert_eq!(add(&[], &[3], &[2, 3]), [2, 3]);
        assert_eq!(add(&[], &[2, 1, 5], &[1, 4, 5]), [2, 4, 5]);
        assert_eq!(add(&[], &[3, 2, 1, 4], &[5, 4]), [3, 2, 5, 4]);
        assert_eq!(add(&[], &[0, 3], &[1, 1]), [0, 3]);
        let pdpd = |axis: &str, b: &[usize]| {
            add(
                &[("auto_broadcast", "pdpd"), ("axis", axis)],
                &[2, 3, 4, 5],
                b,
            )
        };
        assert_eq!(pdpd("1", &[3, 4]), [2, 3, 4, 5]);
        assert_eq!(pdpd("1", &[3, 1]), [2, 3, 4, 5]);
        assert_eq!(pdpd("-1", &[4, 5]), [2, 3, 4, 5]);
        assert_eq!(pdpd("0", &[1, 3]), [2, 3, 4, 5]);
        assert_eq!(pdpd("0", &[]), [2, 3, 4, 5]);
        assert_eq!(pdpd("3", &[5]), [2, 3, 4, 5]);
    }

    #[test]
    fn pdpd_aligns_from_its_axis() {
        let (a, b) = (i32s(&[2, 3], &[0; 6]), i32s(&[2], &[10, 20]));
        let def = find("Add", "opset1").unwrap();
        let out = run(def, &[("auto_broadcast", "pdpd")], &[a.clone(), b]);
        assert_eq!(out, i32s(&[2, 3], &[10, 10, 10, 20, 20, 20]));
        let trailing = i32s(&[3, 1], &[1, 2, 3]);
        let out = run(
            def,
            &[("auto_broadcast", "pdpd"), ("axis", "1")],
            &[a, trailing],
        );
        assert_eq!(out, i32s(&[2, 3], &[1, 2, 3, 1, 2, 3]));
        // As OpenVINO 2026.4.1 writes and reads it.
        let attributes = [
            ("auto_broadcast", "pdpd"),
            ("auto_broadcast.auto_broadcast_axis", "1"),
        ];
        for name in ["Add", "Divide", "Select", "FakeQuantize"] {
            let def = find(name, "opset1").unwrap();
            let mut all = attributes.to_vec();
            if name == "FakeQuantize" {
                all.push(("levels", "256"));
            }
            let pairs: Vec<_> = all
                .iter()
                .map(|(k, v)| (k.to_string(), v.to_string()))
                .collect();
            def.instantiate(&crate::Attributes(&pairs)).unwrap();
        }
        let (a, b) = (i32s(&[2, 3, 1], &[0; 6]), i32s(&[3], &[1, 2, 3]));
        let out = run(def, &attributes, &[a, b]);
        assert_eq!(out, i32s(&[2, 3, 1], &[1, 2, 3, 1, 2, 3]));
    }

    #[test]
    fn shapes_must_fit() {
        let def = find("Add", "opset1").unwrap();
        let inputs =
            |a: &[usize], b: &[usize]| [a, b].map(|s| i32s(s, &vec![0; s.iter().product()]));
        let message = "`a` [3] and `b` [2] must broadcast together";
        assert_eq!(error(def, &[], &inputs(&[3], &[2])), message);
        let message = "`a` [3] and `b` [1] must have the same shape";
        assert_eq!(
            error(def, &[("auto_broadcast", "none")], &inputs(&[3], &[1])),
            message
        );
        let pdpd = [("auto_broadcast", "pdpd"), ("axis", "1")];
        let message = "`a` [8, 1, 6, 1] and `b` [7, 1, 5] must broadcast to the first";
        assert_eq!(
            error(def, &pdpd, &inputs(&[8, 1, 6, 1], &[7, 1, 5])),
            message
        );
    }

    #[test]
    fn partial_shapes_keep_what_is_known() {
        let def = find("Add", "opset1").unwrap();
        let infer = |a: PartialShape, b: PartialShape| {
            let types = [a, b].map(|s| TensorType::new(ElementType::F32, s));
            let op = def.instantiate(&crate::Attributes(&[])).unwrap().unwrap();
            op.infer(&Infer::new(def.signature, &types, &[None, None]).unwrap())
                .unwrap()[0]
                .shape
                .to_string()
        };
        let ranked = |dims: &[Dim]| PartialShape::ranked(dims.to_vec());
        let a = ranked(&[Dim::ANY, Dim::fixed(3)]);
        assert_eq!(infer(a.clone(), ranked(&[Dim::fixed(1)])), "[?, 3]");
        assert_eq!(infer(a, PartialShape::DYNAMIC), "[...]");
    }
}
