//! The classes of shapes that a unit has met.

use crate::class::Class;
use crate::compile::symbolic_plan::SymbolicPlan;
use crate::plan_key::{KeyKind, PlanKey};
use lru::LruCache;
use std::sync::Arc;

/// The classes of shapes that a unit has met, by the kinds of their keys.
pub(crate) struct Classes {
    kinds: LruCache<KeyKind, Met>,
    /// The stages of all plans together.
    stages: usize,
}

/// The classes of a kind, and how its numbers were needed.
#[derive(Default)]
struct Met {
    /// The oldest first.
    classes: Vec<Arc<Class<SymbolicPlan>>>,
    /// Whether each number that may change was needed as it is, as it then is for other keys of the kind.
    is_pinned: bool,
}

/// The result of looking for the class of a key.
pub(crate) enum Found {
    /// The class to which it belongs, with the values of its symbols.
    Class(Arc<Class<SymbolicPlan>>, Vec<usize>),
    /// No class that was met has it, and one can be made.
    Unmet,
    /// It is one of a kind that has no classes.
    Pinned,
    /// It is the first of its kind.
    First,
}

/// The most classes that are kept of a kind.
const MOST_OF_A_KIND: usize = 16;

/// The most kinds that are kept: values that are no integers make one each.
const MOST_KINDS: usize = 1 << 10;

/// The most stages of the plans that are kept, unless a single kind has more.
const MOST_STAGES: usize = 1 << 16;

impl Default for Classes {
    fn default() -> Classes {
        Classes {
            kinds: LruCache::unbounded(),
            stages: 0,
        }
    }
}

impl Classes {
    /// The class to which a key belongs, with the values of its symbols.
    pub(crate) fn look(
        &mut self,
        kind: &KeyKind,
        key: &PlanKey,
    ) -> Option<(Arc<Class<SymbolicPlan>>, Vec<usize>)> {
        let mut classes = self.kinds.get(kind)?.classes.iter();
        classes.find_map(|class| Some((class.clone(), class.values(key)?)))
    }

    /// Looks for the class of `key`, which is of this kind.
    pub(crate) fn find(&mut self, kind: &KeyKind, key: &PlanKey) -> Found {
        if let Some((class, values)) = self.look(kind, key) {
            return Found::Class(class, values);
        }
        match self.kinds.get(kind) {
            Some(met) if met.is_pinned => Found::Pinned,
            Some(_) => Found::Unmet,
            None => {
                self.kinds.put(kind.clone(), Met::default());
                self.let_go();
                Found::First
            }
        }
    }

    /// Keeps a class; the oldest of its kind may go for it, and the kinds that were not met for longest.
    pub(crate) fn add(&mut self, kind: &KeyKind, class: Arc<Class<SymbolicPlan>>) {
        self.stages += stages(&class);
        let met = self.kinds.get_or_insert_mut_ref(kind, Met::default);
        if met.classes.len() == MOST_OF_A_KIND {
            self.stages -= stages(&met.classes.remove(0));
        }
        met.classes.push(class);
        self.let_go();
    }

    /// Evicts the kinds that were not met for longest, if there is too much.
    fn let_go(&mut self) {
        while (self.stages > MOST_STAGES || self.kinds.len() > MOST_KINDS) && self.kinds.len() > 1 {
            let gone = self.kinds.pop_lru().map(|(_, met)| met.classes);
            let gone = gone.unwrap_or_default();
            self.stages -= gone.iter().map(|class| stages(class)).sum::<usize>();
        }
    }

    /// Whether a kind has no classes.
    pub(crate) fn is_pinned(&self, kind: &KeyKind) -> bool {
        self.kinds.peek(kind).is_some_and(|met| met.is_pinned)
    }

    /// Notes that a kind has no classes.
    pub(crate) fn pin(&mut self, kind: &KeyKind) {
        self.kinds
            .get_or_insert_mut_ref(kind, Met::default)
            .is_pinned = true;
    }
}

/// The stages of a plan, and one for what it takes beside them.
fn stages(class: &Class<SymbolicPlan>) -> usize {
    class.made.stages() + 1
}
