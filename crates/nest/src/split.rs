//! Kernels: runs of stages that become one native function.

use crate::nest::{Axis, BufferId, Nest, Role, Site, SiteId, Stage};
use crate::parts::{dim_apart, may_collide};
use crate::rewrite::{loaded, rebound, rewrite_stage, rewrite_those, visit_folds, visit_stage};
use crate::scalar::{AxisId, Kind, Scalar, Wrap};
use rustc_hash::FxHashMap;
use std::ops::{Range, RangeFrom};

/// Stages of a nest as a nest of their own.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// The stages, with the buffers that they use. Temporaries of the whole nest that are read or
    /// written here keep their role.
    pub nest: Nest,
    /// The buffer of the whole nest behind each buffer of `nest`.
    pub buffers: Vec<BufferId>,
}

/// The stages of each kernel of a nest, in the order in which they run: stages of the same layer that follow
/// each other stay together, but for those that are kernels of their own. Those are also all that take turns.
/// Stages that could not be shared out together are not together either, if their target is large.
pub fn split(nest: &Nest, is_alone: impl Fn(&Stage) -> bool) -> Vec<Range<usize>> {
    let alone = nest.stages.iter();
    let alone: Vec<bool> = alone
        .map(|stage| stage.group.is_some() || is_serial(nest, stage) || is_alone(stage))
        .collect();
    let mut kernels = Vec::new();
    let mut start = 0;
    for end in 1..=nest.stages.len() {
        let owner = |i: usize| nest.stages[i].layers.first();
        let ends = end == nest.stages.len() || alone[end - 1] || alone[end];
        if ends || owner(end) != owner(start) || owner(start).is_none() {
            kernels.push(start..end);
            start = end;
        }
    }
    kernels
}

/// The least bytes of a large target: what a cache of one thread does not hold, so that it makes no difference
/// which thread wrote it.
const LARGE: usize = 2 << 20;

/// Whether a stage is one that threads cannot share, nor what is done to its large target before.
fn is_serial(nest: &Nest, stage: &Stage) -> bool {
    let bytes = nest.buf(stage.target).byte_len();
    may_collide(stage) && dim_apart(stage).is_none() && bytes.is_none_or(|bytes| bytes >= LARGE)
}

impl Nest {
    /// The stages of a range with just the buffers, layers and sites that they use.
    pub fn extract(&self, range: Range<usize>) -> Kernel {
        let stages = &self.stages[range];
        let mut buffers: Vec<BufferId> = Vec::new();
        for stage in stages {
            for buffer in loaded(stage).into_iter().chain([stage.target]) {
                if !buffers.contains(&buffer) {
                    buffers.push(buffer);
                }
            }
        }
        let by_buffer: FxHashMap<BufferId, BufferId> =
            buffers.iter().copied().zip((0..).map(BufferId)).collect();
        let mut nest = Nest {
            next_axis: self.next_axis,
            ..Nest::default()
        };
        nest.buffers = buffers.iter().map(|b| self.buf(*b).clone()).collect();
        let mut sites: Vec<SiteId> = Vec::new();
        for stage in stages {
            let mut stage = stage.clone();
            stage.target = by_buffer[&stage.target];
            let wanted = |x: &Scalar| x.loads() || x.wraps();
            rewrite_those(&mut stage, wanted, &mut |x| match x.kind() {
                Kind::Load { buffer, at } => Scalar::load(by_buffer[buffer], at.clone(), x.ty()),
                Kind::Wrap(w) => {
                    let known = sites.iter().position(|s| *s == w.site);
                    if known.is_none() {
                        sites.push(w.site);
                    }
                    let site = SiteId(known.unwrap_or(sites.len() - 1) as u32);
                    Scalar::wrap(Wrap { site, ..w.clone() })
                }
                _ => x,
            });
            for layer in &mut stage.layers {
                *layer = nest.adopt(&self.layers[layer.0 as usize]);
            }
            nest.stages.push(stage);
        }
        for site in sites {
            let Site { layer, input } = &self.sites[site.0 as usize];
            let layer = nest.adopt(&self.layers[layer.0 as usize]);
            nest.sites.push(Site {
                layer,
                input: input.clone(),
            });
        }
        Kernel { nest, buffers }
    }

    /// The buffers that the stages of a range load from, each once.
    pub fn read_in(&self, range: Range<usize>) -> Vec<BufferId> {
        let mut buffers: Vec<BufferId> = self.stages[range].iter().flat_map(loaded).collect();
        buffers.sort_unstable();
        buffers.dedup();
        buffers
    }

