//! Which tensors a step uses: of those that are there, or new ones.

use super::fill::Fill;
use super::grow::{Grow, Value, broadcast};
use vinelift::ElementType;

/// How many bytes tensors should have.
const LEAST: usize = 50 << 10;

impl Grow<'_> {
    /// A shape of large tensors.
    pub(crate) fn shape(&mut self, least_rank: usize, most_rank: usize) -> Vec<usize> {
        const SMALL: [usize; 8] = [1, 2, 3, 4, 7, 8, 12, 16];
        let most = self.most / 8;
        let least = if self.huge { self.most / 80 } else { LEAST / 4 };
        for _ in 0..40 {
            let rank = self
                .choices
                .of(&[1, 2, 2, 2, 3, 3, 4])
                .clamp(least_rank, most_rank);
            let mut shape = if rank == 1 {
                vec![self.choices.within(least, most)]
            } else if rank == 4 && self.choices.chance(60) {
                let height = self.choices.of(&[7, 14, 15, 28, 31, 32, 56]);
                let channels = self.choices.of(&[3, 8, 16, 24, 32, 33, 64]);
                let width = self.choices.of(&[height, height, height + 1, 17]);
                vec![self.choices.of(&[1, 1, 2, 3]), channels, height, width]
            } else {
                let few = (2..rank)
                    .map(|_| self.choices.of(&SMALL))
                    .collect::<Vec<_>>();
                [
                    few,
                    vec![self.choices.of(&self.dims), self.choices.of(&self.dims)],
                ]
                .concat()
            };
            if let Some(batch) = self.batch {
                shape[0] = batch.extent;
            }
            if (least..=most).contains(&shape.iter().product()) {
                return shape;
            }
        }
        let rows = self.batch.map_or(128, |batch| batch.extent);
        match (least_rank, self.huge) {
            (..=2, true) => vec![1500, 1024],
            (3.., true) => [vec![2; least_rank - 2], vec![1024, 500]].concat(),
            (..=2, _) if most_rank == 1 => vec![20_000],
            (..=2, _) => vec![rows, 300],
            (rank, _) => [vec![rows.min(38)], vec![2; rank - 3], vec![24, 60]].concat(),
        }
    }

    pub(crate) fn axis(&mut self, value: &Value) -> usize {
        self.choices.below(value.rank())
    }

    /// Whether the first of these dims changes from inference to inference.
    pub(crate) fn is_batched(&self, shape: &[usize]) -> bool {
        self.batch
            .is_some_and(|batch| shape.first() == Some(&batch.extent))
    }

    /// A value of one of these types and of one of these ranks; one of the newest more often than not.
    pub(crate) fn pick(
        &mut self,
        types: &[ElementType],
        ranks: std::ops::RangeInclusive<usize>,
    ) -> Option<Value> {
        let fits = |v: &&Value| {
            types.contains(&v.ty)
                && ranks.contains(&v.rank())
                && v.bytes() >= 8 << 10
                && v.bytes() <= self.most
        };
        let found: Vec<Value> = self.values.iter().filter(fits).cloned().collect();
        if found.is_empty() || self.choices.chance(4) {
            let shape = self.shape(*ranks.start(), *ranks.end());
            let ty = self.choices.of(types);
            let fits = ranks.contains(&shape.len());
            return fits.then(|| self.parameter(ty, &shape));
        }
        let newest = if self.choices.chance(60) {
            found.len().saturating_sub(3)
        } else {
            0
        };
        let at = self.choices.within(newest, found.len() - 1);
        Some(found[at].clone())
    }

    /// One of the values that `fits`.
    pub(crate) fn find(&mut self, fits: impl Fn(&Value) -> bool) -> Option<Value> {
        let found: Vec<&Value> = self.values.iter().filter(|v| fits(v)).collect();
        let at = self.choices.below(found.len());
        found.get(at).map(|v| (*v).clone())
    }

    /// Usually f32.
    pub(crate) fn float(&mut self) -> &'static [ElementType] {
        use ElementType::{BF16, F16, F32, F64};
        if self.choices.chance(12) {
            &[F32, F16, BF16, F64]
        } else {
            &[F32]
        }
    }

    /// Usually f32, or one of `others`.
    pub(crate) fn any_of(&mut self, others: &'static [ElementType]) -> &'static [ElementType] {
        if self.choices.chance(25) {
            others
        } else {
            &[ElementType::F32]
        }
    }

    /// A value of the type and shape of `value`.
    pub(crate) fn like(&mut self, value: &Value) -> Value {
        let alike = |v: &Value| v.ty == value.ty && v.shape == value.shape && v.port != value.port;
        match self.find(alike) {
            Some(found) if self.choices.chance(80) => found,
            _ => self.parameter(value.ty, &value.shape),
        }
    }

    /// A value of this type and shape, which may be a part of a larger one.
    pub(crate) fn up_to(&mut self, shape: &[usize], ty: ElementType) -> Option<Value> {
        if let Some(found) = self.find(|v| v.ty == ty && v.shape == shape)
            && self.choices.chance(80)
        {
            return Some(found);
        }
        let larger = |v: &Value| {
            let covers = v.shape.iter().zip(shape).all(|(a, b)| a >= b);
            v.ty == ty && v.rank() == shape.len() && covers
        };
        if let Some(found) = self.find(larger)
            && self.choices.chance(60)
        {
            let cut = |a: &usize| found.shape[*a] != shape[*a];
            let axes: Vec<usize> = (0..shape.len()).filter(cut).collect();
            let stop: Vec<i64> = axes.iter().map(|&a| shape[a] as i64).collect();
            let [start, step] = [0, 1].map(|n| self.list(&vec![n; axes.len()]));
            let (stop, axes) = (self.list(&stop), self.axes(&axes));
            return self.one(
                "Slice",
                "opset8",
                "",
                &[&found, &start, &stop, &step, &axes],
                shape,
            );
        }
        let count: usize = shape.iter().product();
        if let Some(found) = self.find(|v| v.ty == ty && v.elements() == count)
            && self.batch.is_none()
            && self.choices.chance(80)
        {
            let to = self.axes(shape);
            return self.one(
                "Reshape",
                "opset1",
                "special_zero=\"false\"",
                &[&found, &to],
                shape,
            );
        }
        Some(self.parameter(ty, shape))
    }

    /// A value that broadcasts with `value`, and the shape that both have then.
    pub(crate) fn partner(&mut self, value: &Value) -> Option<(Value, Vec<usize>)> {
        let most = self.most;
        let fits = |v: &Value| {
            let shape = broadcast(&v.shape, &value.shape);
            v.ty == value.ty && shape.is_some_and(|s| s.iter().product::<usize>() * 4 <= most)
        };
        let found = self.find(fits).filter(|_| self.choices.chance(70));
        let partner = found.unwrap_or_else(|| {
            let rank = value.rank();
            let skip = self.choices.below(rank + 1);
            let mut shape = value.shape.clone();
            for extent in &mut shape {
                *extent = if self.choices.chance(60) { *extent } else { 1 };
            }
            shape.drain(..skip);
            if self.is_batched(&shape) || self.choices.chance(30) {
                return self.parameter(value.ty, &shape);
            }
            let fill = match value.ty {
                ty if ty.is_float() => Fill::Numbers(1.5),
                ElementType::Boolean => Fill::Integers { low: 0, high: 1 },
                _ => Fill::Integers { low: 1, high: 8 },
            };
            self.constant(value.ty, &shape, fill)
        });
        let shape = broadcast(&partner.shape, &value.shape)?;
        Some((partner, shape))
    }
}
