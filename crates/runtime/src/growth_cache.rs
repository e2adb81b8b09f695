//! Which variables grow, by the shapes of a run.

use crate::class::{Alone, Class, Settled};
use crate::plan_key::{KeyKind, PlanKey};
use lru::LruCache;
use std::num::NonZeroUsize;
use vinelift_graph::TensorId;
use vinelift_tensor::Extent;

/// The variables that could grow in memory with room for it: the tensor that is read, the axis, and the extent
/// afterwards.
pub(crate) type Growing = Vec<(TensorId, usize, Extent)>;

/// The variables that grow, as they were found for each class of shapes.
pub(crate) struct GrowthCache {
    kinds: LruCache<KeyKind, Met>,
    /// The last shapes at which variables have grown, and how many there were.
    last: Option<PlanKey>,
    count: usize,
}

#[derive(Default)]
struct Met {
    classes: Vec<Class<Growing>>,
    /// For how many shapes no class could be made.
    alone: usize,
    /// Whether for shapes outside of these classes no variable grows.
    is_settled: bool,
}

/// The most kinds that are kept, and the most classes of each.
const MOST_KINDS: NonZeroUsize = NonZeroUsize::new(64).unwrap();
const MOST_OF_A_KIND: usize = 16;

/// How often making a class may fail for a kind before it is not tried again.
const MOST_ALONE: usize = 3;

/// How many runs ahead a class is made, if there is none for the shapes that these runs will have; and after how many runs each that is
/// checked.
const RUNS_AHEAD: usize = 20;
const EVERY: usize = 4;

/// The least room that is made, in points along the axis.
const LEAST_ROOM: usize = 64;

/// How much new memory takes along an axis that grows, for `extent` points.
pub(crate) fn capacity_for(extent: usize) -> usize {
    extent.saturating_add((extent / 2).max(LEAST_ROOM))
}

impl Default for GrowthCache {
    fn default() -> GrowthCache {
        GrowthCache {
            kinds: LruCache::new(MOST_KINDS),
            last: None,
            count: 0,
        }
    }
}

impl GrowthCache {
    /// The variables that grow where shapes are those of `key`: the tensor that is read, the axis, and the extent afterwards;
    /// `None` if it is not known.
    pub(crate) fn of(
        &mut self,
        kind: &KeyKind,
        key: &PlanKey,
    ) -> Option<Vec<(TensorId, usize, usize)>> {
        let met = self.kinds.get(kind)?;
        let mut found = met.classes.iter();
        let found = found.find_map(|class| Some((class, class.values(key)?)));
        let Some((class, values)) = found else {
            return met.is_settled.then(Vec::new);
        };
        let at = |(tensor, axis, extent): &(TensorId, usize, Extent)| {
            Some((*tensor, *axis, extent.at(&values)?))
        };
        class.made.iter().map(at).collect()
    }

    /// The numbers of `key` that its class has settled, if there is a class for it.
    pub(crate) fn settled(&mut self, kind: &KeyKind, key: &PlanKey) -> Option<Settled> {
        let mut classes = self.kinds.get(kind)?.classes.iter();
        let class = classes.find(|class| class.values(key).is_some())?;
        Some(class.settled())
    }

    /// Notes the key of a run in which variables grow. Returns now and then the key that a later run will have if they go on growing in
    /// the same way.
    pub(crate) fn ahead(&mut self, key: &PlanKey) -> Option<PlanKey> {
        let last = self.last.replace(key.clone());
        self.count += 1;
        match self.count.is_multiple_of(EVERY) && key.values.is_empty() {
            true => key.after(&last?, RUNS_AHEAD),
            false => None,
        }
    }

    /// Adds a class of a kind, or notes that there is none for its shapes.
    pub(crate) fn add(&mut self, kind: &KeyKind, found: Result<Class<Growing>, Alone>) {
        let met = self.kinds.get_or_insert_mut_ref(kind, Met::default);
        met.alone += usize::from(found.is_err());
        // An extent of 0 or 1 has no symbol, but a later run may have more.
        met.is_settled = match found {
            Err(_) => met.alone >= MOST_ALONE,
            Ok(_) => met.classes.len() + 1 >= MOST_OF_A_KIND,
        };
        met.classes.extend(found);
    }
}
