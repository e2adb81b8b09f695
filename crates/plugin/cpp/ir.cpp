#include "ir.hpp"

#include "attributes.hpp"
#include "weights.hpp"

#include <algorithm>
#include <openvino/op/if.hpp>
#include <openvino/op/loop.hpp>
#include <openvino/op/lstm_cell.hpp>
#include <openvino/op/parameter.hpp>
#include <openvino/op/result.hpp>
#include <openvino/op/util/framework_node.hpp>
#include <openvino/op/util/multi_subgraph_base.hpp>
#include <unordered_map>

namespace vinelift {
namespace {

using SubGraph = ov::op::util::MultiSubGraphOp;

std::string escaped(const std::string& text) {
    std::string out;
    for (char c : text) {
        switch (c) {
        case '&': out += "&amp;"; break;
        case '<': out += "&lt;"; break;
        case '>': out += "&gt;"; break;
        case '"': out += "&quot;"; break;
        case '\n': out += "&#10;"; break;
        case '\r': out += "&#13;"; break;
        case '\t': out += "&#9;"; break;
        default: out += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
        }
    }
    return out;
}

std::string attribute(const char* name, const std::string& value) {
    return std::string(" ") + name + "=\"" + escaped(value) + "\"";
}

std::string attribute(const char* name, const char* value) { return attribute(name, std::string(value)); }

template <class T>
std::string attribute(const char* name, T value) {
    return attribute(name, std::to_string(value));
}

// The types that have another name in IR.
std::string type_in_ir(const std::string& name) {
    if (name == "Constant") return "Const";
    if (name == "PRelu") return "PReLU";
    if (name == "Relu") return "ReLU";
    if (name == "Softmax") return "SoftMax";
    return name;
}

// How many inputs a node has in IR: the peepholes that OpenVINO gives to the first version of LSTMCell, zeros, are none.
size_t inputs_of(const ov::Node& node) {
    auto count = node.get_input_size();
    if (!ov::is_type<ov::op::v0::LSTMCell>(&node) || count != 7) return count;
    auto peepholes = ov::as_type_ptr<ov::op::v0::Constant>(node.get_input_node_shared_ptr(6));
    if (!peepholes) return count;
    auto* bytes = static_cast<const char*>(peepholes->get_data_ptr());
    auto is_zero = std::all_of(bytes, bytes + peepholes->get_byte_size(), [](char byte) { return byte == 0; });
    return is_zero ? 6 : count;
}

class Writer {
public:
    explicit Writer(Weights& weights) : weights_(weights) {}

    std::string text;

    void model(const ov::Model& model) {
        std::vector<std::shared_ptr<ov::Node>> nodes;
        for (const auto& parameter : model.get_parameters()) nodes.push_back(parameter);
        for (const auto& node : model.get_ordered_ops())
            if (!ov::is_type<ov::op::v0::Parameter>(node) && !ov::is_type<ov::op::v0::Result>(node))
                nodes.push_back(node);
        for (const auto& result : model.get_results()) nodes.push_back(result);
        Ids ids;
        for (const auto& node : nodes) ids.emplace(node.get(), ids.size());
        text += "<layers>\n";
        for (const auto& node : nodes) layer(*node, ids.at(node.get()));
        text += "</layers>\n<edges>\n";
        for (const auto& node : nodes) edges(*node, ids);
        text += "</edges>\n";
    }

private:
    using Ids = std::unordered_map<const ov::Node*, size_t>;

    void layer(const ov::Node& node, size_t id) {
        const auto& type = node.get_type_info();
        auto* foreign = dynamic_cast<const ov::op::util::FrameworkNode*>(&node);
        auto type_name = foreign ? foreign->get_attrs().get_type_name() : type_in_ir(type.name);
        auto version = foreign ? foreign->get_attrs().get_opset_name() : std::string(type.version_id ? type.version_id : "");
        text += "<layer" + attribute("id", id) + attribute("name", node.get_friendly_name()) +
                attribute("type", type_name) + attribute("version", version) + ">\n";
        data(node);
        auto* sub_graph = foreign ? nullptr : dynamic_cast<const SubGraph*>(&node);
        if (sub_graph) port_maps(*sub_graph);
        ports(node);
        if (sub_graph) bodies(*sub_graph);
        text += "</layer>\n";
    }

