// The attributes of a node as texts, as IR has them.
#pragma once

#include <openvino/core/node.hpp>
#include <string>
#include <utility>
#include <vector>

namespace vinelift {

using Attributes = std::vector<std::pair<std::string, std::string>>;

Attributes attributes_of(const ov::Node& node);

}  // namespace vinelift
