//! `Concat`: the inputs one after the other along `axis`.
//!
//! Specification: Concat-1. A stage for each input, shifted by the extents before it.

use super::extent::countable;
use crate::error::ensure;
use crate::infer::normalize_axis;
use crate::op::parse;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_nest::{Mode, Scalar};
use vinelift_tensor::{Dim, Extent, PartialShape};

pub(crate) static DEF: OpDef = OpDef {
    name: "Concat",
    versions: &["opset1"],
    signature: Signature::new(&["data"]).variadic(),
    family: Family::Layout,
    build: Build::Op(parse::<Concat>),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Concat {
    axis: i64,
}

impl Op for Concat {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        let element = cx.inputs()[0].element;
        let other = cx.inputs().iter().position(|x| x.element != element);
        if let Some(i) = other {
            let expected = format!("of the type of the first input, {element}");
            let found = format!("{} in input {i}", cx.inputs()[i].element);
            return Err(OpError::Type {
                input: "data",
                expected,
                found,
            });
        }
        let ranked = cx.inputs().iter().find_map(|x| x.shape.rank());
        let shape = match ranked {
            Some(rank) => countable(self.join(cx, rank)?)?,
            None => PartialShape::DYNAMIC,
        };
        Ok(vec![TensorType::new(element, shape)])
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let out = cx.output(0);
        let axis = normalize_axis(self.axis, cx.rank_of(out)).unwrap_or_default();
        let mut start = Extent::from(0);
        for input in cx.inputs().to_vec() {
            let shape = cx.extents_of(input);
            cx.stage(&shape, out, Mode::Set, |cx, at| {
                let mut to = at.to_vec();
                if start != 0 {
                    to[axis] = &to[axis] + &Scalar::extent(start);
                }
                (to, cx.load_from(input, at))
            });
            start = start.sum(shape[axis]);
        }
    }
}

impl Concat {
    fn join(&self, cx: &Infer<'_>, rank: usize) -> Result<PartialShape, OpError> {
        let axis = normalize_axis(self.axis, rank)?;
        let mut joined = vec![Dim::ANY; rank];
        joined[axis] = Dim::fixed(0);
        for (i, input) in cx.inputs().iter().enumerate() {
            let any = vec![Dim::ANY; rank];
            let dims = input.shape.dims().unwrap_or(&any);
            let so_far = PartialShape::ranked(joined.clone());
            let misfit = || {
                format!(
                    "input {i} {} does not fit those before, {so_far}, off axis {axis}",
                    input.shape
                )
            };
            ensure!(dims.len() == rank, "{}", misfit());
            for (d, dim) in dims.iter().enumerate() {
                joined[d] = if d == axis {
                    joined[d].add(*dim)
                } else {
                    joined[d]
                        .intersect(*dim)
                        .ok_or_else(|| OpError::Shape(misfit()))?
                };
            }
        }
        Ok(PartialShape::ranked(joined))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, f32s, i32s, run};
    use crate::{Attributes, TensorType};
    use vinelift_tensor::{ElementType, Tensor};

    #[test]
    fn along_any_axis() {
        let (a, b) = (i32s(&[2, 1], &[1, 2]), i32s(&[2, 2], &[3, 4, 5, 6]));
        let out = run(&DEF, &[("axis", "-1")], &[a.clone(), b, i32s(&[2, 0], &[])]);
        assert_eq!(out, i32s(&[2, 3], &[1, 3, 4, 2, 5, 6]));
        assert_eq!(
            run(&DEF, &[("axis", "0")], &[a.clone(), a]),
            i32s(&[4, 1], &[1, 2, 1, 2])
        );
    }

    #[test]
    fn packed_elements_share_bytes() {
        let u4 = |n: usize, bytes: &[u8]| Tensor::from_bytes(ElementType::U4, &[n], bytes).unwrap();
        let out = run(
            &DEF,
            &[("axis", "0")],
            &[u4(1, &[0x1]), u4(3, &[0x32, 0x4])],
        );
        assert_eq!(out, u4(4, &[0x21, 0x43]));
    }

    #[test]
    fn what_does_not_fit() {
        let (a, b) = (i32s(&[2, 1], &[1, 2]), i32s(&[3, 1], &[0; 3]));
        let message = "input 1 [3, 1] does not fit those before, [2, 1], off axis 1";
        assert_eq!(error(&DEF, &[("axis", "1")], &[a.clone(), b]), message);
        let message = "`data` must be of the type of the first input, i32, found f32 in input 1";
        assert_eq!(
            error(&DEF, &[("axis", "0")], &[a, f32s(&[1, 1], &[0.0])]),
            message
        );
        let message = "axis 0 is out of range for rank 0";
        assert_eq!(error(&DEF, &[("axis", "0")], &[i32s(&[], &[0])]), message);
    }

    #[test]
    fn partial_shapes_add_up() {
        let dims =
            |dims: &[Dim]| TensorType::new(ElementType::F32, PartialShape::ranked(dims.to_vec()));
        let types = [
            dims(&[Dim::between(1, Some(4)), Dim::ANY]),
            dims(&[Dim::fixed(2), Dim::fixed(5)]),
            TensorType::new(ElementType::F32, PartialShape::DYNAMIC),
        ];
        let infer = |types: &[TensorType]| {
            let attributes = [("axis".to_owned(), "0".to_owned())];
            let op = DEF.instantiate(&Attributes(&attributes)).unwrap().unwrap();
            op.infer(&Infer::new(DEF.signature, types, &[]).unwrap())
                .unwrap()[0]
                .shape
                .to_string()
        };
        assert_eq!(infer(&types[..2]), "[3..6, 5]");
        assert_eq!(infer(&types), "[3.., 5]");
        assert_eq!(infer(&types[2..]), "[...]");
    }
}
