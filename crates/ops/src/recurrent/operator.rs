//! A cell or a sequence of cells as an operator.

use super::network::Network;
use super::{cell, sequence, shapes};
use crate::{Infer, Lower, Op, OpError, TensorType};

impl Op for Network {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        shapes::infer(self, cx)
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        match self.direction {
            None => cell::lower(self, cx),
            Some(direction) => sequence::lower(self, direction, cx),
        }
    }
}
