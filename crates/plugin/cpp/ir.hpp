// OpenVINO's graph as the text of IR, which the engine reads, with its constants where they are in memory.
#pragma once

#include "engine.hpp"

#include <memory>
#include <openvino/core/model.hpp>
#include <string>
#include <vector>

namespace vinelift {

struct Ir {
    std::string xml;
    // The constants, one after the other as in the file that would go with the text.
    std::vector<Bytes> parts;
    // Keeps the bytes of `parts` alive.
    std::shared_ptr<void> owner;
};

Ir to_ir(const std::shared_ptr<const ov::Model>& model);

// A name as it is in the text: what XML cannot hold is replaced.
std::string name_in_ir(const std::string& name);

// Has the engine read it. The engine keeps the constants as long as it needs them.
ModelHandle read(const Ir& ir);

}  // namespace vinelift
