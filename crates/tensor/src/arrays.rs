//! Tensors and the arrays of the crate `ndarray`.

use crate::{Element, Tensor, TensorError};
use ndarray::{ArrayBase, ArrayD, ArrayViewD, Data, Dimension, IxDyn};
use std::borrow::Cow;

/// A copy of the elements, in row-major order whatever their order was.
impl<T: Element, S: Data<Elem = T>, D: Dimension> TryFrom<&ArrayBase<S, D>> for Tensor {
    type Error = TensorError;

    fn try_from(array: &ArrayBase<S, D>) -> Result<Tensor, TensorError> {
        match array.as_slice() {
            Some(elements) => Tensor::from_slice(array.shape(), elements),
            None => {
                let mut tensor = Tensor::zeros(T::TYPE, array.shape())?;
                let elements = tensor.as_mut_slice::<T>()?;
                for (to, from) in elements.iter_mut().zip(array) {
                    *to = *from;
                }
                Ok(tensor)
            }
        }
    }
}

/// As of a reference to the array.
impl<T: Element, S: Data<Elem = T>, D: Dimension> TryFrom<ArrayBase<S, D>> for Tensor {
    type Error = TensorError;

    fn try_from(array: ArrayBase<S, D>) -> Result<Tensor, TensorError> {
        Tensor::try_from(&array)
    }
}

/// The elements where they are.
///
/// # Errors
/// If they are of another type, or not aligned for it, as those that are shared with a file or a caller may be.
impl<'a, T: Element> TryFrom<&'a Tensor> for ArrayViewD<'a, T> {
    type Error = TensorError;

    fn try_from(tensor: &'a Tensor) -> Result<ArrayViewD<'a, T>, TensorError> {
        match tensor.as_slice::<T>()? {
            Cow::Borrowed(elements) => {
                let view = ArrayViewD::from_shape(IxDyn(tensor.shape()), elements);
                view.map_err(|_| is_none(tensor, "an array"))
            }
            Cow::Owned(_) => Err(is_none(tensor, "a view of aligned elements")),
        }
    }
}

/// A copy of the elements.
///
/// # Errors
/// If they are of another type.
impl<T: Element> TryFrom<&Tensor> for ArrayD<T> {
    type Error = TensorError;

    fn try_from(tensor: &Tensor) -> Result<ArrayD<T>, TensorError> {
        let elements = tensor.as_slice::<T>()?.into_owned();
        let array = ArrayD::from_shape_vec(IxDyn(tensor.shape()), elements);
        array.map_err(|_| is_none(tensor, "an array"))
    }
}

/// As of a reference to the tensor.
impl<T: Element> TryFrom<Tensor> for ArrayD<T> {
    type Error = TensorError;

    fn try_from(tensor: Tensor) -> Result<ArrayD<T>, TensorError> {
        ArrayD::try_from(&tensor)
    }
}

fn is_none(tensor: &Tensor, to: &'static str) -> TensorError {
    TensorError::Conversion {
        element_type: tensor.element_type(),
        shape: tensor.shape().to_vec(),
        to,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ElementType;
    use bytes::Bytes;
    use ndarray::array;

    #[test]
    fn arrays_become_tensors_and_back() {
        let array = array![[1f32, 2.0, 3.0], [4.0, 5.0, 6.0]];
        let tensor = Tensor::try_from(&array).unwrap();
        assert_eq!(tensor.shape(), [2, 3]);
        assert_eq!(
            ArrayD::<f32>::try_from(&tensor).unwrap(),
            array.clone().into_dyn()
        );
        assert_eq!(ArrayViewD::<f32>::try_from(&tensor).unwrap()[[1, 0]], 4.0);
        let turned = Tensor::try_from(array.t()).unwrap();
        assert_eq!(turned.shape(), [3, 2]);
        assert_eq!(
            *turned.as_slice::<f32>().unwrap(),
            [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]
        );
        assert_eq!(
            ArrayD::<f32>::try_from(turned).unwrap(),
            array.t().into_dyn()
        );
        let none = ndarray::Array2::<i8>::zeros((0, 3));
        assert_eq!(Tensor::try_from(none).unwrap().shape(), [0, 3]);
        let scalar = Tensor::try_from(ndarray::arr0(7u8)).unwrap();
        assert_eq!(ArrayD::<u8>::try_from(scalar).unwrap()[[]], 7);
    }

    #[test]
    fn other_types_and_places_are_refused() {
        let tensor = Tensor::from_slice(&[2], &[1i32, 2]).unwrap();
        let error = ArrayD::<f32>::try_from(&tensor).unwrap_err();
        assert_eq!(
            error.to_string(),
            "expected elements of type f32, found i32"
        );
        let bytes = Bytes::from(vec![0; 9]);
        // One of the two is not aligned.
        let views = [0, 1].map(|start| {
            let bytes = bytes.slice(start..start + 8);
            let tensor = Tensor::from_shared(ElementType::I32, &[2], bytes).unwrap();
            assert_eq!(ArrayD::<i32>::try_from(&tensor).unwrap().len(), 2);
            ArrayViewD::<i32>::try_from(&tensor)
                .map_err(|e| e.to_string())
                .map(|v| v.len())
        });
        let refused = "i32[2] is not a view of aligned elements".to_owned();
        assert!(views.contains(&Err(refused)), "{views:?}");
    }
}
