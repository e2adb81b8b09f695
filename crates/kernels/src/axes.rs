//! Dims of one group, joined where their strides allow, and the offsets of their points.

use crate::Refused;

/// The largest number of points of `m`, `n` or `k`: their offsets are kept in tables.
const MOST_POINTS: usize = 1 << 24;

/// A dim as `N` operands see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Axis<const N: usize> {
    pub(crate) extent: usize,
    pub(crate) strides: [usize; N],
}

/// The dims of a group, outermost first, none of extent 1, and none that could be joined with the
/// next. Offsets of all points are known to be below `u32::MAX`.
#[derive(Clone, Debug)]
pub(crate) struct Axes<const N: usize> {
    axes: Vec<Axis<N>>,
    points: usize,
    last: [usize; N],
}

impl<const N: usize> Axes<N> {
    /// Joins `dims`.
    pub(crate) fn new(dims: impl IntoIterator<Item = Axis<N>>) -> Result<Axes<N>, Refused> {
        let dims: Vec<Axis<N>> = dims.into_iter().filter(|dim| dim.extent != 1).collect();
        if dims.iter().any(|dim| dim.extent == 0) {
            return Ok(Axes {
                axes: Vec::new(),
                points: 0,
                last: [0; N],
            });
        }
        let mut axes: Vec<Axis<N>> = Vec::new();
        let mut points = 1usize;
        for dim in dims {
            points = points.checked_mul(dim.extent).ok_or(Refused::TooLarge)?;
            match axes.last_mut() {
                Some(outer) if joins(outer, &dim) => {
                    outer.extent = outer
                        .extent
                        .checked_mul(dim.extent)
                        .ok_or(Refused::TooLarge)?;
                    outer.strides = dim.strides;
                }
                _ => axes.push(dim),
            }
        }
        let mut last = [0usize; N];
        for axis in &axes {
            for (last, &stride) in last.iter_mut().zip(&axis.strides) {
                *last = (axis.extent - 1)
                    .checked_mul(stride)
                    .and_then(|step| last.checked_add(step))
                    .filter(|&last| last < u32::MAX as usize)
                    .ok_or(Refused::TooLarge)?;
            }
        }
        Ok(Axes { axes, points, last })
    }

    /// How many points there are.
    pub(crate) fn points(&self) -> usize {
        self.points
    }

    /// The largest offset in `operand`.
    pub(crate) fn last(&self, operand: usize) -> usize {
        self.last[operand]
    }

    /// The joined dims.
    pub(crate) fn axes(&self) -> &[Axis<N>] {
        &self.axes
    }

    /// The stride in `operand`, where all points lie on one line.
    pub(crate) fn line(&self, operand: usize) -> Option<usize> {
        match self.axes.as_slice() {
            [] => Some(1),
            [axis] => Some(axis.strides[operand]),
            _ => None,
        }
    }

    /// The offsets of the point with number `point` in row-major order.
    pub(crate) fn at(&self, mut point: usize) -> [usize; N] {
        let mut offsets = [0; N];
        for (number, axis) in self.axes.iter().enumerate().rev() {
            // The rest belongs to the outermost axis: this saves a division, which takes as long as a small tile.
            let step = if number == 0 {
                point
            } else {
                point % axis.extent
            };
            if number > 0 {
                point /= axis.extent;
            }
            for (offset, stride) in offsets.iter_mut().zip(&axis.strides) {
                *offset += step * stride;
            }
        }
        offsets
    }

    /// The offset in `operand` of every point, in row-major order.
    pub(crate) fn table(&self, operand: usize) -> Result<Box<[u32]>, Refused> {
        if self.points > MOST_POINTS {
            return Err(Refused::TooLarge);
        }
        let list = |count| {
            let mut list: Vec<u32> = Vec::new();
            let room = list.try_reserve_exact(count);
            room.map(|()| list).map_err(|_| Refused::TooLarge)
        };
        let mut table = list(1)?;
        if self.points > 0 {
            table.push(0u32);
        }
        for axis in &self.axes {
            // The next axis is inner: each point of the axes before it becomes a row of it.
            let stride = axis.strides[operand];
            let mut next = list(table.len() * axis.extent)?;
            for &start in &table {
                next.extend((0..axis.extent).map(|step| start + (step * stride) as u32));
            }
            table = next;
        }
        Ok(table.into())
    }
}

/// Whether a step of `outer` is as far as all the steps of `inner` together.
fn joins<const N: usize>(outer: &Axis<N>, inner: &Axis<N>) -> bool {
    outer
        .strides
        .iter()
        .zip(&inner.strides)
        .all(|(&outer, &stride)| inner.extent.checked_mul(stride) == Some(outer))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axes(dims: &[(usize, usize, usize)]) -> Result<Axes<2>, Refused> {
        Axes::new(dims.iter().map(|&(extent, a, b)| Axis {
            extent,
            strides: [a, b],
        }))
    }

    #[test]
    fn neighbours_join_where_both_strides_allow() {
        let joined = axes(&[(2, 12, 60), (1, 7, 7), (3, 4, 20), (4, 1, 5)]).unwrap();
        assert_eq!(
            joined.axes(),
            [Axis {
                extent: 24,
                strides: [1, 5]
            }]
        );
        let apart = axes(&[(3, 4, 8), (4, 1, 1)]).unwrap();
        assert_eq!(apart.axes().len(), 2);
        assert_eq!(
            &*apart.table(1).unwrap(),
            [0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19]
        );
        assert_eq!(apart.at(6), [6, 10]);
        assert_eq!(apart.last(1), 19);
    }

    #[test]
    fn nothing_overflows() {
        assert_eq!(
            axes(&[(usize::MAX, 1, 1), (3, 1, 1)]).unwrap_err(),
            Refused::TooLarge
        );
        assert_eq!(axes(&[(3, usize::MAX, 0)]).unwrap_err(), Refused::TooLarge);
        assert_eq!(
            axes(&[(1 << 31, 0, 0)]).unwrap().table(0).unwrap_err(),
            Refused::TooLarge
        );
        assert_eq!(
            axes(&[(usize::MAX, 9, 9), (2, 1, 1), (0, 1, 1)])
                .unwrap()
                .points(),
            0
        );
    }
}
