//! A uniform grid of boxes: finds whether any of many boxes overlaps another one by too much, without a look at most of those
//! that lie elsewhere.
//!
//! A box is put into the cell in which its center lies, and each cell knows the box around all of its boxes. Cells, and the
//! boxes of a cell, are compared several at a time, by coordinates side by side.

use super::boxes::{Overlap, Rect, Threshold};
use super::real::Real;
use crate::OpError;
use vinelift_tensor::memory::{filled, push};

/// The boxes that are compared at a time.
const LANES: usize = 8;

/// The boxes of a cell, if they are spread evenly, when the grid is made.
const PER_CELL: usize = 16;

/// Boxes, all of which are compared to others in the same way.
pub(super) struct Grid<R> {
    overlap: Overlap<R>,
    boxes: Vec<Rect<R>>,
    /// The number of boxes from which on it gets more cells.
    most: usize,
    places: Places<R>,
    /// For each place, the number of its cell, counted from 1; 0 if it has no box.
    numbers: Vec<u32>,
    cells: Vec<Cell<R>>,
    /// The box around those of each cell.
    bounds: Vec<Block<R>>,
}

impl<R: Real> Grid<R> {
    pub(super) fn new(overlap: Overlap<R>) -> Grid<R> {
        Grid {
            overlap,
            boxes: Vec::new(),
            most: 0,
            places: Places::of(&[]),
            numbers: Vec::new(),
            cells: Vec::new(),
            bounds: Vec::new(),
        }
    }

    /// Adds a box.
    pub(super) fn add(&mut self, rect: Rect<R>) -> Result<(), OpError> {
        let area = rect.area(self.overlap.pixel);
        // Of a box with another area every intersection over union is 0 or NaN.
        let may_overlap = area > R::of(0.0) && area.to_f64().is_finite();
        if !may_overlap {
            return Ok(());
        }
        push(&mut self.boxes, rect)?;
        if self.boxes.len() <= self.most {
            return self.put(&rect);
        }
        self.most = 4 * self.boxes.len().max(PER_CELL);
        self.places = Places::of(&self.boxes);
        self.numbers = filled(self.places.side * self.places.side, 0)?;
        self.cells.clear();
        self.bounds.clear();
        (0..self.boxes.len()).try_for_each(|k| {
            let rect = self.boxes[k];
            self.put(&rect)
        })
    }

    /// Puts a box into its cell.
    fn put(&mut self, rect: &Rect<R>) -> Result<(), OpError> {
        let place = self.places.of_box(rect);
        if self.numbers[place] == 0 {
            if self.cells.len().is_multiple_of(LANES) {
                push(&mut self.bounds, Block::none())?;
            }
            push(&mut self.cells, Cell::default())?;
            self.numbers[place] = u32::try_from(self.cells.len()).unwrap_or(u32::MAX);
        }
        let cell = self.numbers[place] as usize - 1;
        self.bounds[cell / LANES].widen(cell % LANES, rect);
        self.cells[cell].add(rect, rect.area(self.overlap.pixel))
    }

    /// Whether the intersection over union of `rect` and a box exceeds the threshold, which 0 does not exceed.
    pub(super) fn has_above(&self, rect: &Rect<R>, threshold: &Threshold<R>) -> bool {
        let Overlap { pixel, touching } = self.overlap;
        let area = rect.area(pixel);
        let exceeds = |block: &Block<R>| {
            any_lane(|lane| {
                let common = block.intersection(lane, rect, pixel);
                let iou = common / (area + block.areas[lane] - common);
                threshold.is_exceeded_by(iou) & !(touching & rect.is_apart(&block.rect(lane)))
            })
        };
        let mut cells = self.bounds.iter().zip(self.cells.chunks(LANES));
        area > R::of(0.0)
            && cells.any(|(bounds, cells)| {
                let meets = |lane| bounds.intersection(lane, rect, pixel) > R::of(0.0);
                let mut cells = cells.iter().enumerate();
                any_lane(meets)
                    && cells.any(|(lane, cell)| meets(lane) && cell.blocks.iter().any(exceeds))
            })
    }
}

