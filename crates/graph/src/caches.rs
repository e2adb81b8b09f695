//! Caches that are stored in fewer bits than their elements have.
//!
//! > `cache = Concat(Gather(…(ReadValue, order)), new)`, and `Assign(cache)`
//!
//! In each run such a variable keeps the elements it holds, reordered at most, and appends others. Language models keep the
//! keys and values of the text they have read in this way. [`Model::store_caches`] gives these variables another type and
//! adds the conversions as layers: the result is a model like any other, with the same meaning at every
//! level. Each element is rounded once, when it is appended; all readers see the rounded
//! element, also in the run that appends it.
//!
//! As [`Storage::Rounded`] the elements are numbers of 16 bits. As [`Storage::Codes`] each row along the last dim has a
//! code of 8 bits for each element, and two variables more, its scale and its least element:
//!
//! > `scale = max((largest - least) / 255, 2⁻¹²⁶)`, `code = round((x - least) / scale)`, ties to even,
//! > `element = code · scale + least`, each operation rounded to `f32`
//!
//! so that an element is off by half a scale at most, and by the rounding of these operations.

mod find;
mod store;

use crate::error::Error;
use crate::model::{Model, NodeKind};
use find::Cache;
use petgraph::graph::NodeIndex;
use vinelift_tensor::ElementType;

/// How elements of `f32` are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    /// As numbers of this type, `f16` or `bf16`.
    Rounded(ElementType),
    /// As `u8` with a scale and a least element for each row.
    Codes,
}

/// A variable that is stored in another type than it was declared to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredCache {
    /// The variable, which holds numbers or codes.
    pub id: String,
    /// How it is stored.
    pub storage: Storage,
    /// The variables of the scales and of the least elements of codes.
    pub rows: Option<[String; 2]>,
}

impl Model {
    /// Stores the caches of `f32` in fewer bits, but for those in sub-graphs. The caller must call [`Model::finish`] afterwards.
    ///
    /// # Errors
    /// If an operator refuses the attributes of a layer that is added.
    pub fn store_caches(&mut self, storage: Storage) -> Result<Vec<StoredCache>, Error> {
        let assigns = self.assigns.clone();
        let caches: Vec<Cache> = assigns
            .into_iter()
            .filter_map(|assign| self.cache(assign, storage))
            .collect();
        let stored = caches.iter().map(|cache| self.store(cache, storage));
        stored.collect()
    }

    fn operator(&self, node: NodeIndex) -> Option<&'static str> {
        match &self.node(node).kind {
            NodeKind::Operator { def, .. } => Some(def.name),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
