//! Folds whose length is data.

use crate::Lower;
use crate::layout::index_map::extent;
use vinelift_nest::build::select;
use vinelift_nest::{Binary, Scalar};
use vinelift_tensor::Extent;

/// Points of one loop, of the loops around it too.
const BASE: usize = 8;

/// `init op body(0) op … op body(count - 1)`, where `count` is data and at most `most`. `init` must
/// leave values as they are.
///
/// Loops have fixed extents, so a single one would run `most` times whatever `count` is. Here the index
/// is written with digits, and a loop over each digit is entered only if its first index is below
/// `count`: that takes about `count` steps, and a few for each digit.
pub(super) fn counted<'a>(
    cx: &mut Lower<'a>,
    op: Binary,
    count: &Scalar,
    most: Extent,
    init: &Scalar,
    body: impl FnOnce(&mut Lower<'a>, &Scalar) -> Scalar,
) -> Scalar {
    let mut span = 1;
    while most.example().div_ceil(span) > BASE {
        span *= BASE;
    }
    let digits = match most.number() {
        Some(most) => most.div_ceil(span),
        // As many as there may be with this many digits.
        None if most.at_most((span * BASE).into()) => BASE,
        None => most.pin().div_ceil(span),
    };
    digit(cx, op, count, digits, span, init, None, Box::new(body))
}

type Body<'b, 'a> = Box<dyn FnOnce(&mut Lower<'a>, &Scalar) -> Scalar + 'b>;

/// The fold over the indices from `from` on, `span` of them for each of `digits`.
#[allow(
    clippy::too_many_arguments,
    reason = "a recursive step with all its state"
)]
fn digit<'a>(
    cx: &mut Lower<'a>,
    op: Binary,
    count: &Scalar,
    digits: usize,
    span: usize,
    init: &Scalar,
    from: Option<Scalar>,
    body: Body<'_, 'a>,
) -> Scalar {
    cx.reduce(op, &[digits], init.clone(), |cx, k| {
        let step = match span {
            1 => k[0].clone(),
            _ => &k[0] * extent(span),
        };
        let i = match from {
            Some(from) => from + step,
            None => step,
        };
        let value = match span {
            1 => body(cx, &i),
            _ => digit(
                cx,
                op,
                count,
                BASE,
                span / BASE,
                init,
                Some(i.clone()),
                body,
            ),
        };
        select(i.lt(count.clone()), value, init.clone())
    })
}

#[cfg(test)]
mod tests {
    use crate::region::roi_pooling;
    use crate::testing::{f32s, run};

    /// A region of one bin on a map of one row whose last element is the largest: the maximum is the
    /// last element that the fold reaches.
    #[test]
    fn every_count_up_to_the_most() {
        for n in [1, 7, 8, 9, 63, 64, 65, 130] {
            let row: Vec<f32> = (0..n).map(|i| i as f32).collect();
            let data = f32s(&[1, 1, 1, n], &row);
            let lasts = [0, 6, 7, 8, 62, 63, 64, 128, 129];
            let lasts: Vec<usize> = lasts.into_iter().filter(|last| *last < n).collect();
            let rois: Vec<f32> = lasts
                .iter()
                .flat_map(|last| [0.0, 0.0, 0.0, *last as f32, 0.0])
                .collect();
            let rois = f32s(&[lasts.len(), 5], &rois);
            let attributes = [("pooled_h", "1"), ("pooled_w", "1"), ("spatial_scale", "1")];
            let out = run(&roi_pooling::DEF, &attributes, &[data, rois]);
            let found: Vec<usize> = out
                .to_f64_vec()
                .unwrap()
                .iter()
                .map(|x| *x as usize)
                .collect();
            assert_eq!(found, lasts, "{n}");
        }
    }
}
