//! Machine code that all plans of a compiled model share: equal kernels are compiled once.

use crate::Error;
use crate::compile::Settings;
use lru::LruCache;
use rustc_hash::FxHashMap;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use vinelift_codegen::{Code, KernelText};
use vinelift_nest::{BoundChunks, Nest};

/// A function of some code, with the numbers of its extents.
#[derive(Clone)]
pub(crate) struct Function {
    code: Arc<Code>,
    number: usize,
    /// Of each of [`Code::extents`].
    numbers: Vec<i64>,
}

/// The functions that were compiled, by the canonical forms of their kernels.
pub(crate) struct Functions {
    known: Mutex<LruCache<Nest, Function>>,
    /// How many were compiled, and the bytes of their machine code.
    count: AtomicUsize,
    bytes: AtomicUsize,
}

/// The most functions that are kept for kernels to come; those of plans stay with these.
const MOST: NonZeroUsize = NonZeroUsize::new(2048).unwrap();

impl Default for Functions {
    fn default() -> Functions {
        Functions {
            known: Mutex::new(LruCache::new(MOST)),
            count: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
        }
    }
}

impl Functions {
    /// The functions of kernels, each given in its canonical form and as it is, in order.
    ///
    /// # Errors
    /// [`Error::Cancelled`], and those of memory.
    pub(crate) fn of(
        &self,
        kernels: &[(&Nest, &Nest)],
        settings: &Settings<'_>,
    ) -> Result<Vec<Function>, Error> {
        let mut numbers: FxHashMap<&Nest, usize> = FxHashMap::default();
        let mut distinct: Vec<(&Nest, &Nest)> = Vec::new();
        let mut of_kernel = Vec::with_capacity(kernels.len());
        for (canonical, nest) in kernels {
            let number = *numbers.entry(*canonical).or_insert(distinct.len());
            if number == distinct.len() {
                distinct.push((canonical, nest));
            }
            of_kernel.push(number);
        }
        let mut found: Vec<Option<Function>> = {
            let mut known = self.known();
            let known = distinct
                .iter()
                .map(|(canonical, _)| known.get(*canonical).cloned());
            known.collect()
        };
        let missing: Vec<usize> = (0..distinct.len())
            .filter(|k| found[*k].is_none())
            .collect();
        if !missing.is_empty() {
            let nests: Vec<&Nest> = missing.iter().map(|k| distinct[*k].1).collect();
            let Settings {
                compiler, options, ..
            } = settings;
            let code = Arc::new(compiler.compile_until(&nests, options, settings.stop)?);
            let bytes: usize = (0..code.len()).map(|k| code.size(k)).sum();
            self.count.fetch_add(code.len(), Ordering::Relaxed);
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
            let mut known = self.known();
            for (number, k) in missing.into_iter().enumerate() {
                let code = code.clone();
                let numbers = code.extents(number).iter();
                let numbers = numbers.map(|extent| extent.example() as i64).collect();
                let function = Function {
                    code,
                    number,
                    numbers,
                };
                known.put(distinct[k].0.clone(), function.clone());
                found[k] = Some(function);
            }
        }
        let of = |number: &usize| found[*number].clone();
        let functions: Option<Vec<Function>> = of_kernel.iter().map(of).collect();
        functions.ok_or_else(|| Error::internal("a kernel has no code"))
    }

    /// How many were compiled so far, and the bytes of their machine code.
    pub(crate) fn compiled(&self) -> (usize, usize) {
        let count = self.count.load(Ordering::Relaxed);
        (count, self.bytes.load(Ordering::Relaxed))
    }

    fn known(&self) -> MutexGuard<'_, LruCache<Nest, Function>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Function {
    /// The function where the symbol of number `k` is `values[k]`; `None` if an extent is out of bounds then.
    pub(crate) fn bound_to(&self, values: &[usize]) -> Option<Function> {
        let numbers = self.code.extents(self.number).iter();
        let numbers = numbers.map(|extent| i64::try_from(extent.at(values)?).ok());
        Some(Function {
            numbers: numbers.collect::<Option<_>>()?,
            ..self.clone()
        })
    }

    /// The code that it is part of, and its number there.
    pub(crate) fn code(&self) -> (&Code, usize) {
        (&self.code, self.number)
    }

    /// The numbers of its extents.
    pub(crate) fn numbers(&self) -> &[i64] {
        &self.numbers
    }

    /// Into which chunks it can be cut.
    pub(crate) fn chunks(&self) -> BoundChunks {
        self.code.chunks(self.number, &self.numbers)
    }

    /// The `k`-th of `count` chunks.
    pub(crate) fn chunk(&self, k: usize, count: usize) -> Range<usize> {
        self.chunks().range(k, count)
    }

    /// Bytes of scratch memory that a call needs.
    pub(crate) fn scratch_bytes(&self) -> usize {
        self.code.scratch_bytes(self.number)
    }

    /// Its text, if it was kept.
    pub(crate) fn text(&self) -> Option<&KernelText> {
        self.code.text(self.number)
    }
}
