//! The common part of the operators that select boxes of several classes and return the boxes:
//! `selected_outputs`, rows of class, score and box; `selected_indices`; and `selected_num`, how many
//! there are of each image.

use super::boxes::{Rect, limit};
use super::real::{self, Real};
use super::selection;
use super::tensors::integers;
use crate::attrs::index_type;
use crate::error::ensure;
use crate::{OpError, TensorType};
use serde::Deserialize;
use vinelift_tensor::memory::collected;
use vinelift_tensor::order::sort_by_keys;
use vinelift_tensor::{Dim, ElementType, PartialShape, Tensor};

/// The order of the selected boxes.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
pub(super) enum Sort {
    /// By class, then by score.
    #[serde(alias = "classid")]
    Class,
    /// By score.
    Score,
    /// Any: image by image, by score.
    #[default]
    None,
}

/// The attributes that these operators share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) sort: Sort,
    /// Whether boxes of different images are sorted among each other.
    pub(super) across_batch: bool,
    /// The type of the outputs that are integers.
    pub(super) index: ElementType,
    /// The most candidates of a class, -1 for any number.
    pub(super) nms_top_k: i64,
    /// The most boxes of an image, -1 for any number.
    pub(super) keep_top_k: i64,
    /// The class to be left out, or -1.
    pub(super) background_class: i64,
}

/// A selected box.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found<R> {
    pub(super) class: usize,
    /// Its position among the boxes of the image.
    pub(super) index: usize,
    /// Its position among all boxes.
    pub(super) flat: usize,
    pub(super) score: R,
    pub(super) rect: Rect<R>,
}

/// Defines a struct of the attributes that these operators share, and of its own.
macro_rules! attributes {
    ($name:ident { $($(#[$meta:meta])* $field:ident: $ty:ty,)* }) => {
        #[derive(Debug, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct $name {
            // The specification calls it `sort_result`, files have the longer name.
            #[serde(default, alias = "sort_result")]
            sort_result_type: $crate::native::class_boxes::Sort,
            #[serde(default)]
            sort_result_across_batch: bool,
            #[serde(
                default = "crate::attrs::i64_type",
                deserialize_with = "crate::attrs::element_type"
            )]
            output_type: vinelift_tensor::ElementType,
            #[serde(default)]
            score_threshold: f64,
            #[serde(default = "crate::attrs::minus_one")]
            nms_top_k: i64,
            #[serde(default = "crate::attrs::minus_one")]
            keep_top_k: i64,
            #[serde(default = "crate::attrs::minus_one")]
            background_class: i64,
            #[serde(default = "crate::attrs::yes")]
            normalized: bool,
            $($(#[$meta])* $field: $ty,)*
        }

        impl $name {
            fn limits(&self) -> $crate::native::class_boxes::Limits {
                $crate::native::class_boxes::Limits {
                    sort: self.sort_result_type,
                    across_batch: self.sort_result_across_batch,
                    index: self.output_type,
                    nms_top_k: self.nms_top_k,
                    keep_top_k: self.keep_top_k,
                    background_class: self.background_class,
                }
            }
        }
    };
}

pub(super) use attributes;

impl Limits {
    pub(super) fn check(&self) -> Result<(), OpError> {
        index_type("output_type", self.index)?;
        for (name, value) in [
            ("nms_top_k", self.nms_top_k),
            ("keep_top_k", self.keep_top_k),
            ("background_class", self.background_class),
        ] {
            ensure!(value >= -1, "`{name}` must be at least -1, found {value}");
        }
        Ok(())
    }

    /// The types of the outputs.
    pub(super) fn outputs(
        &self,
        element: ElementType,
        [batches, classes, boxes]: [Dim; 3],
    ) -> Vec<TensorType> {
        let at_most = |most: i64, dim: Dim| match usize::try_from(most) {
            Ok(most) => selection::least(dim, Dim::fixed(most)),
            Err(_) => dim,
        };
        let of_image = at_most(self.nms_top_k, boxes).mul(classes);
        let found = at_most(self.keep_top_k, of_image).mul(batches).up_to();
        let ranked = |ty, dims: &[Dim]| TensorType::new(ty, PartialShape::ranked(dims.to_vec()));
        vec![
            ranked(element, &[found, Dim::fixed(6)]),
            ranked(self.index, &[found, Dim::fixed(1)]),
            ranked(self.index, &[batches]),
        ]
    }

    /// The classes of `count` that are not left out.
    pub(super) fn classes(&self, count: usize) -> impl Iterator<Item = usize> {
        let background = usize::try_from(self.background_class).ok();
        (0..count).filter(move |c| Some(*c) != background)
    }

    /// The most candidates of a class.
    pub(super) fn candidates(&self) -> usize {
        limit(self.nms_top_k)
    }

    /// The outputs, from what was found in each image.
    pub(super) fn tensors<R: Real>(
        &self,
        element: ElementType,
        mut images: Vec<Vec<Found<R>>>,
    ) -> Result<Vec<Tensor>, OpError> {
        for image in &mut images {
            sort_by_keys(image, |f| {
                [f.score.rank(), f.class as u64, f.index as u64, 0]
            })?;
            image.truncate(limit(self.keep_top_k));
            if self.sort == Sort::Class {
                // Within a class they stay as they are.
                sort_by_keys(image, |f| [f.class as u64, 0, 0, 0])?;
            }
        }
        let counts = collected(images.iter().map(|image| image.len() as i64))?;
        let mut all = collected(images.into_iter().flatten())?;
        // Images stay in their order where this does not part them.
        match self.sort {
            Sort::Class if self.across_batch => {
                sort_by_keys(&mut all, |f| [f.class as u64, 0, 0, 0])?;
            }
            Sort::Score if self.across_batch => {
                sort_by_keys(&mut all, |f| [f.score.rank(), 0, 0, 0])?;
            }
            _ => {}
        }
        let rows = all.iter().flat_map(|f| {
            let named = [R::of(f.class as f64), f.score];
            named.into_iter().chain(f.rect.corners())
        });
        let rows = collected(rows)?;
        let flat = collected(all.iter().map(|f| f.flat as i64))?;
        Ok(vec![
            real::tensor(element, &[all.len(), 6], &rows)?,
            integers(self.index, &[all.len(), 1], &flat)?,
            integers(self.index, &[counts.len()], &counts)?,
        ])
    }
}
