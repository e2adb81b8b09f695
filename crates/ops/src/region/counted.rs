//! Folds whose length is data.

use crate::Lower;
use vinelift_nest::build::select;
use vinelift_nest::{Binary, Scalar};
use vinelift_tensor::Extent;

/// `init op body(0) op … op body(count - 1)`, where `count` is data and at most `most`. `init` is neutral.
pub(super) fn counted<'a>(
    cx: &mut Lower<'a>,
    op: Binary,
    count: &Scalar,
    most: Extent,
    init: &Scalar,
    body: impl FnOnce(&mut Lower<'a>, &Scalar) -> Scalar,
) -> Scalar {
    fold(cx, op, most, init, body, |k| k.lt(count.clone()))
}

/// `init op body(begin) op … op body(end - 1)`, where `[begin, end]` are data, of the points that are below `extent`. `init` is neutral.
pub(crate) fn between<'a>(
    cx: &mut Lower<'a>,
    op: Binary,
    [begin, end]: [Scalar; 2],
    extent: Extent,
    init: &Scalar,
    body: impl FnOnce(&mut Lower<'a>, &Scalar) -> Scalar,
) -> Scalar {
    fold(cx, op, extent, init, body, |k| k.ge(begin) & k.lt(end))
}

/// The fold over the points of an axis at which `guard` holds, in the form of [`FoldBounds`](vinelift_nest::FoldBounds).
fn fold<'a>(
    cx: &mut Lower<'a>,
    op: Binary,
    extent: Extent,
    init: &Scalar,
    body: impl FnOnce(&mut Lower<'a>, &Scalar) -> Scalar,
    guard: impl FnOnce(&Scalar) -> Scalar,
) -> Scalar {
    cx.reduce(op, &[extent], init.clone(), |cx, k| {
        let value = body(cx, &k[0]);
        select(guard(&k[0]), value, init.clone())
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