    /// How often the loops of a range of stages go round, folds included; saturates.
    pub fn points_in(&self, range: Range<usize>) -> usize {
        let points = |axes: &[Axis]| {
            axes.iter()
                .map(|a| a.extent)
                .fold(1usize, usize::saturating_mul)
        };
        let stages = self.stages[range].iter().map(|stage| {
            let mut folds = 1usize;
            visit_folds(stage, &mut |x| {
                if let Kind::Reduce { axes, .. } = x.kind() {
                    folds = folds.saturating_mul(points(axes).max(1));
                }
            });
            points(&stage.domain).saturating_mul(folds)
        });
        stages.fold(0, usize::saturating_add)
    }

    /// How many different scalars there are in all stages.
    pub fn size(&self) -> usize {
        let mut count = 0;
        for stage in &self.stages {
            visit_stage(stage, &mut |_| count += 1);
        }
        count
    }

    /// Puts a constant in place of every load of a buffer, in the stages of a range.
    pub fn replace_loads(&mut self, range: RangeFrom<usize>, by: &FxHashMap<BufferId, Scalar>) {
        for stage in &mut self.stages[range] {
            rewrite_those(stage, Scalar::loads, &mut |x| match x.kind() {
                Kind::Load { buffer, .. } => by.get(buffer).cloned().unwrap_or(x),
                _ => x,
            });
        }
    }

    /// Takes away the buffers from `length` on, which no stage may use.
    pub fn truncate_buffers(&mut self, length: usize) {
        for buffer in self.buffers.drain(length..) {
            self.names.remove(&buffer.name);
        }
    }

    /// The nest without its names, axes numbered as they come: equal for kernels that differ only in
    /// where they stand, whose code is the same.
    pub fn canonical(&self) -> Nest {
        let mut nest = Nest::new();
        for (i, b) in self.buffers.iter().enumerate() {
            let role = if matches!(b.role, Role::Temporary) {
                Role::Output
            } else {
                b.role.clone()
            };
            nest.buffer(&format!("b{i}"), b.ty, &b.shape, role);
        }
        let layer = nest.layer("", "");
        nest.sites = self
            .sites
            .iter()
            .map(|_| Site {
                layer,
                input: String::new(),
            })
            .collect();
        for stage in &self.stages {
            let stage = renumbered(&mut nest, stage);
            nest.stages.push(stage);
        }
        nest
    }
}

fn renumbered(nest: &mut Nest, stage: &Stage) -> Stage {
    let mut by_axis: FxHashMap<AxisId, Axis> = FxHashMap::default();
    let mut renew = |axes: &[Axis]| -> Vec<Axis> {
        axes.iter()
            .map(|a| *by_axis.entry(a.id).or_insert_with(|| nest.axis(a.extent)))
            .collect()
    };
    let domain = renew(&stage.domain);
    visit_folds(stage, &mut |x| {
        if let Kind::Reduce { axes, .. } = x.kind() {
            renew(axes);
        }
    });
    let mut stage = Stage {
        domain,
        layers: Vec::new(),
        ..stage.clone()
    };
    rewrite_stage(&mut stage, &mut |x| match x.kind() {
        Kind::Axis(id) => by_axis.get(id).map_or(x.clone(), |a| Scalar::axis(a.id)),
        _ => rebound(x, &by_axis),
    });
    stage
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::*;
    use vinelift_tensor::ElementType::F32;

    #[test]
    fn equal_kernels_have_equal_canonical_forms() {
        let mut nest = Nest::new();
        let x = nest.buffer("x", F32, &[4], Role::Input);
        let (t, y) = (
            nest.buffer("t", F32, &[4], Role::Temporary),
            nest.buffer("y", F32, &[4], Role::Output),
        );
        let (first, second) = (
            nest.layer("first", "Exp, opset1"),
            nest.layer("second", "Exp, opset1"),
        );
        nest.define(vec![first], t, |n, at| n.load(x, at.to_vec()).exp());
        nest.define(vec![second], y, |n, at| n.load(t, at.to_vec()).exp());
        let kernels = split(&nest, |_| false);
        assert_eq!(kernels, [0..1, 1..2]);
        let kernels = kernels.into_iter().map(|stages| nest.extract(stages));
        let kernels: Vec<Kernel> = kernels.collect();
        assert_eq!(kernels[1].buffers, [t, y]);
        assert_eq!(
            kernels[1].nest.to_string(),
            "temporary t: f32[4]\noutput y: f32[4]\nfor i<4: y[i] = exp(t[i])  # second\n"
        );
        assert_eq!(
            kernels[0].nest.canonical().stages,
            kernels[1].nest.canonical().stages
        );
    }

    #[test]
    fn stages_of_one_layer_stay_together() {
        let mut nest = Nest::new();
        let y = nest.buffer("y", F32, &[4], Role::Output);
        let layer = nest.layer("l", "Op, opset1");
        nest.define(vec![layer], y, |_, _| number(0.0, F32));
        nest.define(vec![layer], y, |_, _| number(1.0, F32));
        assert_eq!(split(&nest, |_| false).len(), 1);
    }
}
