#include "blob.hpp"

#include <cstring>

namespace vinelift {
namespace {

constexpr char magic[16] = "vinelift device";
// Constants start at multiples of this.
constexpr size_t line = 64;

class Writer {
public:
    std::string bytes;

    void number(uint64_t value) { bytes.append(reinterpret_cast<const char*>(&value), sizeof value); }
    void string(const std::string& value) {
        number(value.size());
        bytes += value;
    }
    void shape(const ov::element::Type& type, const ov::PartialShape& shape) {
        string(type.get_type_name());
        string(shape.to_string());
    }
    void ports(const std::vector<ov::Port>& ports) {
        number(ports.size());
        for (const auto& port : ports) {
            string(port.get_node()->get_friendly_name());
            number(port.get_names().size());
            for (const auto& name : port.get_names()) string(name);
            shape(port.get_element_type(), port.get_partial_shape());
        }
    }
};

class Reader {
public:
    explicit Reader(Bytes bytes) : bytes_(bytes) {}

    Bytes take(uint64_t len) {
        OPENVINO_ASSERT(len <= bytes_.len - at_, "the exported model ends early: ", len, " bytes at ", at_, " of ", bytes_.len);
        Bytes taken{bytes_.start + at_, static_cast<size_t>(len)};
        at_ += taken.len;
        return taken;
    }
    uint64_t number() {
        uint64_t value;
        std::memcpy(&value, take(sizeof value).start, sizeof value);
        return value;
    }
    std::string string() {
        auto taken = take(number());
        return std::string(reinterpret_cast<const char*>(taken.start), taken.len);
    }
    ov::element::Type type() { return ov::element::Type(string()); }
    ov::PartialShape shape() { return ov::PartialShape(string()); }
    template <class Make>
    std::vector<ov::Port> ports(Make make) {
        std::vector<ov::Port> ports;
        for (auto count = number(); count; count--) {
            auto name = string();
            std::unordered_set<std::string> names;
            for (auto left = number(); left; left--) names.insert(string());
            auto element_type = type();
            ports.push_back(make(name, names, element_type, shape()));
        }
        return ports;
    }
    void align() { take((line - at_ % line) % line); }

private:
    Bytes bytes_;
    size_t at_ = 0;
};

void same(const char* what, const std::string& found, const std::string& expected) {
    OPENVINO_ASSERT(found == expected, "the model was exported by ", what, " `", found, "`, this is `", expected, "`");
}

}  // namespace

void write_blob(std::ostream& stream, const Interface& interface, const Ir& ir) {
    Writer head;
    head.bytes.assign(magic, sizeof magic);
    head.string(string(engine().version()));
    head.string(string(engine().target()));
    head.string(interface.name);
    head.ports(interface.inputs);
    head.ports(interface.outputs);
    head.number(interface.variables.size());
    for (const auto& variable : interface.variables) {
        head.string(variable.name);
        head.shape(variable.type, variable.shape);
    }
    head.string(ir.xml);
    head.number(ir.parts.size());
    for (const auto& part : ir.parts) head.number(part.len);
    head.bytes.append((line - head.bytes.size() % line) % line, '\0');
    stream.write(head.bytes.data(), static_cast<std::streamsize>(head.bytes.size()));
    static const char padding[line] = {};
    for (const auto& part : ir.parts) {
        stream.write(reinterpret_cast<const char*>(part.start), static_cast<std::streamsize>(part.len));
        stream.write(padding, static_cast<std::streamsize>((line - part.len % line) % line));
    }
    OPENVINO_ASSERT(stream.good(), "the exported model cannot be written");
}

std::pair<Interface, Ir> read_blob(Bytes bytes, std::shared_ptr<void> owner) {
    Reader reader(bytes);
    OPENVINO_ASSERT(bytes.len >= sizeof magic && std::memcmp(reader.take(sizeof magic).start, magic, sizeof magic) == 0,
                    "the model was not exported by the VINELIFT device");
    same("version", reader.string(), string(engine().version()));
    same("a machine of", reader.string(), string(engine().target()));
    Interface interface;
    interface.name = reader.string();
    interface.inputs = reader.ports(input_port);
    interface.outputs = reader.ports(output_port);
    for (auto count = reader.number(); count; count--) {
        auto name = reader.string();
        auto type = reader.type();
        interface.variables.push_back({name, type, reader.shape()});
    }
    Ir ir;
    ir.xml = reader.string();
    std::vector<uint64_t> sizes;
    for (auto count = reader.number(); count; count--) sizes.push_back(reader.number());
    for (auto size : sizes) {
        reader.align();
        ir.parts.push_back(reader.take(size));
    }
    ir.owner = std::move(owner);
    return {std::move(interface), std::move(ir)};
}

}  // namespace vinelift
