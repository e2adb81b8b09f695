//! Convolutions and pooling.

use super::elementwise::function;
use super::in_place::update;
use crate::big_graphs::grow::{Grow, Value};
use vinelift::ElementType::{F32, I64};

/// How a window moves over two dims, or one.
struct Window {
    kernel: Vec<usize>,
    strides: Vec<usize>,
    begin: Vec<usize>,
    end: Vec<usize>,
    dilations: Vec<usize>,
}

impl Window {
    fn any(grow: &mut Grow<'_>, dims: usize) -> Window {
        let mut list = |values: &[usize]| -> Vec<usize> {
            (0..dims).map(|_| grow.choices.of(values)).collect()
        };
        let kernel = list(&[1, 3, 3, 5, 2]);
        let (strides, dilations) = (list(&[1, 1, 1, 2]), list(&[1, 1, 1, 2]));
        let mut pads = || -> Vec<usize> {
            kernel
                .iter()
                .map(|k| grow.choices.within(0, k.div_ceil(2)))
                .collect()
        };
        let (begin, end) = (pads(), pads());
        Window {
            kernel,
            strides,
            begin,
            end,
            dilations,
        }
    }

    fn attributes(&self) -> String {
        let [strides, begin, end, dilations] =
            [&self.strides, &self.begin, &self.end, &self.dilations].map(|list| join(list));
        format!(
            "strides=\"{strides}\" pads_begin=\"{begin}\" pads_end=\"{end}\" dilations=\"{dilations}\" auto_pad=\"explicit\""
        )
    }

    /// The extents of what a convolution gives.
    fn outputs(&self, extents: &[usize]) -> Option<Vec<usize>> {
        let output = |(k, extent): (usize, &usize)| {
            let reach = self.dilations[k] * (self.kernel[k] - 1) + 1;
            let room = (extent + self.begin[k] + self.end[k]).checked_sub(reach)?;
            Some(room / self.strides[k] + 1)
        };
        extents.iter().enumerate().map(output).collect()
    }

    fn points(&self) -> usize {
        self.kernel.iter().product()
    }
}

fn join(list: &[usize]) -> String {
    let list: Vec<String> = list.iter().map(ToString::to_string).collect();
    list.join(",")
}

fn image(grow: &mut Grow<'_>) -> Option<Value> {
    let rank = if grow.choices.chance(85) { 4 } else { 3 };
    let x = grow.pick(&[F32], rank..=rank)?;
    (x.bytes() <= 1 << 20).then_some(x)
}

pub(super) fn convolution(grow: &mut Grow<'_>) -> Option<()> {
    let x = image(grow)?;
    let (window, channels) = (Window::any(grow, x.rank() - 2), x.shape[1]);
    let count = grow.choices.of(&[3, 8, 16, 17, 32, 64, channels]);
    let outputs = window.outputs(&x.shape[2..])?;
    let shape = [&[x.shape[0], count], outputs.as_slice()].concat();
    let length = channels * window.points();
    grow.charge(2 * length * shape.iter().product::<usize>())?;
    let weights = [&[count, channels], window.kernel.as_slice()].concat();
    let weights = grow.weights(F32, &weights, length);
    let y = grow.one(
        "Convolution",
        "opset1",
        window.attributes(),
        &[&x, &weights],
        &shape,
    )?;
    finish(grow, &x, y)
}

pub(super) fn grouped(grow: &mut Grow<'_>) -> Option<()> {
    let x = image(grow)?;
    let (window, channels) = (Window::any(grow, x.rank() - 2), x.shape[1]);
    let groups = if grow.choices.chance(60) {
        channels
    } else {
        grow.choices.of(&[1, 2, 4, 8])
    };
    if !channels.is_multiple_of(groups) {
        return None;
    }
    let count = if groups == channels {
        grow.choices.of(&[1, 1, 2])
    } else {
        grow.choices.of(&[4, 8])
    };
    let outputs = window.outputs(&x.shape[2..])?;
    let shape = [&[x.shape[0], groups * count], outputs.as_slice()].concat();
    let length = channels / groups * window.points();
    grow.charge(2 * length * shape.iter().product::<usize>())?;
    let weights = [
        &[groups, count, channels / groups],
        window.kernel.as_slice(),
    ]
    .concat();
    let weights = grow.weights(F32, &weights, length);
    let y = grow.one(
        "GroupConvolution",
        "opset1",
        window.attributes(),
        &[&x, &weights],
        &shape,
    )?;
    finish(grow, &x, y)
}

