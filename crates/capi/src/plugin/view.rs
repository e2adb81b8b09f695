//! Tensors of a program as those of the engine, in place.

use super::ffi::{Failure, Slice, Text, View};
use bytes::Bytes;
use std::ops::Range;
use vinelift::{ElementType, Error, InferRequest, Tensor};

/// Calls `give` with where a tensor is.
pub(crate) fn with_view<T>(tensor: &Tensor, give: impl FnOnce(&View) -> T) -> T {
    let texts: Vec<Text> = tensor
        .strings()
        .unwrap_or_default()
        .iter()
        .map(|s| Text::of_text(s))
        .collect();
    give(&View {
        dims: Slice::of(tensor.shape()),
        bytes: tensor.bytes().as_ptr().cast_mut(),
        byte_len: tensor.bytes().len(),
        texts: Slice::of(&texts),
    })
}

/// An input in the memory of the program.
pub(crate) struct Seen {
    bytes: *mut u8,
    tensor: Tensor,
}

// SAFETY: the pointer is only compared; the tensor may go to another thread.
unsafe impl Send for Seen {}

/// Bytes of a program for the time of a run.
struct Lent(View);

// SAFETY: these are plain bytes, which the contract of a run keeps from others.
unsafe impl Send for Lent {}
// SAFETY: as above.
unsafe impl Sync for Lent {}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        match self.0.byte_len {
            0 => &[],
            // SAFETY: there are as many bytes during a run, and nobody else writes them. After it, nothing asks for them
            // before the next run, which has checked that they are there.
            len => unsafe { std::slice::from_raw_parts(self.0.bytes, len) },
        }
    }
}

impl AsMut<[u8]> for Lent {
    fn as_mut(&mut self) -> &mut [u8] {
        match self.0.byte_len {
            0 => &mut [],
            // SAFETY: as above, and no other tensor of the run is there.
            len => unsafe { std::slice::from_raw_parts_mut(self.0.bytes, len) },
        }
    }
}

impl View {
    fn addresses(&self) -> Range<usize> {
        let start = self.bytes.addr();
        start..start.saturating_add(self.byte_len)
    }

    /// The tensor of an input, in place.
    ///
    /// # Safety
    /// Its pointers are valid during the run.
    pub(crate) unsafe fn input(
        &self,
        seen: &mut [Option<Seen>],
        position: usize,
        request: &InferRequest,
    ) -> Result<Tensor, Failure> {
        // SAFETY: the caller's promise.
        let dims = unsafe { self.dims.items() };
        let ports = request.compiled_model().inputs();
        let missing = || Error::Input(format!("the model has no input {position}"));
        let ty = ports.get(position).ok_or_else(missing)?.element_type;
        if ty == ElementType::String {
            // SAFETY: the caller's promise.
            return unsafe { self.copied(ty) };
        }
        if let Some(Some(seen)) = seen.get(position)
            && seen.bytes == self.bytes
            && seen.tensor.shape() == dims
        {
            return Ok(seen.tensor.clone());
        }
        let tensor = Tensor::from_shared(ty, dims, Bytes::from_owner(Lent(*self)))?;
        // Of booleans it may be a copy, in which all are 0 or 1.
        if let Some(place) = seen.get_mut(position)
            && ty != ElementType::Boolean
        {
            *place = Some(Seen {
                bytes: self.bytes,
                tensor: tensor.clone(),
            });
        }
        Ok(tensor)
    }

    /// The memory for an output, if it may be written before the run has ended well.
    ///
    /// # Safety
    /// As [`View::input`], and no other tensor is there.
    pub(crate) unsafe fn memory(
        &self,
        position: usize,
        request: &InferRequest,
    ) -> Result<Option<Tensor>, Failure> {
        let ports = request.compiled_model().outputs();
        let missing = || Error::Input(format!("the model has no output {position}"));
        let ty = ports.get(position).ok_or_else(missing)?.element_type;
        // Of booleans, a run that fails could leave others than 0 and 1.
        if matches!(ty, ElementType::String | ElementType::Boolean) || self.byte_len == 0 {
            return Ok(None);
        }
        // SAFETY: the caller's promise.
        let dims = unsafe { self.dims.items() };
        Ok(Some(Tensor::from_memory(ty, dims, Lent(*self))?))
    }

    /// A tensor of a copy.
    ///
    /// # Safety
    /// Its pointers are valid.
    pub(crate) unsafe fn copied(&self, ty: ElementType) -> Result<Tensor, Failure> {
        // SAFETY: the caller's promise.
        let (dims, texts) = unsafe { (self.dims.items(), self.texts.items()) };
        if ty == ElementType::String {
            // SAFETY: as above.
            let strings = texts.iter().map(|text| unsafe { text.to_text() });
            return Ok(Tensor::from_strings(dims, strings.collect())?);
        }
        Ok(Tensor::from_bytes(ty, dims, Lent(*self))?)
    }
}

/// Whether output `position` shares no byte with another tensor.
pub(crate) fn is_apart(position: usize, inputs: &[View], outputs: &[View]) -> bool {
    let own = outputs[position].addresses();
    let others = outputs.iter().enumerate().filter(|(k, _)| *k != position);
    let mut others = inputs.iter().chain(others.map(|(_, view)| view));
    others.all(|view| {
        let other = view.addresses();
        other.end <= own.start || own.end <= other.start
    })
}
