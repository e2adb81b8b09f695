//! `AdaptiveAvgPool`, `AdaptiveMaxPool`: the mean, or the maximum and its position, of the elements
//! `⌊o · n / m⌋ .. ⌈(o + 1) · n / m⌉` of each spatial dim, `n` being its extent and `m` that of the output.
//!
//! Specifications: AdaptiveAvgPool-8, AdaptiveMaxPool-8. Positions count over the spatial dims; of equal
//! elements the first counts.

use super::dim_windows::guarded;
use super::first;
use crate::attrs::{NoAttributes, element_type, i64_type, index_type};
use crate::elementwise::widened;
use crate::error::ensure;
use crate::layout::extent::{countable, naturals};
use crate::layout::index_map::last;
use crate::region::counted::between;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_nest::build::{index, lowest, zero};
use vinelift_nest::{Binary, BufferId, Scalar};
use vinelift_tensor::{Dim, ElementType, Extent, PartialShape};

pub(crate) static AVG: OpDef = pool(
    "AdaptiveAvgPool",
    Build::Op(|attributes| {
        let NoAttributes {} = attributes.parse()?;
        Ok(Box::new(AdaptivePool { positions: None }))
    }),
);

pub(crate) static MAX: OpDef = pool(
    "AdaptiveMaxPool",
    Build::Op(|attributes| {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Attrs {
            #[serde(default = "i64_type", deserialize_with = "element_type")]
            index_element_type: ElementType,
        }
        let Attrs { index_element_type } = attributes.parse()?;
        let ty = index_type("index_element_type", index_element_type)?;
        Ok(Box::new(AdaptivePool {
            positions: Some(ty),
        }))
    }),
);

const fn pool(name: &'static str, build: Build) -> OpDef {
    OpDef {
        name,
        versions: &["opset8"],
        signature: Signature::new(&["data", "output_shape"]),
        family: Family::Window,
        build,
    }
}

#[derive(Debug)]
struct AdaptivePool {
    /// The type of the positions of maxima; without one it is means that are taken.
    positions: Option<ElementType>,
}

impl Op for AdaptivePool {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        let element = cx.expect("data", "a float type", |t| t.is_float())?;
        let asked = cx.integers("output_shape")?;
        let count = asked.as_ref().map(Vec::len).or(cx.length("output_shape"));
        if let (Some(count), Some(rank)) = (count, cx.shape("data").rank()) {
            ensure!(
                rank == count + 2,
                "`data` {} must have rank {}, found `output_shape` of {count} elements",
                cx.shape("data"),
                count + 2
            );
        }
        let rank = cx.shape("data").rank().or(count.map(|n| n + 2));
        let shape = match rank {
            Some(rank) => {
                ensure!(rank >= 2, "`data` must have rank at least 2, found {rank}");
                let mut dims = cx.dims("data").map_or(vec![Dim::ANY; rank], <[_]>::to_vec);
                dims[2..].fill(Dim::ANY);
                for (dim, n) in dims[2..].iter_mut().zip(naturals(
                    "output_shape",
                    asked.as_deref().unwrap_or_default(),
                    0,
                )?) {
                    *dim = Dim::fixed(n);
                    ensure!(n < 1 << 30, "`output_shape` must be below 2^30, found {n}");
                }
                countable(PartialShape::ranked(dims))?
            }
            None => PartialShape::DYNAMIC,
        };
        let mut outputs = vec![TensorType::new(element, shape.clone())];
        outputs.extend(self.positions.map(|ty| TensorType::new(ty, shape)));
        Ok(outputs)
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let (shape, ty, out) = (cx.extents("data"), cx.element("data"), cx.output(0));
        let target = cx.extents_of(out);
        if target.iter().any(|n| *n == 0) {
            return;
        }
        let dims: Vec<DividedDim> = (shape[2..].iter().zip(&target[2..]))
            .map(|(&extent, &windows)| DividedDim { extent, windows })
            .collect();
        let kernel: Vec<Extent> = dims.iter().map(DividedDim::longest).collect();
        let place = |at: &[Scalar], k: &[Scalar]| {
            let mut from = at[..2].to_vec();
            let mut guard: Option<Scalar> = None;
            for (dim, (o, k)) in dims.iter().zip(at[2..].iter().zip(k)) {
                let i = dim.start(o) + k;
                let inside = i.lt(dim.end(o));
                guard = Some(guard.map_or(inside.clone(), |guard| guard & inside));
                from.push(i);
            }
            (from, guard)
        };
        let wide = ty.compute();
        let (op, init) = match self.positions {
            Some(_) => (Binary::Max, lowest(wide)),
            None => (Binary::Add, zero(wide)),
        };
        let column_sums = self.column_sums(cx, &dims);
        cx.define(out, |cx, at| {
            let fold = match (column_sums, &dims[..]) {
                (Some(sums), [_, across]) => across.sum_of(cx, sums, at),
                _ => cx.reduce(op, &kernel, init.clone(), |cx, k| {
                    let (from, guard) = place(at, k);
                    guarded(guard, widened(cx.load("data", &from)), init)
                }),
            };
            if self.positions.is_some() {
                return fold.cast(ty);
            }
            let lengths = dims.iter().zip(&at[2..]);
            let count = lengths.fold(index(1), |n, (dim, o)| n * (dim.end(o) - dim.start(o)));
            (fold / count.cast(wide)).cast(ty)
        });
        if self.positions.is_some() {
            first::positions(cx, &kernel, 2, place);
        }
    }
}