    void data(const ov::Node& node) {
        if (auto* constant = dynamic_cast<const ov::op::v0::Constant*>(&node)) {
            std::string shape;
            for (auto dim : constant->get_shape()) shape += (shape.empty() ? "" : ", ") + std::to_string(dim);
            text += "<data" + attribute("element_type", constant->get_element_type().get_type_name()) +
                    attribute("shape", shape) + place(*constant) + "/>\n";
            return;
        }
        auto attributes = attributes_of(node);
        if (attributes.empty()) return;
        text += "<data";
        for (const auto& [name, value] : attributes) text += attribute(name.c_str(), value);
        text += "/>\n";
    }

    std::string place(const ov::op::v0::Constant& constant) {
        auto place = weights_.add(constant);
        return attribute("offset", place.offset) + attribute("size", place.size);
    }

    void ports(const ov::Node& node) {
        auto inputs = inputs_of(node);
        text += "<input>";
        for (size_t k = 0; k < inputs; k++) text += "<port" + attribute("id", k) + "/>";
        text += "</input>\n<output>";
        auto is_result = ov::is_type<ov::op::v0::Result>(&node);
        for (size_t k = 0; !is_result && k < node.get_output_size(); k++) {
            std::string names;
            for (const auto& name : node.get_output_tensor(k).get_names()) names += (names.empty() ? "" : ",") + comma_free(name);
            text += "<port" + attribute("id", inputs + k) + (names.empty() ? "" : attribute("names", names)) + "/>";
        }
        text += "</output>\n";
    }

    static std::string comma_free(const std::string& name) {
        std::string out;
        for (char c : name) out += c == ',' ? std::string("\\,") : std::string(1, c);
        return out;
    }

    void edges(const ov::Node& node, const Ids& ids) {
        for (size_t k = 0; k < inputs_of(node); k++) {
            auto source = node.get_input_source_output(k);
            const auto* from = source.get_node();
            text += "<edge" + attribute("from-layer", ids.at(from)) +
                    attribute("from-port", inputs_of(*from) + source.get_index()) +
                    attribute("to-layer", ids.at(&node)) + attribute("to-port", k) + "/>\n";
        }
    }

    // The id that a body's parameter and result have: parameters come first, results last.
    static size_t parameter_id(const ov::Model&, size_t index) { return index; }
    static size_t result_id(const ov::Model& body, size_t index) {
        return body.get_ordered_ops().size() - body.get_results().size() + index;
    }

    static const char* body_element(const SubGraph& node, size_t index) {
        if (!ov::is_type<ov::op::v8::If>(&node)) return "body";
        return index == ov::op::v8::If::THEN_BODY_INDEX ? "then_body" : "else_body";
    }

    static std::string map_element(const SubGraph& node, size_t index) {
        std::string body = body_element(node, index);
        return body.substr(0, body.size() - 4) + "port_map";
    }

    void port_maps(const SubGraph& node) {
        std::string back_edges;
        for (size_t index = 0; index < node.get_internal_subgraphs_size(); index++) {
            const auto& body = *node.get_function(static_cast<int>(index));
            auto element = map_element(node, index);
            text += "<" + element + ">\n";
            for (const auto& input : node.get_input_descriptions(static_cast<int>(index))) {
                mapped_input(*input, body);
                if (auto* merged = dynamic_cast<const SubGraph::MergedInputDescription*>(input.get()))
                    back_edges += "<edge" + attribute("from-layer", result_id(body, merged->m_body_value_index)) +
                                  attribute("to-layer", parameter_id(body, input->m_body_parameter_index)) + "/>\n";
            }
            for (const auto& output : node.get_output_descriptions(static_cast<int>(index)))
                mapped_output(*output, body, node.get_input_size());
            if (auto* loop = dynamic_cast<const ov::op::v5::Loop*>(&node)) special_ports(*loop, body);
            text += "</" + element + ">\n";
        }
        if (!back_edges.empty()) text += "<back_edges>\n" + back_edges + "</back_edges>\n";
    }

