//! Sums of the rows: what zero points take away.

/// The sums of each `group` elements of a row, times `factor`, on any machine.
///
/// # Safety
/// There are as many elements as `sums` has groups.
pub(crate) unsafe fn group_sums(row: *const i8, group: usize, factor: i32, sums: &mut [i32]) {
    for (number, to) in sums.iter_mut().enumerate() {
        // SAFETY: the caller's.
        let elements = unsafe { std::slice::from_raw_parts(row.add(number * group), group) };
        let mut sum = 0i32;
        for element in elements {
            sum += i32::from(*element);
        }
        *to = sum * factor;
    }
}
