// The constants of a model, where they are in memory.
#pragma once

#include "engine.hpp"

#include <memory>
#include <openvino/op/constant.hpp>
#include <unordered_map>
#include <vector>

namespace vinelift {

class Weights {
public:
    // Where a constant is in the file that these would make.
    struct Place {
        uint64_t offset;
        uint64_t size;
    };

    // One after the other.
    std::vector<Bytes> parts;

    Place add(const ov::op::v0::Constant& constant);
    // Keeps the bytes of `parts` alive.
    std::shared_ptr<void> owner() const { return owner_; }

private:
    // The nodes whose constants are used, and copies of those that have another layout in memory.
    struct Owner {
        std::vector<std::shared_ptr<const ov::Node>> nodes;
        std::vector<std::unique_ptr<std::string>> copies;
    };

    std::shared_ptr<Owner> owner_ = std::make_shared<Owner>();
    uint64_t end_ = 0;
    // Those that were added, by address: the one that goes on longest from there.
    std::unordered_map<const uint8_t*, Place> known_;
};

}  // namespace vinelift
