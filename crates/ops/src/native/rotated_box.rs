//! Boxes that are turned about their centers.

/// A point or a direction.
type Point = [f64; 2];

/// A box by its center, its extents before it is turned, and its corners in turn.
#[derive(Clone, Copy, Debug)]
pub(super) struct RotatedBox {
    center: Point,
    area: f64,
    /// From the center.
    corners: [Point; 4],
}

impl RotatedBox {
    /// From center, width, height and angle in radians, which turns the x axis to the y axis.
    pub(super) fn new([x, y, width, height, angle]: [f64; 5]) -> RotatedBox {
        let (sin, cos) = angle.sin_cos();
        let corner = |sx: f64, sy: f64| {
            let (dx, dy) = (sx * width / 2.0, sy * height / 2.0);
            [dx * cos - dy * sin, dx * sin + dy * cos]
        };
        RotatedBox {
            center: [x, y],
            area: width * height,
            corners: [
                corner(-1.0, -1.0),
                corner(1.0, -1.0),
                corner(1.0, 1.0),
                corner(-1.0, 1.0),
            ],
        }
    }

    /// Area of the intersection over area of the union; 0 if either is empty.
    pub(super) fn iou(&self, other: &RotatedBox) -> f64 {
        if self.area <= 0.0 || other.area <= 0.0 {
            return 0.0;
        }
        // Near the centers there are more digits for the differences that count.
        let shift = minus(other.center, self.center);
        let mut polygon: Vec<Point> = other.corners.iter().map(|c| plus(*c, shift)).collect();
        for k in 0..4 {
            polygon = on_the_left(&polygon, self.corners[k], self.corners[(k + 1) % 4]);
        }
        let common = area(&polygon);
        common / (self.area + other.area - common)
    }
}

/// The part of a convex polygon to the left of the line from `a` to `b`.
fn on_the_left(polygon: &[Point], a: Point, b: Point) -> Vec<Point> {
    let side = |p: Point| cross(minus(b, a), minus(p, a));
    let mut part = Vec::with_capacity(polygon.len() + 1);
    for (k, &p) in polygon.iter().enumerate() {
        let next = polygon[(k + 1) % polygon.len()];
        let (here, there) = (side(p), side(next));
        if here >= 0.0 {
            part.push(p);
        }
        if here > 0.0 && there < 0.0 || here < 0.0 && there > 0.0 {
            let t = here / (here - there);
            let step = minus(next, p);
            part.push(plus(p, [t * step[0], t * step[1]]));
        }
    }
    part
}

/// The area of a convex polygon.
fn area(polygon: &[Point]) -> f64 {
    let [first, rest @ ..] = polygon else {
        return 0.0;
    };
    let triangles = rest.windows(2);
    let twice = triangles.map(|t| cross(minus(t[0], *first), minus(t[1], *first)).abs());
    twice.sum::<f64>() / 2.0
}

fn plus(a: Point, b: Point) -> Point {
    [a[0] + b[0], a[1] + b[1]]
}

fn minus(a: Point, b: Point) -> Point {
    [a[0] - b[0], a[1] - b[1]]
}

fn cross(a: Point, b: Point) -> f64 {
    a[0] * b[1] - a[1] * b[0]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::{FRAC_PI_2, FRAC_PI_4};

    fn iou(a: [f64; 5], b: [f64; 5]) -> f64 {
        let (a, b) = (RotatedBox::new(a), RotatedBox::new(b));
        let found = a.iou(&b);
        assert!((found - b.iou(&a)).abs() < 1e-12);
        found
    }

    #[test]
    fn of_known_figures() {
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} {b}");
        let square = [0.0, 0.0, 2.0, 2.0, 0.0];
        near(iou(square, square), 1.0);
        near(iou(square, [1.0, 0.0, 2.0, 2.0, 0.0]), 1.0 / 3.0);
        // A regular octagon.
        let turned = [0.0, 0.0, 2.0, 2.0, FRAC_PI_4];
        let octagon = 8.0 * (2f64.sqrt() - 1.0);
        near(iou(square, turned), octagon / (8.0 - octagon));
        // A cross.
        let bar = [5.0, 5.0, 4.0, 1.0, 0.3];
        near(iou(bar, [5.0, 5.0, 4.0, 1.0, 0.3 + FRAC_PI_2]), 1.0 / 7.0);
        near(iou(square, [0.0, 0.0, 1.0, 1.0, 0.7]), 0.25);
        near(iou(square, [2.0, 0.0, 2.0, 2.0, 0.0]), 0.0);
        near(iou(square, [9.0, 0.0, 2.0, 2.0, 1.0]), 0.0);
        near(iou(square, [0.0, 0.0, 0.0, 2.0, 0.0]), 0.0);
    }

    #[test]
    fn nothing_comes_of_nan() {
        let square = RotatedBox::new([0.0, 0.0, 2.0, 2.0, 0.0]);
        for k in 0..5 {
            for odd in [f64::NAN, f64::INFINITY, 1e300] {
                let mut b = [0.0, 0.0, 2.0, 2.0, 0.0];
                b[k] = odd;
                let found = square.iou(&RotatedBox::new(b));
                assert!(found.is_nan() || (0.0..=1.0).contains(&found), "{found}");
            }
        }
    }
}
