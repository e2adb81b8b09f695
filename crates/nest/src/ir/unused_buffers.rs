//! Buffers that are left without use.

use crate::compiler_threads;
use crate::ir::{BufferId, Kind, Nest, Scalar, rewrite_those};

impl Nest {
    /// Takes away the buffers that no stage uses, except those that are `wanted`. Gives the new id of each buffer that
    /// stays.
    pub fn drop_unused_buffers(
        &mut self,
        wanted: impl IntoIterator<Item = BufferId>,
    ) -> Vec<Option<BufferId>> {
        let mut stays = vec![false; self.buffers.len()];
        let mut keep = |buffer: BufferId| stays[buffer.0 as usize] = true;
        wanted.into_iter().for_each(&mut keep);
        for stage in &self.stages {
            keep(stage.target);
            stage.loads().into_iter().for_each(&mut keep);
        }
        let mut ids = (0..).map(BufferId);
        let new_ids = stays
            .iter()
            .map(|stays| stays.then(|| ids.next()).flatten());
        let new_ids: Vec<Option<BufferId>> = new_ids.collect();
        let new_id = |buffer: &mut BufferId| {
            *buffer = new_ids[buffer.0 as usize].unwrap_or(*buffer);
        };
        compiler_threads::for_each(&mut self.stages, |stage| {
            new_id(&mut stage.target);
            rewrite_those(stage, Scalar::loads, &mut |x| match x.kind() {
                Kind::Load { buffer, at } => {
                    let mut buffer = *buffer;
                    new_id(&mut buffer);
                    Scalar::load(buffer, at.clone(), x.ty())
                }
                _ => x,
            });
        });
        let mut stays = stays.into_iter();
        let names = &mut self.names;
        self.buffers.retain(|buffer| {
            let stays = stays.next() == Some(true);
            if !stays {
                names.remove(&buffer.name);
            }
            stays
        });
        new_ids
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::verify;
    use crate::ir::parse;

    #[test]
    fn used_and_wanted_buffers_stay_in_their_order() {
        let mut nest = parse(
            "input x: f32[4]\ntemporary gone: f32[4]\ntemporary t: f32[4]\ninput wanted: f32[2]\noutput y: f32[4]\n\
             for i<4: t[i] = exp(x[i])\nfor i<4: y[i] = (t[i] + x[i])\n",
        )
        .unwrap();
        let before = nest.stage_texts();
        let new_ids = nest.drop_unused_buffers([BufferId(3)]);
        let names: Vec<&str> = nest.buffers.iter().map(|b| b.name.as_str()).collect();
        assert_eq!(names, ["x", "t", "wanted", "y"]);
        let [x, t, wanted, y] = [0, 1, 2, 3].map(|id| Some(BufferId(id)));
        assert_eq!(new_ids, [x, None, t, wanted, y]);
        assert_eq!(nest.stage_texts(), before);
        verify(&nest).unwrap();
    }
}