pub(super) fn deconvolution(grow: &mut Grow<'_>) -> Option<()> {
    let x = image(grow)?;
    let (window, channels) = (Window::any(grow, x.rank() - 2), x.shape[1]);
    let count = grow.choices.of(&[3, 8, 16]);
    let extent = |(k, extent): (usize, &usize)| {
        let full =
            window.strides[k] * (extent - 1) + window.dilations[k] * (window.kernel[k] - 1) + 1;
        full.checked_sub(window.begin[k] + window.end[k])
            .filter(|extent| *extent > 0)
    };
    let outputs = x.shape[2..]
        .iter()
        .enumerate()
        .map(extent)
        .collect::<Option<Vec<usize>>>()?;
    let shape = [&[x.shape[0], count], outputs.as_slice()].concat();
    let length = channels * window.points();
    grow.charge(2 * length * shape.iter().product::<usize>())?;
    let weights = [&[channels, count], window.kernel.as_slice()].concat();
    let weights = grow.weights(F32, &weights, length);
    let y = grow.one(
        "ConvolutionBackpropData",
        "opset1",
        window.attributes(),
        &[&x, &weights],
        &shape,
    )?;
    finish(grow, &x, y)
}

/// A bias, a function, a sum with the input, or an update of it.
fn finish(grow: &mut Grow<'_>, x: &Value, y: Value) -> Option<()> {
    let bound = 4.0 * x.bound;
    let mut y = grow.keep(y.bounded(bound))?;
    if grow.choices.chance(60) {
        let mut channels = vec![1; y.rank()];
        channels[1] = y.shape[1];
        let bias = grow.weights(F32, &channels, 1);
        y = grow.one("Add", "opset1", "", &[&y, &bias], &y.shape)?;
        if grow.choices.chance(50) {
            y = function(grow, &y)?;
        }
        if y.shape == x.shape && grow.choices.chance(40) {
            y = grow.one("Add", "opset1", "", &[&y, x], &y.shape)?;
        }
        y = grow.keep(y)?;
    }
    if grow.choices.chance(25)
        && let Some(z) = update(grow, x, &y)
    {
        grow.keep(z)?;
    }
    Some(())
}

pub(super) fn pool(grow: &mut Grow<'_>) -> Option<()> {
    let x = grow.pick(&[F32], 4..=4)?;
    let mut window = Window::any(grow, 2);
    window.kernel = window.kernel.iter().map(|k| (*k).max(2)).collect();
    window.dilations = vec![1; 2];
    for k in 0..2 {
        let most = window.kernel[k] / 2;
        window.begin[k] = window.begin[k].min(most);
        window.end[k] = window.end[k].min(most);
    }
    let outputs = window.outputs(&x.shape[2..])?;
    let shape = [&x.shape[..2], outputs.as_slice()].concat();
    let [kernel, strides, begin, end] =
        [&window.kernel, &window.strides, &window.begin, &window.end].map(|list| join(list));
    let attributes = format!(
        "kernel=\"{kernel}\" strides=\"{strides}\" pads_begin=\"{begin}\" pads_end=\"{end}\" auto_pad=\"explicit\" rounding_type=\"floor\""
    );
    if grow.choices.chance(50) {
        let exclude = grow.choices.chance(50);
        let attributes = format!("{attributes} exclude-pad=\"{exclude}\"");
        let y = grow.one("AvgPool", "opset1", attributes, &[&x], &shape)?;
        return grow.keep(y).map(drop);
    }
    let attributes =
        format!("{attributes} dilations=\"1,1\" index_element_type=\"i64\" axis=\"0\"");
    let outputs = [(F32, shape.as_slice()), (I64, shape.as_slice())];
    let both = grow.several("MaxPool", "opset8", attributes, &[&x], &outputs)?;
    let keep = if grow.choices.chance(30) { 2 } else { 1 };
    grow.values.extend(both.into_iter().take(keep));
    Some(())
}
