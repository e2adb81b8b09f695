// Tensors of OpenVINO as the engine sees them.
#pragma once

#include "device_api.hpp"
#include "engine.hpp"

namespace vinelift {

// A tensor of zeros, or of empty strings, whose memory is aligned for the widest loads.
ov::Tensor zeros(const ov::element::Type& type, const ov::Shape& shape);

// The shape of a tensor before a run: 0 where an extent is not known.
ov::Shape first_shape(const ov::PartialShape& shape);

// A tensor whose elements lie one after the other: `tensor` itself, or a copy.
ov::Tensor dense(const ov::Tensor& tensor);

// Where a dense tensor is. It must stay as it is while the view is used.
class TensorView {
public:
    explicit TensorView(const ov::Tensor& tensor);
    TensorView(TensorView&&) = default;

    View view;

private:
    // Of a tensor of strings.
    std::vector<Text> texts_;
};

// Gives `tensor` the shape and elements of `from`, unless they are its own already.
void store(const View& from, ov::Tensor& tensor);

}  // namespace vinelift
