//! The memory of a tensor, which several handles, requests and a program's own pointers share.

mod block;
#[cfg(test)]
mod tests;

use crate::status::{Failure, Result, Status};
pub(crate) use block::Memory;
use block::{Address, Block, View};
use bytes::Bytes;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use vinelift::{ElementType, Shape, Tensor};
use vinelift_tensor::element_count;

/// A tensor that is shared, and whose shape and contents can change. Clones are the same tensor.
#[derive(Clone, Debug)]
pub(crate) struct Buffer(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    element_type: ElementType,
    shape: Shape,
    storage: Storage,
    /// The tensor as runs read it, once one has, of this shape and storage.
    view: Option<Tensor>,
}

#[derive(Debug)]
enum Storage {
    /// Memory of our own. What runs read holds on to it.
    Own(Arc<Block>),
    /// Memory of the program.
    Host {
        address: Address,
        len: usize,
    },
    Strings(Vec<String>),
}

impl Buffer {
    /// Zeros, in memory of our own.
    pub(crate) fn zeros(element_type: ElementType, shape: Shape) -> Result<Buffer> {
        let storage = if element_type == ElementType::String {
            let zeros = Tensor::zeros(element_type, &shape)?;
            Storage::Strings(zeros.strings().unwrap_or_default().to_vec())
        } else {
            Storage::Own(Block::new(byte_len(element_type, &shape)?)?)
        };
        Ok(Buffer::new(element_type, shape, storage))
    }

    /// The memory of a program from `start` on.
    pub(crate) fn host(
        element_type: ElementType,
        shape: Shape,
        start: NonNull<u8>,
    ) -> Result<Buffer> {
        if element_type == ElementType::String {
            let text = "a tensor of strings cannot be made of the memory of a program: strings have no layout in C; \
                        use ov_tensor_create_from_string_array";
            return Err(Failure::unsupported(text));
        }
        let storage = Storage::Host {
            address: Address(start.as_ptr()),
            len: byte_len(element_type, &shape)?,
        };
        Ok(Buffer::new(element_type, shape, storage))
    }

    /// A tensor of strings.
    pub(crate) fn strings(shape: Shape, strings: Vec<String>) -> Result<Buffer> {
        let tensor = Tensor::from_strings(&shape, strings)?;
        let strings = tensor.strings().unwrap_or_default().to_vec();
        Ok(Buffer::new(
            ElementType::String,
            shape,
            Storage::Strings(strings),
        ))
    }

