// A compiled model as bytes, from which it is made again: its interface, the text of IR, and the constants. Code is made
// anew; what is saved is reading the model's files.
#pragma once

#include "compiled.hpp"

namespace vinelift {

void write_blob(std::ostream& stream, const Interface& interface, const Ir& ir);

// Throws if the bytes are no blob, or one of another version or machine. Constants stay where they are in `bytes`, which
// `owner` keeps.
std::pair<Interface, Ir> read_blob(Bytes bytes, std::shared_ptr<void> owner);

}  // namespace vinelift