    template <class Sliced>
    static std::string slices(const Sliced& sliced) {
        return attribute("axis", sliced.m_axis) + attribute("start", sliced.m_start) + attribute("end", sliced.m_end) +
               attribute("stride", sliced.m_stride) + attribute("part_size", sliced.m_part_size);
    }

    void mapped_input(const SubGraph::InputDescription& input, const ov::Model& body) {
        auto* sliced = dynamic_cast<const SubGraph::SliceInputDescription*>(&input);
        text += "<input" + attribute("external_port_id", input.m_input_index) +
                attribute("internal_layer_id", parameter_id(body, input.m_body_parameter_index)) +
                (sliced ? slices(*sliced) : "") + "/>\n";
    }

    void mapped_output(const SubGraph::OutputDescription& output, const ov::Model& body, size_t inputs) {
        auto* all = dynamic_cast<const SubGraph::ConcatOutputDescription*>(&output);
        text += "<output" + attribute("external_port_id", inputs + output.m_output_index) +
                attribute("internal_layer_id", result_id(body, output.m_body_value_index)) + (all ? slices(*all) : "") +
                "/>\n";
    }

    void special_ports(const ov::op::v5::Loop& loop, const ov::Model& body) {
        auto ports = loop.get_special_body_ports();
        if (ports.current_iteration_input_idx >= 0)
            text += "<input" + attribute("external_port_id", -1) +
                    attribute("internal_layer_id", parameter_id(body, ports.current_iteration_input_idx)) +
                    attribute("purpose", "current_iteration") + "/>\n";
        if (ports.body_condition_output_idx >= 0)
            text += "<output" + attribute("external_port_id", -1) +
                    attribute("internal_layer_id", result_id(body, ports.body_condition_output_idx)) +
                    attribute("purpose", "execution_condition") + "/>\n";
    }

    void bodies(const SubGraph& node) {
        for (size_t index = 0; index < node.get_internal_subgraphs_size(); index++) {
            std::string element = body_element(node, index);
            text += "<" + element + ">\n";
            model(*node.get_function(static_cast<int>(index)));
            text += "</" + element + ">\n";
        }
    }

    Weights& weights_;
};

}  // namespace

Ir to_ir(const std::shared_ptr<const ov::Model>& model) {
    Weights weights;
    Writer writer(weights);
    writer.text = "<?xml version=\"1.0\"?>\n<net" + attribute("name", model->get_friendly_name()) + " version=\"11\">\n";
    writer.model(*model);
    writer.text += "</net>\n";
    return {std::move(writer.text), std::move(weights.parts), weights.owner()};
}

std::string name_in_ir(const std::string& name) {
    std::string out;
    for (char c : name) {
        auto byte = static_cast<unsigned char>(c);
        out += byte < 0x20 && c != '\n' && c != '\r' && c != '\t' ? '?' : c;
    }
    return out;
}

ModelHandle read(const Ir& ir) {
    auto owner = std::make_unique<std::shared_ptr<void>>(ir.owner);
    Keeper keeper{owner.release(), [](void* object) { delete static_cast<std::shared_ptr<void>*>(object); }};
    EngineModel* model = nullptr;
    check(engine().read(text(ir.xml), {ir.parts.data(), ir.parts.size()}, keeper, &model));
    return ModelHandle(model, engine().free_model);
}

}  // namespace vinelift
