//! Concatenations of values on one grid, whose pieces are moved one by one.

use super::grid::OnGrid;
use crate::build::index;
use crate::ir::{Axis, Binary, BufferId, Kind, Mode, Nest, Role, Scalar, Stage};
use rustc_hash::FxHashMap;
use vinelift_tensor::Extent;

/// A buffer that consists of others on one grid, one after the other along a dim.
#[derive(Clone)]
pub(super) struct Concatenation {
    pub(super) dim: usize,
    pub(super) pieces: Vec<Piece>,
    /// If it is known only with numbers in place of symbols whether this is one: the extents that have them.
    pub(super) symbolic: Vec<Extent>,
}

/// A buffer that is moved as a whole.
#[derive(Clone)]
pub(super) struct Piece {
    pub(super) from: BufferId,
    /// Where it begins along the dim; `None` if that has symbols.
    offset: Option<usize>,
    /// The stage that moves it.
    stage: Stage,
}

/// The buffers of a nest that are concatenations of some of those on `grids`.
pub(super) fn concatenations(
    nest: &Nest,
    grids: &FxHashMap<BufferId, OnGrid>,
) -> FxHashMap<BufferId, Concatenation> {
    let mut writers: FxHashMap<BufferId, Vec<&Stage>> = FxHashMap::default();
    if grids.is_empty() {
        return FxHashMap::default();
    }
    for stage in &nest.stages {
        writers.entry(stage.target).or_default().push(stage);
    }
    let several = writers.into_iter().filter(|(_, stages)| stages.len() > 1);
    let of = |buffer, stages: &[&Stage]| {
        let found = Concatenation::of(nest, buffer, stages)?;
        found.is_on_one_of(grids).then_some((buffer, found))
    };
    several
        .filter_map(|(buffer, stages)| of(buffer, &stages))
        .collect()
}

impl Concatenation {
    /// The concatenation that all these stages, which write `buffer`, make.
    fn of(nest: &Nest, buffer: BufferId, stages: &[&Stage]) -> Option<Concatenation> {
        let target = nest.buf(buffer);
        let is_moved = |d: &usize| {
            let mut at = stages.iter().filter_map(|stage| stage.at.get(*d));
            at.any(|x| !matches!(x.kind(), Kind::Axis(_)))
        };
        let dim = (0..target.shape.len()).find(is_moved)?;
        let mut symbolic = Vec::new();
        let pieces = stages
            .iter()
            .map(|stage| Piece::of(stage, &target.shape, dim, &mut symbolic));
        let mut pieces: Vec<Piece> = pieces.collect::<Option<_>>()?;
        if target.role != Role::Temporary {
            return None;
        }
        let extents = pieces.iter().map(|piece| piece.stage.domain[dim].extent);
        let along: Vec<Extent> = extents.chain([target.shape[dim]]).collect();
        let has_symbols = |piece: &Piece| piece.offset.is_none();
        if pieces.iter().any(has_symbols) || along.iter().any(|e| e.is_symbolic()) {
            symbolic.extend(along);
        }
        if !symbolic.is_empty() {
            return Some(Concatenation {
                dim,
                pieces,
                symbolic,
            });
        }
        pieces.sort_by_key(|piece| piece.offset);
        let mut end = 0;
        for piece in &pieces {
            let follows = piece.offset == Some(end);
            end += piece.stage.domain[dim]
                .extent
                .number()
                .filter(|_| follows)?;
        }
        let is_whole = target.shape[dim] == end;
        is_whole.then_some(Concatenation {
            dim,
            pieces,
            symbolic,
        })
    }

    /// Whether codes of all pieces stand for the same values.
    fn is_on_one_of(&self, grids: &FxHashMap<BufferId, OnGrid>) -> bool {
        let first = self.pieces.first().and_then(|piece| grids.get(&piece.from));
        let is_same = |of: &OnGrid| first.is_some_and(|first| first.grid().is_same(of.grid()));
        let mut pieces = self.pieces.iter();
        pieces.all(|piece| grids.get(&piece.from).is_some_and(is_same))
    }

    /// The stages that move `from`, one buffer for each piece, to the places of the pieces in `to`.
    pub(super) fn moves(&self, nest: &mut Nest, to: BufferId, from: &[BufferId]) -> Vec<Stage> {
        let mut stages = Vec::with_capacity(self.pieces.len());
        for (piece, from) in self.pieces.iter().zip(from) {
            let extents: Vec<Extent> = piece.stage.domain.iter().map(|a| a.extent).collect();
            let domain = nest.axes(&extents);
            let points: Vec<Scalar> = domain.iter().map(|a| Scalar::axis(a.id)).collect();
            let mut at = points.clone();
            if let Some(offset) = piece.offset.filter(|offset| *offset > 0) {
                at[self.dim] = at[self.dim].clone() + index(offset as i64);
            }
            stages.push(Stage {
                value: nest.load(*from, points),
                domain,
                target: to,
                at,
                mode: Mode::Set,
                layers: piece.stage.layers.clone(),
                group: None,
            });
        }
        stages
    }
}

impl Piece {
    /// The piece that `stage` moves into a buffer of this shape, if it fills all dims but `dim`. Extents that only numbers in
    /// place of symbols tell to be equal become some of `symbolic`.
    fn of(
        stage: &Stage,
        shape: &[Extent],
        dim: usize,
        symbolic: &mut Vec<Extent>,
    ) -> Option<Piece> {
        let Kind::Load { buffer, at } = stage.value.kind() else {
            return None;
        };
        let is_axis = |x: &Scalar, axis: &Axis| *x == Scalar::axis(axis.id);
        let is_whole = at.len() == stage.domain.len()
            && at
                .iter()
                .zip(&stage.domain)
                .all(|(x, axis)| is_axis(x, axis));
        let is_plain = stage.mode == Mode::Set && stage.group.is_none() && is_whole;
        if !is_plain || stage.at.len() != stage.domain.len() || stage.at.len() != shape.len() {
            return None;
        }
        let mut offset = Some(0);
        for (d, (x, axis)) in stage.at.iter().zip(&stage.domain).enumerate() {
            match x.kind() {
                Kind::Binary(Binary::Add, a, b) if d == dim && is_axis(a, axis) => {
                    offset = b.as_index().and_then(|b| usize::try_from(b).ok());
                }
                _ if !is_axis(x, axis) => return None,
                _ if d == dim || axis.extent == shape[d] => {}
                _ if axis.extent.is_symbolic() || shape[d].is_symbolic() => {
                    symbolic.extend([axis.extent, shape[d]]);
                }
                _ => return None,
            }
        }
        Some(Piece {
            from: *buffer,
            offset,
            stage: stage.clone(),
        })
    }
}