/// The places of the cells: a square of squares around the centers of some boxes. Other centers belong to the nearest one.
struct Places<R> {
    /// The places along a side.
    side: usize,
    start: [R; 2],
    /// The places per unit of each coordinate.
    scale: [R; 2],
}

impl<R: Real> Places<R> {
    fn of(boxes: &[Rect<R>]) -> Places<R> {
        let side = (boxes.len() / PER_CELL).isqrt().max(1);
        let mut centers = boxes.iter().map(center);
        let first = centers.next().unwrap_or([R::of(0.0); 2]);
        let each = |[a, b]: [R; 2], [c, d]: [R; 2], f: fn(R, R) -> R| [f(a, c), f(b, d)];
        let (start, end) = centers.fold((first, first), |(start, end), center| {
            (each(start, center, R::least), each(end, center, R::most))
        });
        let scale = [0, 1].map(|d| R::of(side as f64) / (end[d] - start[d]));
        Places { side, start, scale }
    }

    fn of_box(&self, rect: &Rect<R>) -> usize {
        let center = center(rect);
        let [x, y] = [0, 1].map(|d| {
            let place = (center[d] - self.start[d]) * self.scale[d];
            (place.to_f64() as usize).min(self.side - 1)
        });
        y * self.side + x
    }
}

fn center<R: Real>(rect: &Rect<R>) -> [R; 2] {
    let middle = |a: R, b: R| a * R::of(0.5) + b * R::of(0.5);
    [middle(rect.x0, rect.x1), middle(rect.y0, rect.y1)]
}

/// The boxes of a place.
struct Cell<R> {
    blocks: Vec<Block<R>>,
    count: usize,
}

impl<R> Default for Cell<R> {
    fn default() -> Cell<R> {
        Cell {
            blocks: Vec::new(),
            count: 0,
        }
    }
}

impl<R: Real> Cell<R> {
    fn add(&mut self, rect: &Rect<R>, area: R) -> Result<(), OpError> {
        let lane = self.count % LANES;
        if lane == 0 {
            push(&mut self.blocks, Block::none())?;
        }
        self.count += 1;
        if let Some(block) = self.blocks.last_mut() {
            block.widen(lane, rect);
            block.areas[lane] = area;
        }
        Ok(())
    }
}

/// Some boxes with their areas, coordinates side by side.
struct Block<R> {
    /// `x0, y0, x1, y1`
    corners: [[R; LANES]; 4],
    areas: [R; LANES],
}

impl<R: Real> Block<R> {
    /// Boxes that have nothing in common with any.
    fn none() -> Block<R> {
        let [high, low] = [f64::INFINITY, f64::NEG_INFINITY].map(|x| [R::of(x); LANES]);
        Block {
            corners: [high, high, low, low],
            areas: [R::of(0.0); LANES],
        }
    }

    #[inline]
    fn rect(&self, lane: usize) -> Rect<R> {
        let [x0, y0, x1, y1] = &self.corners;
        Rect::from_corners([x0[lane], y0[lane], x1[lane], y1[lane]])
    }

    /// Makes a box the one around itself and `rect`.
    fn widen(&mut self, lane: usize, rect: &Rect<R>) {
        let [x0, y0, x1, y1] = &mut self.corners;
        x0[lane] = x0[lane].least(rect.x0);
        y0[lane] = y0[lane].least(rect.y0);
        x1[lane] = x1[lane].most(rect.x1);
        y1[lane] = y1[lane].most(rect.y1);
    }

    /// The area that a box has in common with `rect`. If it is not above 0, neither is that of a box inside this one: each step
    /// is monotone, rounding too.
    #[inline]
    fn intersection(&self, lane: usize, rect: &Rect<R>, pixel: R) -> R {
        rect.intersection(&self.rect(lane), pixel)
    }
}

/// Whether any lane is as asked for; all are looked at, side by side.
#[inline]
fn any_lane(is: impl Fn(usize) -> bool) -> bool {
    (0..LANES).fold(false, |any, lane| any | is(lane))
}
