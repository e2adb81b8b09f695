//! Lists whose length a file or a tensor decides: where there is no memory for them, that is an error.
//!
//! The ways of the standard library to make a list (`vec!`, `collect`, `push`, `to_vec`) end the process
//! when memory ends. They are for lists whose length our own code bounds.

use crate::TensorError;

/// An empty list with room for `count` items.
pub fn room_for<T>(count: usize) -> Result<Vec<T>, TensorError> {
    let mut list = Vec::new();
    make_room(&mut list, count)?;
    Ok(list)
}

/// Room for `count` more items, and no more than that.
pub fn make_room<T>(list: &mut Vec<T>, count: usize) -> Result<(), TensorError> {
    let done = list.try_reserve_exact(count);
    done.map_err(|_| out_of_memory::<T>(list.len().saturating_add(count)))
}

/// A list of `count` times `item`.
pub fn filled<T: Clone>(count: usize, item: T) -> Result<Vec<T>, TensorError> {
    let mut list = room_for(count)?;
    list.resize(count, item);
    Ok(list)
}

/// A list of these items.
pub fn collected<T>(items: impl IntoIterator<Item = T>) -> Result<Vec<T>, TensorError> {
    let mut list = Vec::new();
    extend(&mut list, items)?;
    Ok(list)
}

/// Adds these items at the end of `list`.
pub fn extend<T>(list: &mut Vec<T>, items: impl IntoIterator<Item = T>) -> Result<(), TensorError> {
    let items = items.into_iter();
    let (least, most) = items.size_hint();
    if list.capacity() - list.len() < least {
        grow(list, least)?;
    }
    if most == Some(least) {
        // There is room for all of them.
        list.extend(items);
        return Ok(());
    }
    for item in items {
        push(list, item)?;
    }
    Ok(())
}

/// Adds an item at the end of `list`.
#[inline]
pub fn push<T>(list: &mut Vec<T>, item: T) -> Result<(), TensorError> {
    if list.len() == list.capacity() {
        grow(list, 1)?;
    }
    list.push(item);
    Ok(())
}

/// Room for `count` more items, and for as many after them as makes it rare that room is made. Of [`extend`] there is a copy
/// for each iterator, which is to be small.
#[inline(never)]
fn grow<T>(list: &mut Vec<T>, count: usize) -> Result<(), TensorError> {
    let done = list.try_reserve(count);
    done.map_err(|_| out_of_memory::<T>(list.len().saturating_add(count)))
}

/// A copy of a text.
pub fn text(from: &str) -> Result<String, TensorError> {
    let mut copy = String::new();
    let bytes = from.len();
    copy.try_reserve_exact(bytes)
        .map_err(|_| TensorError::OutOfMemory { bytes })?;
    copy.push_str(from);
    Ok(copy)
}

fn out_of_memory<T>(count: usize) -> TensorError {
    let bytes = count.saturating_mul(size_of::<T>());
    TensorError::OutOfMemory { bytes }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_what_they_would_be_otherwise() {
        assert_eq!(filled(3, 7), Ok(vec![7; 3]));
        assert_eq!(collected(0..5), Ok((0..5).collect()));
        let odd = |k: &usize| !k.is_multiple_of(2);
        assert_eq!(
            collected((0..1000).filter(odd)),
            Ok((0..1000).filter(odd).collect())
        );
        let mut list = vec![1];
        extend(&mut list, [2, 3]).unwrap();
        push(&mut list, 4).unwrap();
        assert_eq!(list, [1, 2, 3, 4]);
        assert_eq!(text("né"), Ok("né".to_owned()));
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        let error = |bytes| TensorError::OutOfMemory { bytes };
        let most = usize::MAX;
        assert_eq!(filled(most / 16, 0u64), Err(error(most / 16 * 8)));
        assert_eq!(room_for::<u64>(most), Err(error(most)));
        assert!(collected(0..most).is_err());
        let mut list = vec![0u32; 4];
        assert_eq!(make_room(&mut list, most), Err(error(most)));
        assert_eq!(list, [0; 4]);
    }
}