    fn new(element_type: ElementType, shape: Shape, storage: Storage) -> Buffer {
        Buffer(Arc::new(Mutex::new(State {
            element_type,
            shape,
            storage,
            view: None,
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn element_type(&self) -> ElementType {
        self.state().element_type
    }

    pub(crate) fn shape(&self) -> Shape {
        self.state().shape.clone()
    }

    /// The bytes of its elements; none if they are strings.
    pub(crate) fn byte_len(&self) -> Result<usize> {
        let state = self.state();
        match state.storage {
            Storage::Strings(_) => Ok(0),
            _ => byte_len(state.element_type, &state.shape),
        }
    }

    /// Where its elements are. They stay there until its shape is changed or it is freed.
    pub(crate) fn address(&self) -> Result<*mut u8> {
        match &self.state().storage {
            Storage::Own(block) => Ok(block.start.as_ptr()),
            Storage::Host { address, .. } => Ok(address.0),
            Storage::Strings(_) => Err(no_layout()),
        }
    }

    /// Where its elements are, and what keeps them there, also when another shape has the tensor move elsewhere:
    /// `None` if the memory is a program's.
    pub(crate) fn hold(&self) -> Result<(*mut u8, Option<Memory>)> {
        match &self.state().storage {
            Storage::Own(block) => Ok((block.start.as_ptr(), Some(Memory(block.clone())))),
            Storage::Host { address, .. } => Ok((address.0, None)),
            Storage::Strings(_) => Err(no_layout()),
        }
    }

    /// Gives it another shape. It keeps its memory if that is large enough.
    pub(crate) fn set_shape(&self, shape: Shape) -> Result<()> {
        self.state().set_shape(shape)
    }

    /// Sets the elements of a tensor of strings.
    pub(crate) fn set_strings(&self, strings: Vec<String>) -> Result<()> {
        let mut state = self.state();
        let Storage::Strings(_) = &state.storage else {
            return Err(expected_strings(state.element_type));
        };
        Tensor::from_strings(&state.shape, strings.clone())?;
        state.storage = Storage::Strings(strings);
        Ok(())
    }

    /// Looks at the elements of a tensor of strings.
    pub(crate) fn look_at_strings<T>(
        &self,
        look: impl FnOnce(&[String]) -> Result<T>,
    ) -> Result<T> {
        let state = self.state();
        match &state.storage {
            Storage::Strings(strings) => look(strings),
            _ => Err(expected_strings(state.element_type)),
        }
    }

    /// A tensor with memory of its own.
    pub(crate) fn copied(&self) -> Result<Tensor> {
        let (element_type, shape) = (self.element_type(), self.shape());
        match element_type {
            ElementType::String => self.view(),
            _ => Ok(Tensor::from_bytes(
                element_type,
                &shape,
                self.view()?.bytes(),
            )?),
        }
    }

    /// The tensor as a run reads it: where its bytes are, without a copy.
    pub(crate) fn view(&self) -> Result<Tensor> {
        let mut state = self.state();
        if let Some(view) = &state.view {
            return Ok(view.clone());
        }
        if let Storage::Strings(strings) = &state.storage {
            return Ok(Tensor::from_strings(&state.shape, strings.clone())?);
        }
        let bytes = state.bytes()?.map_or_else(Bytes::new, Bytes::from_owner);
        let view = Tensor::from_shared(state.element_type, &state.shape, bytes)?;
        // Of booleans it may be a copy, in which all are 0 or 1.
        if state.element_type != ElementType::Boolean {
            state.view = Some(view.clone());
        }
        Ok(view)
    }

    /// The addresses of all its memory; none if it is of strings.
    pub(crate) fn addresses(&self) -> Range<usize> {
        let (start, len) = match &self.state().storage {
            Storage::Own(block) => (block.start.addr().get(), block.len),
            Storage::Host { address, len } => (address.0.addr(), *len),
            Storage::Strings(_) => (0, 0),
        };
        start..start.saturating_add(len)
    }

    /// The tensor for a run to write to, in place; `None` if it is of strings, or of booleans, of which a
    /// run that fails could leave others than 0 and 1.
    ///
    /// It may be given to a run only if the run uses no other tensor whose addresses are also its.
    pub(crate) fn lend(&self) -> Result<Option<Tensor>> {
        let state = self.state();
        if matches!(
            state.element_type,
            ElementType::String | ElementType::Boolean
        ) {
            return Ok(None);
        }
        let view = state.bytes()?;
        let lent = view.map(|view| Tensor::from_memory(state.element_type, &state.shape, view));
        Ok(lent.transpose()?)
    }

    /// Its bytes, for as long as they are needed: memory of our own is shared, that of a program copied.
    pub(crate) fn keep(&self) -> Result<Bytes> {
        let Some(view) = self.state().bytes()? else {
            let text = "expected a tensor of bytes, found one of strings";
            return Err(Failure::new(Status::ParameterMismatch, text));
        };
        Ok(match view.block.is_some() {
            true => Bytes::from_owner(view),
            false => Bytes::copy_from_slice(view.as_ref()),
        })
    }

    /// Takes shape and elements of `tensor`, which is of its element type, unless they are its own already.
    pub(crate) fn store(&self, tensor: &Tensor) -> Result<()> {
        let mut state = self.state();
        if state.element_type != tensor.element_type() {
            let text = format!("expected {}, found {tensor}", state.element_type);
            return Err(Failure::new(Status::ParameterMismatch, text));
        }
        if state.shape != tensor.shape() {
            state.set_shape(tensor.shape().to_vec())?;
        }
        let bytes = tensor.bytes();
        let target = match &mut state.storage {
            Storage::Strings(strings) => {
                *strings = tensor.strings().unwrap_or_default().to_vec();
                return Ok(());
            }
            Storage::Own(block) => block.start.as_ptr(),
            Storage::Host { address, .. } => address.0,
        };
        if bytes.as_ptr() == target {
            return Ok(());
        }
        // SAFETY: `set_shape` has seen to it that there are as many bytes as the shape takes, which a
        // tensor of this shape and type has, too. They may overlap those of `tensor`, where it is an
        // input that a model passes on.
        unsafe { std::ptr::copy(bytes.as_ptr(), target, bytes.len()) };
        Ok(())
    }
}

impl State {
    /// Its bytes, where they are; `None` if it is of strings.
    fn bytes(&self) -> Result<Option<View>> {
        let (address, block) = match &self.storage {
            Storage::Own(block) => (Address(block.start.as_ptr()), Some(block.clone())),
            Storage::Host { address, .. } => (*address, None),
            Storage::Strings(_) => return Ok(None),
        };
        let len = byte_len(self.element_type, &self.shape)?;
        Ok(Some(View {
            address,
            len,
            block,
        }))
    }

    fn set_shape(&mut self, shape: Shape) -> Result<()> {
        match &mut self.storage {
            Storage::Strings(strings) => {
                let count = Tensor::zeros(ElementType::String, &shape)?.element_count();
                strings.resize(count, String::new());
            }
            Storage::Own(block) => {
                let need = byte_len(self.element_type, &shape)?;
                if need > block.len {
                    *block = Block::new(need)?;
                }
            }
            Storage::Host { len, .. } => {
                let need = byte_len(self.element_type, &shape)?;
                if need > *len {
                    return Err(Failure::new(
                        Status::ParameterMismatch,
                        format!(
                            "{}{shape:?} needs {need} bytes, the memory that the tensor was made of has {len}",
                            self.element_type
                        ),
                    ));
                }
            }
        }
        self.shape = shape;
        self.view = None;
        Ok(())
    }
}

fn no_layout() -> Failure {
    Failure::unsupported(
        "the elements of a tensor of strings have no layout in C, so there is no pointer to them",
    )
}

fn expected_strings(found: ElementType) -> Failure {
    let text = format!("expected a tensor of strings, found one of {found}");
    Failure::new(Status::ParameterMismatch, text)
}

fn byte_len(element_type: ElementType, shape: &[usize]) -> Result<usize> {
    let len = element_count(shape).and_then(|count| element_type.byte_len(count));
    len.filter(|n| isize::try_from(*n).is_ok()).ok_or_else(|| {
        let text = format!("{element_type}{shape:?} is too large");
        Failure::new(Status::GeneralError, text)
    })
}
