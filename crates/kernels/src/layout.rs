//! Layouts: by which constant operands that were packed for one kernel can be used by another.

use crate::geometry::{ColumnPanel, parts};
use crate::grouped_tile::Shape;
use crate::prepack_coded::MANY_VECTORS;
use crate::winograd_tile::Windows;
use crate::{Code, Element, Isa, PreparedContraction};

/// Everything that packing an operand depends on besides its elements: packed operands of equal layouts and equal
/// elements are the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Layout(Kind);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Contraction(Box<Side>),
    /// The columns of a [`GroupedProduct`](crate::GroupedProduct).
    Grouped {
        shape: Shape,
        code: Code,
        /// The strides of the columns and of `k` among the codes.
        steps: [usize; 2],
    },
    /// The windows of a [`WinogradConvolution`](crate::WinogradConvolution), and how many columns a panel has.
    Winograd(Windows, usize),
}

/// An operand of a contraction.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Side {
    element: Element,
    isa: Isa,
    columns: bool,
    /// The `k` of a step, and the steps.
    steps: [usize; 2],
    lanes: usize,
    points: Box<[u32]>,
    offsets: Box<[u32]>,
    /// [`Overlap::first`](crate::words::Overlap::first).
    first: Option<Box<[u32]>>,
    /// The extent of each axis of the batch, and how it steps in the operand and among the packed copies.
    batch: Vec<[usize; 3]>,
    /// Where each panel begins, its columns or rows, and its vectors.
    panels: Vec<[usize; 3]>,
    /// Whether coded elements stay coded.
    stays_coded: bool,
}

impl Layout {
    /// The layout of the columns of a [`GroupedProduct`](crate::GroupedProduct), whose `steps` along columns and along `k` are
    /// these.
    pub(crate) fn grouped(shape: Shape, code: Code, steps: [usize; 2]) -> Layout {
        Layout(Kind::Grouped { shape, code, steps })
    }

    /// The layout of the windows of a [`WinogradConvolution`](crate::WinogradConvolution) in panels of `width` columns.
    pub(crate) fn winograd(windows: Windows, width: usize) -> Layout {
        Layout(Kind::Winograd(windows, width))
    }
}

impl PreparedContraction {
    /// The layout of the left operand when it is packed.
    pub fn left_layout(&self) -> Layout {
        self.layout(self.exchanged)
    }

    /// The layout of the right operand when it is packed.
    pub fn right_layout(&self) -> Layout {
        self.layout(!self.exchanged)
    }

    fn layout(&self, columns: bool) -> Layout {
        let side = if columns { &self.columns } else { &self.rows };
        let [from, to] = if columns { [1, 4] } else { [0, 3] };
        let batch = self.batch.axes().iter();
        let panels = match columns {
            true => {
                let panels = self.packed.panels.iter();
                let numbers =
                    |p: &ColumnPanel| [p.first_column, p.columns, p.vectors].map(|n| n as usize);
                panels.map(numbers).collect()
            }
            false => {
                let panels = parts(self.rows.points.len(), self.row_panels);
                panels.map(|rows| [rows.start, rows.len(), 0]).collect()
            }
        };
        Layout(Kind::Contraction(Box::new(Side {
            element: self.element,
            isa: self.isa,
            columns,
            steps: [self.group, self.k],
            lanes: self.lanes,
            points: side.points.clone(),
            offsets: side.offsets.clone(),
            first: self.overlap.as_ref().map(|overlap| overlap.first.clone()),
            batch: batch
                .map(|axis| [axis.extent, axis.strides[from], axis.strides[to]])
                .collect(),
            panels,
            stays_coded: self.stays_coded(columns),
        })))
    }

    /// Whether tasks make elements of a coded operand themselves, since they do not do it too often.
    pub(crate) fn stays_coded(&self, columns: bool) -> bool {
        columns || self.packed.vectors.len() >= MANY_VECTORS
    }
}
