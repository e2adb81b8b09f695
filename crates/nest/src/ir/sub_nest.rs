//! Stages of a nest as a nest of their own.

use crate::ir::{
    Axis, AxisId, BufferId, Kind, Nest, Role, Scalar, Site, SiteId, Stage, Wrap, rebound,
    rewrite_stage, rewrite_those, visit_folds,
};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// Stages of a nest as a nest of their own.
#[derive(Clone, Debug)]
pub struct SubNest {
    /// The stages, with the buffers that they use. Temporaries of the whole nest that are read or
    /// written here keep their role.
    pub nest: Nest,
    /// The buffer of the whole nest behind each buffer of `nest`.
    pub buffers: Vec<BufferId>,
}

impl SubNest {
    /// The buffer of `nest` that is this buffer of the whole nest, if the stages use it.
    pub fn local(&self, buffer: BufferId) -> Option<BufferId> {
        let position = self.buffers.iter().position(|b| *b == buffer)?;
        u32::try_from(position).ok().map(BufferId)
    }
}

impl Nest {
    /// The stages of a range with just the buffers, layers and sites that they use.
    pub fn extract(&self, range: Range<usize>) -> SubNest {
        let stages = &self.stages[range];
        let mut buffers: Vec<BufferId> = Vec::new();
        for stage in stages {
            for buffer in stage.loads().into_iter().chain([stage.target]) {
                if !buffers.contains(&buffer) {
                    buffers.push(buffer);
                }
            }
        }
        let by_buffer: FxHashMap<BufferId, BufferId> =
            buffers.iter().copied().zip((0..).map(BufferId)).collect();
        let mut nest = Nest {
            symbols: self.symbols.clone(),
            relations: self.relations.clone(),
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
                    Scalar::wrap(Wrap {
                        site,
                        ..Wrap::clone(w)
                    })
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
        if nest.is_symbolic() && nest.symbolic_extents().is_empty() {
            nest.symbols.clear();
            nest.relations.clear();
        }
        SubNest { nest, buffers }
    }

    /// The nest without its names, axes numbered as they come: equal for kernels that differ only in
    /// where they stand, whose code is the same.
    pub fn canonical(&self) -> Nest {
        let mut nest = Nest {
            symbols: self.symbols.clone(),
            relations: self.relations.clone(),
            ..Nest::default()
        };
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
