use super::*;

fn read(buffer: &Buffer) -> Vec<f32> {
    let tensor = buffer.view().unwrap();
    tensor.as_slice::<f32>().unwrap().into_owned()
}

#[test]
fn clones_are_the_same_tensor() {
    let a = Buffer::zeros(ElementType::F32, vec![2]).unwrap();
    let b = a.clone();
    a.store(&Tensor::from_slice(&[2], &[1f32, 2.0]).unwrap())
        .unwrap();
    drop(a);
    assert_eq!(read(&b), [1.0, 2.0]);
    b.set_shape(vec![1]).unwrap();
    assert_eq!(read(&b), [1.0]);
    b.set_shape(vec![3]).unwrap();
    assert_eq!(read(&b), [0.0; 3]);
}

#[test]
fn a_view_keeps_memory_that_the_tensor_left() {
    let buffer = Buffer::zeros(ElementType::F32, vec![2]).unwrap();
    buffer
        .store(&Tensor::from_slice(&[2], &[1f32, 2.0]).unwrap())
        .unwrap();
    let (view, kept) = (buffer.view().unwrap(), buffer.keep().unwrap());
    buffer.set_shape(vec![1000]).unwrap();
    drop(buffer);
    assert_eq!(*view.as_slice::<f32>().unwrap(), [1.0, 2.0]);
    assert_eq!(kept.len(), 8);
}

#[test]
fn the_memory_of_a_program_is_used_in_place_and_does_not_grow() {
    let mut memory = [1f32, 2.0, 3.0];
    let start = NonNull::new(memory.as_mut_ptr().cast()).unwrap();
    let buffer = Buffer::host(ElementType::F32, vec![3], start).unwrap();
    assert_eq!(buffer.view().unwrap().bytes().as_ptr(), start.as_ptr());
    buffer
        .store(&Tensor::from_slice(&[2], &[7f32, 8.0]).unwrap())
        .unwrap();
    assert_eq!(read(&buffer), [7.0, 8.0]);
    assert_eq!(
        buffer.set_shape(vec![4]).unwrap_err().message,
        "f32[4] needs 16 bytes, the memory that the tensor was made of has 12"
    );
    let kept = buffer.keep().unwrap();
    drop(buffer);
    assert_eq!(memory, [7.0, 8.0, 3.0]);
    assert_eq!(kept, bytes_of(&[7f32, 8.0]));
}

fn bytes_of(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

#[test]
fn what_is_lent_is_written_in_place() {
    let mut memory = [0f32; 3];
    let start = NonNull::new(memory.as_mut_ptr().cast()).unwrap();
    let buffer = Buffer::host(ElementType::F32, vec![2], start).unwrap();
    let mut lent = buffer.lend().unwrap().unwrap();
    lent.as_mut_slice::<f32>().unwrap()[1] = 5.0;
    buffer.store(&lent).unwrap();
    drop(lent);
    assert_eq!(read(&buffer), [0.0, 5.0]);
    let own = Buffer::zeros(ElementType::F32, vec![2]).unwrap();
    assert_eq!(own.addresses().start, own.address().unwrap().addr());
    assert_eq!(own.addresses().len(), 8);
    // SAFETY: two elements of `memory` come after its first.
    let second = unsafe { start.add(4) };
    let second = Buffer::host(ElementType::F32, vec![2], second).unwrap();
    let first = buffer.addresses().start;
    assert_eq!(second.addresses(), first + 4..first + 12);
    drop((buffer, second));
    assert_eq!(memory, [0.0, 5.0, 0.0]);
    let bools = Buffer::zeros(ElementType::Boolean, vec![2]).unwrap();
    assert!(bools.lend().unwrap().is_none());
}

#[test]
fn sizes_do_not_wrap() {
    let zeros = |shape: &[usize]| Buffer::zeros(ElementType::F64, shape.to_vec());
    assert_eq!(zeros(&[usize::MAX, 0]).unwrap().byte_len().unwrap(), 0);
    assert!(
        zeros(&[usize::MAX, 2])
            .unwrap_err()
            .message
            .contains("too large")
    );
    assert!(
        zeros(&[1 << 59])
            .unwrap_err()
            .message
            .contains("out of memory")
    );
}

#[test]
fn strings() {
    let text = |s: &str| s.to_owned();
    let buffer = Buffer::strings(vec![2], vec![text("a"), text("bc")]).unwrap();
    assert_eq!(buffer.byte_len().unwrap(), 0);
    assert!(buffer.address().is_err());
    assert!(buffer.set_strings(vec![text("x")]).is_err());
    buffer.set_strings(vec![text("x"), text("y")]).unwrap();
    assert_eq!(buffer.view().unwrap().strings().unwrap(), ["x", "y"]);
    assert!(Buffer::strings(vec![3], vec![]).is_err());
}