impl AdaptivePool {
    /// For means over rows and columns, the sums of the columns of all windows that lie side by side: vectors lie along columns.
    /// The sums of a window are added in the same order whether or not its extents are known.
    fn column_sums(&self, cx: &mut Lower<'_>, dims: &[DividedDim]) -> Option<BufferId> {
        let [down, across] = dims else {
            return None;
        };
        // A window over all rows is a usual fold. Whether there is just one is always known.
        if self.positions.is_some() || down.windows == 1 {
            return None;
        }
        let bounds =
            ["begin", "end"].map(|name| cx.temporary(name, ElementType::I64, &[down.windows]));
        cx.define(bounds[0], |_, at| down.start(&at[0]));
        cx.define(bounds[1], |_, at| down.end(&at[0]));
        let (data, ty) = (cx.extents("data"), cx.element("data").compute());
        let shape = [data[0], data[1], down.windows, across.extent];
        let sums = cx.temporary("column_sums", ty, &shape);
        cx.define(sums, |cx, at| {
            let row = std::slice::from_ref(&at[2]);
            let bounds = bounds.map(|bound| cx.load_from(bound, row));
            between(cx, Binary::Add, bounds, down.extent, &zero(ty), |cx, i| {
                let from = [&at[0], &at[1], i, &at[3]].map(Clone::clone);
                widened(cx.load("data", &from))
            })
        });
        Some(sums)
    }
}

/// A dim that windows divide: its extent, and how many windows there are.
struct DividedDim {
    extent: Extent,
    windows: Extent,
}

impl DividedDim {
    /// The sum of the elements of `sums` in the window at `at`.
    fn sum_of(&self, cx: &mut Lower<'_>, sums: BufferId, at: &[Scalar]) -> Scalar {
        let zero = zero(cx.type_of(sums));
        cx.reduce(Binary::Add, &[self.longest()], zero.clone(), |cx, k| {
            let i = self.start(&at[3]) + &k[0];
            let inside = i.lt(self.end(&at[3]));
            let from = [&at[0], &at[1], &at[2], &i].map(Clone::clone);
            guarded(Some(inside), cx.load_from(sums, &from), zero)
        })
    }

    fn start(&self, o: &Scalar) -> Scalar {
        o * &Scalar::extent(self.extent) / &Scalar::extent(self.windows)
    }

    fn end(&self, o: &Scalar) -> Scalar {
        let windows = Scalar::extent(self.windows);
        ((o + 1) * Scalar::extent(self.extent) + last(self.windows)) / windows
    }

    /// A length that no window exceeds.
    fn longest(&self) -> Extent {
        let most = self.extent.sum(self.windows).difference(Extent::ONE);
        let most = most.quotient(self.windows).sum(Extent::ONE);
        match most.at_most(self.extent) {
            true => most,
            false => self.extent,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IndexPolicy;
    use crate::testing::{error, f32s, i32s, i64s, infer, run, run_all};

    /// Values of NumPy by the formula of the specification: windows 0..2, 1..4 and 3..5.
    #[test]
    fn windows_that_overlap() {
        let x = f32s(&[1, 1, 5], &[1.0, 3.0, 8.0, 8.0, 2.0]);
        let inputs = [x, i64s(&[1], &[3])];
        let want = f32s(&[1, 1, 3], &[2.0, 19.0 / 3.0, 5.0]);
        assert_eq!(run(&AVG, &[], &inputs), want);
        let attributes = [("index_element_type", "i32")];
        let out = run_all(&MAX, &attributes, &inputs, IndexPolicy::Spec).unwrap();
        assert_eq!(out[0], f32s(&[1, 1, 3], &[3.0, 8.0, 8.0]));
        assert_eq!(out[1], i32s(&[1, 1, 3], &[1, 2, 3]));
    }

    #[test]
    fn more_windows_than_elements() {
        let x = f32s(&[1, 1, 1, 2], &[1.0, 3.0]);
        let out = run(&AVG, &[], &[x, i64s(&[2], &[2, 3])]);
        let want = f32s(&[1, 1, 2, 3], &[1.0, 2.0, 3.0, 1.0, 2.0, 3.0]);
        assert_eq!(out, want);
    }

    /// Values of NumPy: windows of rows 0..2 and 1..3, of columns 0..2, 1..3, 2..4 or 0..2 and 2..4.
    #[test]
    fn windows_over_rows_and_columns() {
        let x = [
            1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0,
        ];
        let x = f32s(&[1, 1, 3, 4], &x);
        let out = run(&AVG, &[], &[x.clone(), i64s(&[2], &[2, 3])]);
        let want = [3.5, 4.5, 5.5, 7.5, 8.5, 9.5];
        assert_eq!(out, f32s(&[1, 1, 2, 3], &want));
        let out = run(&AVG, &[], &[x.clone(), i64s(&[2], &[2, 2])]);
        assert_eq!(out, f32s(&[1, 1, 2, 2], &[3.5, 5.5, 7.5, 9.5]));
        let out = run(&AVG, &[], &[x, i64s(&[2], &[1, 2])]);
        assert_eq!(out, f32s(&[1, 1, 1, 2], &[5.5, 7.5]));
    }

    #[test]
    fn shapes() {
        let x = f32s(&[1, 1, 2], &[0.0; 2]);
        let message = "`data` [1, 1, 2] must have rank 4, found `output_shape` of 2 elements";
        assert_eq!(error(&AVG, &[], &[x, i64s(&[2], &[1, 1])]), message);
        let data = (ElementType::F16, PartialShape::DYNAMIC, None);
        let asked = (ElementType::I64, [1usize][..].into(), None);
        let want = ("f16[?, ?, ?] i64[?, ?, ?]".to_owned(), vec![1]);
        assert_eq!(infer(&MAX, &[], &[data, asked]), want);
    }
}
