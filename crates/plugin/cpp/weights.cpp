#include "weights.hpp"

namespace vinelift {
namespace {

// Strings one after the other, with where each ends before them.
std::string packed(const std::vector<std::string>& strings) {
    std::string head, body;
    auto add = [&](size_t number) {
        auto narrow = static_cast<int32_t>(number);
        OPENVINO_ASSERT(narrow >= 0 && static_cast<size_t>(narrow) == number, "a constant of strings of more than 2 GiB");
        head.append(reinterpret_cast<const char*>(&narrow), sizeof narrow);
    };
    add(strings.size());
    add(0);
    for (const auto& one : strings) {
        body += one;
        add(body.size());
    }
    return head + body;
}

}  // namespace

Weights::Place Weights::add(const ov::op::v0::Constant& constant) {
    Bytes bytes{static_cast<const uint8_t*>(constant.get_data_ptr()), constant.get_byte_size()};
    if (constant.get_element_type() == ov::element::string) {
        owner_->copies.push_back(std::make_unique<std::string>(packed(constant.get_value_strings())));
        const auto& copy = *owner_->copies.back();
        bytes = {reinterpret_cast<const uint8_t*>(copy.data()), copy.size()};
    } else {
        if (bytes.len == 0) return {end_, 0};
        auto known = known_.find(bytes.start);
        if (known != known_.end() && known->second.size >= bytes.len) return {known->second.offset, bytes.len};
        owner_->nodes.push_back(constant.shared_from_this());
    }
    Place place{end_, bytes.len};
    known_[bytes.start] = place;
    parts.push_back(bytes);
    end_ += bytes.len;
    return place;
}

}  // namespace vinelift
