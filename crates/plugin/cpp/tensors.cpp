#include "tensors.hpp"

#include <cstring>
#include <new>

namespace vinelift {
namespace {

struct Aligned {
    static constexpr size_t line = 64;

    void* allocate(size_t bytes, size_t) { return ::operator new(bytes, std::align_val_t(line)); }
    void deallocate(void* memory, size_t, size_t) noexcept { ::operator delete(memory, std::align_val_t(line)); }
    bool is_equal(const Aligned&) const { return true; }
};

}  // namespace

ov::Tensor zeros(const ov::element::Type& type, const ov::Shape& shape) {
    ov::Tensor tensor(type, shape, ov::Allocator(Aligned()));
    if (type != ov::element::string && tensor.get_byte_size()) std::memset(tensor.data(), 0, tensor.get_byte_size());
    return tensor;
}

ov::Shape first_shape(const ov::PartialShape& shape) {
    if (shape.rank().is_dynamic()) return {0};
    ov::Shape first;
    for (const auto& dim : shape) first.push_back(dim.is_dynamic() ? 0 : static_cast<size_t>(dim.get_length()));
    return first;
}

ov::Tensor dense(const ov::Tensor& tensor) {
    if (tensor.is_continuous()) return tensor;
    auto copy = zeros(tensor.get_element_type(), tensor.get_shape());
    tensor.copy_to(copy);
    return copy;
}

TensorView::TensorView(const ov::Tensor& tensor) {
    const auto& shape = tensor.get_shape();
    view.dims = {shape.data(), shape.size()};
    if (tensor.get_size() == 0) return;
    if (tensor.get_element_type() == ov::element::string) {
        const auto* strings = tensor.data<std::string>();
        for (size_t k = 0; k < tensor.get_size(); k++) texts_.push_back(text(strings[k]));
        view.texts = {texts_.data(), texts_.size()};
        return;
    }
    view.bytes = const_cast<void*>(tensor.data());
    view.byte_len = tensor.get_byte_size();
}

void store(const View& from, ov::Tensor& tensor) {
    ov::Shape shape(from.dims.start, from.dims.start + from.dims.len);
    if (tensor.get_shape() != shape) tensor.set_shape(shape);
    if (tensor.get_element_type() == ov::element::string) {
        auto* strings = tensor.data<std::string>();
        for (size_t k = 0; k < from.texts.len; k++) strings[k] = string(from.texts.start[k]);
        return;
    }
    if (from.byte_len == 0) return;
    auto* to = tensor.data();
    OPENVINO_ASSERT(tensor.get_byte_size() == from.byte_len, "an output of ", from.byte_len, " bytes for a tensor of ",
                    tensor.get_byte_size());
    // The two may overlap where a model passes on an input.
    if (to != from.bytes) std::memmove(to, from.bytes, from.byte_len);
}

}  // namespace vinelift
