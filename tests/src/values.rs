//! Tensors as text, and their comparison.

use vinelift::{ElementType, Tensor};

/// Reads `f32[2, 2] = 1, 2, 3, 4`. Strings are quoted, with `\"` and `\\` in them; booleans are `true`
/// and `false`.
pub fn parse_tensor(text: &str) -> Result<Tensor, String> {
    let (ty, rest) = text.split_once('[').ok_or("no shape")?;
    let (shape, values) = rest.split_once(']').ok_or("no end of the shape")?;
    let ty: ElementType = ty.trim().parse().map_err(|e| format!("{e}"))?;
    let extents = shape.split(',').map(str::trim).filter(|d| !d.is_empty());
    let shape: Vec<usize> = extents
        .map(|d| d.parse().map_err(|_| format!("bad extent `{d}`")))
        .collect::<Result<_, _>>()?;
    let values = values.trim().strip_prefix('=').ok_or("no `=`")?.trim();
    if ty == ElementType::String {
        return Tensor::from_strings(&shape, strings(values)?).map_err(|e| e.to_string());
    }
    let items: Vec<&str> = values
        .split(',')
        .map(str::trim)
        .filter(|v| !v.is_empty())
        .collect();
    let tensor = match ty {
        ElementType::Boolean => Tensor::from_bools(&shape, &numbers(&items)?),
        ElementType::F32 => Tensor::from_slice::<f32>(&shape, &numbers(&items)?),
        ElementType::F64 => Tensor::from_slice::<f64>(&shape, &numbers(&items)?),
        ElementType::I8 => Tensor::from_slice::<i8>(&shape, &numbers(&items)?),
        ElementType::I16 => Tensor::from_slice::<i16>(&shape, &numbers(&items)?),
        ElementType::I32 => Tensor::from_slice::<i32>(&shape, &numbers(&items)?),
        ElementType::I64 => Tensor::from_slice::<i64>(&shape, &numbers(&items)?),
        ElementType::U8 => Tensor::from_slice::<u8>(&shape, &numbers(&items)?),
        ElementType::U16 => Tensor::from_slice::<u16>(&shape, &numbers(&items)?),
        ElementType::U32 => Tensor::from_slice::<u32>(&shape, &numbers(&items)?),
        ElementType::U64 => Tensor::from_slice::<u64>(&shape, &numbers(&items)?),
        other => return Err(format!("values of {other} cannot be written here")),
    };
    tensor.map_err(|e| e.to_string())
}

fn numbers<T: std::str::FromStr>(items: &[&str]) -> Result<Vec<T>, String> {
    items
        .iter()
        .map(|v| v.parse().map_err(|_| format!("bad value `{v}`")))
        .collect()
}

fn strings(text: &str) -> Result<Vec<String>, String> {
    let mut strings = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let inner = rest
            .strip_prefix('"')
            .ok_or_else(|| format!("expected a quote at `{rest}`"))?;
        let mut string = String::new();
        let mut chars = inner.char_indices();
        let end = loop {
            match chars.next().ok_or("a string without its end")? {
                (at, '"') => break at,
                (_, '\\') => string.extend(chars.next().map(|(_, c)| c)),
                (_, c) => string.push(c),
            }
        };
        strings.push(string);
        rest = inner[end + 1..].trim_start_matches([',', ' ']);
    }
    Ok(strings)
}

/// The first difference between two tensors, if there is one; floats may differ by `close`, relatively and
/// by a thousandth of it absolutely.
pub fn difference(got: &Tensor, want: &Tensor, close: f64) -> Option<String> {
    if got.element_type() != want.element_type() || got.shape() != want.shape() {
        return Some(format!("got {got}, want {want}"));
    }
    if close == 0.0 || !got.element_type().is_float() {
        return (got != want).then(|| format!("got {got}, want {want}"));
    }
    let values = |t: &Tensor| t.to_f64_vec().unwrap_or_default();
    let (got, want) = (values(got), values(want));
    let differs = |(_, (g, w)): &(usize, (&f64, &f64))| {
        let same = g == w || (g.is_nan() && w.is_nan());
        let near = (*g - *w).abs() <= close * 1e-3 + close * w.abs();
        !same && !near
    };
    let (at, (g, w)) = got.iter().zip(&want).enumerate().find(differs)?;
    Some(format!("element {at}: got {g}, want {w}"))
}
