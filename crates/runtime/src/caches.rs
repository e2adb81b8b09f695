//! Caches that are stored in fewer bits, for those who look at variables: what these hold has the model's type.

use crate::run::{Held, Variables};
use crate::{CachePrecision, Error, Model};
use vinelift_graph::{Storage, StoredCache};
use vinelift_tensor::ElementType::{BF16, F16};
use vinelift_tensor::memory::collected;
use vinelift_tensor::{Tensor, half};

/// The caches of a model that are stored otherwise than it says.
#[derive(Debug)]
pub(crate) struct Caches(Vec<StoredCache>);

/// Elements as they are stored, one part for each of the variables that hold them.
struct Parts(Vec<Tensor>);

impl CachePrecision {
    fn storage(self) -> Option<Storage> {
        match self {
            CachePrecision::F32 => None,
            CachePrecision::F16 => Some(Storage::Rounded(F16)),
            CachePrecision::BF16 => Some(Storage::Rounded(BF16)),
            CachePrecision::U8 => Some(Storage::Codes),
        }
    }
}

impl Caches {
    /// The model whose caches are stored with this precision.
    ///
    /// # Errors
    /// As [`Model::edit`].
    pub(crate) fn store(
        model: &Model,
        precision: CachePrecision,
    ) -> Result<(Model, Caches), Error> {
        let mut stored = Vec::new();
        let Some(storage) = precision.storage() else {
            return Ok((model.clone(), Caches(stored)));
        };
        let model = model.edit(|graph| {
            stored = graph.store_caches(storage)?;
            Ok(())
        })?;
        Ok((model, Caches(stored)))
    }

    fn find(&self, name: &str) -> Option<&StoredCache> {
        self.0.iter().find(|cache| cache.id == name)
    }

    /// Whether a variable is part of another one.
    fn is_part(&self, name: &str) -> bool {
        let rows = |cache: &StoredCache| cache.rows.iter().flatten().any(|id| id == name);
        self.0.iter().any(rows)
    }

    /// The tensor of a variable of the model, in the model's type.
    pub(crate) fn value<'v>(&self, name: &str, variables: &'v Variables) -> Option<&'v Tensor> {
        let held = variables.get(name)?;
        let Some(cache) = self.find(name) else {
            return held.tensor();
        };
        held.wide(|| {
            let rows = cache.rows.iter().flatten();
            let rows = rows.map(|id| variables.get(id)?.tensor().cloned());
            let parts = std::iter::once(held.tensor().cloned()).chain(rows);
            Parts(parts.collect::<Option<_>>()?).elements()
        })
    }

    /// The values of the model's own variables, by name.
    pub(crate) fn values<'v>(
        &'v self,
        variables: &'v Variables,
    ) -> impl Iterator<Item = (&'v str, &'v Tensor)> {
        let names = variables.keys().filter(|name| !self.is_part(name));
        names.filter_map(|name| Some((name.as_str(), self.value(name, variables)?)))
    }

    /// Has a variable of the model hold `value`, which is of its type.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub(crate) fn set(
        &self,
        name: &str,
        value: Tensor,
        variables: &mut Variables,
    ) -> Result<(), Error> {
        let Some(cache) = self.find(name) else {
            variables.insert(name.to_owned(), value.into());
            return Ok(());
        };
        let parts = Parts::of(&value, cache.storage)?.0.into_iter();
        let names = std::iter::once(&cache.id).chain(cache.rows.iter().flatten());
        variables.extend(names.cloned().zip(parts.map(Held::from)));
        Ok(())
    }

    /// Has a variable of the model hold nothing.
    pub(crate) fn reset(&self, name: &str, variables: &mut Variables) {
        variables.remove(name);
        let rows = self.find(name).and_then(|cache| cache.rows.as_ref());
        for id in rows.into_iter().flatten() {
            variables.remove(id);
        }
    }
}

impl Parts {
    /// As [`store_caches`](vinelift_graph::Model::store_caches) has a run store elements of `f32`.
    fn of(value: &Tensor, storage: Storage) -> Result<Parts, Error> {
        let (elements, shape) = (value.as_slice::<f32>()?, value.shape());
        Ok(Parts(match storage {
            Storage::Rounded(F16) => {
                let rounded = elements.iter().map(|x| half::f16::from_f32(*x));
                vec![Tensor::from_slice(shape, &collected(rounded)?)?]
            }
            Storage::Rounded(_) => {
                let rounded = elements.iter().map(|x| half::bf16::from_f32(*x));
                vec![Tensor::from_slice(shape, &collected(rounded)?)?]
            }
            Storage::Codes => codes(&elements, shape)?,
        }))
    }

    /// The elements; `None` if there is no memory for them.
    fn elements(&self) -> Option<Tensor> {
        let stored = self.0.first()?;
        let elements: Vec<f32> = match self.0.as_slice() {
            [codes, scales, leasts] => {
                let scales = scales.as_slice::<f32>().ok()?;
                let leasts = leasts.as_slice::<f32>().ok()?;
                let length = stored.shape().last().copied()?.max(1);
                let rows = codes.bytes().chunks_exact(length);
                let rows = rows.zip(scales.iter().zip(leasts.iter()));
                let element = |code: &u8, scale, least| f32::from(*code) * scale + least;
                let elements = rows.flat_map(|(codes, (scale, least))| {
                    codes.iter().map(move |code| element(code, scale, least))
                });
                collected(elements).ok()?
            }
            _ if stored.element_type() == F16 => {
                let stored = stored.as_slice::<half::f16>().ok()?;
                collected(stored.iter().map(|x| x.to_f32())).ok()?
            }
            _ => {
                let stored = stored.as_slice::<half::bf16>().ok()?;
                collected(stored.iter().map(|x| x.to_f32())).ok()?
            }
        };
        Tensor::from_slice(stored.shape(), &elements).ok()
    }
}

/// Codes, scales and least elements of rows.
fn codes(elements: &[f32], shape: &[usize]) -> Result<Vec<Tensor>, Error> {
    let (length, before) = shape.split_last().unwrap_or((&1, &[]));
    let of_row = |row: &[f32]| {
        let least = row.iter().copied().fold(f32::INFINITY, f32::min);
        let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let scale = ((largest - least) / 255.0).max(f32::MIN_POSITIVE);
        (scale, least)
    };
    let rows = collected(elements.chunks_exact((*length).max(1)).map(of_row))?;
    // Rows without elements are there all the same.
    let count: usize = before.iter().product();
    let nothing = std::iter::repeat_n((f32::MIN_POSITIVE, 0.0), count - rows.len());
    let rows = collected(rows.into_iter().chain(nothing))?;
    let parts = elements.chunks_exact((*length).max(1)).zip(&rows);
    let codes = parts.flat_map(|(row, (scale, least))| {
        row.iter()
            .map(move |x| ((x - least) / scale).round_ties_even() as u8)
    });
    let codes = Tensor::from_slice(shape, &collected(codes)?)?;
    let shape = [before, &[1]].concat();
    let scales = collected(rows.iter().map(|(scale, _)| *scale))?;
    let leasts = collected(rows.iter().map(|(_, least)| *least))?;
    Ok(vec![
        codes,
        Tensor::from_slice(&shape, &scales)?,
        Tensor::from_slice(&shape, &leasts)?,
    ])
}
