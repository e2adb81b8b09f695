#include "attributes.hpp"

#include <cstdio>
#include <openvino/core/attribute_visitor.hpp>
#include <openvino/core/dimension.hpp>
#include <openvino/core/partial_shape.hpp>
#include <openvino/core/type/element_type.hpp>
#include <openvino/op/loop.hpp>
#include <openvino/op/util/multi_subgraph_base.hpp>
#include <openvino/op/util/variable.hpp>
#include <set>

namespace vinelift {
namespace {

std::string number(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.17g", value);
    return text;
}

std::string number(float value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.9g", value);
    return text;
}

const std::string& number(const std::string& text) { return text; }

template <class T>
std::string number(T value) {
    return std::to_string(value);
}

template <class List>
std::string list(const List& values) {
    std::string text;
    for (const auto& value : values) {
        text += text.empty() ? "" : ", ";
        text += number(value);
    }
    return text;
}

std::string shape(const ov::PartialShape& shape) {
    if (shape.rank().is_dynamic()) return "...";
    std::string text;
    for (const auto& dim : shape) {
        text += text.empty() ? "" : ",";
        text += dim.to_string();
    }
    return text;
}

class Visitor : public ov::AttributeVisitor {
public:
    Attributes attributes;

    using ov::AttributeVisitor::on_adapter;

    void on_adapter(const std::string& name, ov::ValueAccessor<void>& adapter) override {
        using ov::op::util::MultiSubGraphOp;
        using Inputs = ov::AttributeAdapter<std::vector<std::shared_ptr<MultiSubGraphOp::InputDescription>>>;
        using Outputs = ov::AttributeAdapter<std::vector<std::shared_ptr<MultiSubGraphOp::OutputDescription>>>;
        using SpecialPorts = ov::AttributeAdapter<ov::op::v5::Loop::SpecialBodyPorts>;
        // These are not attributes in IR, but its port maps.
        if (ov::is_type<Inputs>(&adapter) || ov::is_type<Outputs>(&adapter) || ov::is_type<SpecialPorts>(&adapter))
            return;
        if (auto* variable = ov::as_type<ov::AttributeAdapter<std::shared_ptr<ov::op::util::Variable>>>(&adapter)) {
            add(name, variable->get() ? variable->get()->get_info().variable_id : "");
        } else if (auto* partial = ov::as_type<ov::AttributeAdapter<ov::PartialShape>>(&adapter)) {
            add(name, shape(partial->get()));
        } else if (auto* dim = ov::as_type<ov::AttributeAdapter<ov::Dimension>>(&adapter)) {
            add(name, dim->get().to_string());
        } else if (auto* names = ov::as_type<ov::AttributeAdapter<std::set<std::string>>>(&adapter)) {
            add(name, list(names->get()));
        } else if (auto* types = ov::as_type<ov::AttributeAdapter<ov::element::TypeVector>>(&adapter)) {
            std::vector<std::string> type_names;
            for (const auto& type : types->get()) type_names.push_back(type.get_type_name());
            add(name, list(type_names));
        } else {
            // The engine refuses a layer with an attribute that it does not know, by name.
            add("unreadable_" + name, "");
        }
    }

    void on_adapter(const std::string& name, ov::ValueAccessor<bool>& adapter) override {
        add(name, adapter.get() ? "true" : "false");
    }
    void on_adapter(const std::string& name, ov::ValueAccessor<std::string>& adapter) override {
        add(name, adapter.get());
    }
    void on_adapter(const std::string& name, ov::ValueAccessor<int64_t>& adapter) override { add_number(name, adapter); }
    void on_adapter(const std::string& name, ov::ValueAccessor<double>& adapter) override { add_number(name, adapter); }
    void on_adapter(const std::string& name, ov::ValueAccessor<float>& adapter) override { add_number(name, adapter); }
    void on_adapter(const std::string& name, ov::ValueAccessor<int32_t>& adapter) override { add_number(name, adapter); }
    void on_adapter(const std::string& name, ov::ValueAccessor<uint64_t>& adapter) override {
        add_number(name, adapter);
    }
    void on_adapter(const std::string& name, ov::ValueAccessor<std::vector<int32_t>>& adapter) override {
        add_list(name, adapter);
    }
    void on_adapter(const std::string& name, ov::ValueAccessor<std::vector<int64_t>>& adapter) override {
        add_list(name, adapter);
    }
    void on_adapter(const std::string& name, ov::ValueAccessor<std::vector<uint64_t>>& adapter) override {
        add_list(name, adapter);
    }
    void on_adapter(const std::string& name, ov::ValueAccessor<std::vector<float>>& adapter) override {
        add_list(name, adapter);
    }
    void on_adapter(const std::string& name, ov::ValueAccessor<std::vector<double>>& adapter) override {
        add_list(name, adapter);
    }
    void on_adapter(const std::string& name, ov::ValueAccessor<std::vector<std::string>>& adapter) override {
        add_list(name, adapter);
    }
    // Bodies are written apart from the attributes.
    void on_adapter(const std::string&, ov::ValueAccessor<std::shared_ptr<ov::Model>>&) override {}

private:
    void add(const std::string& name, const std::string& value) { attributes.emplace_back(name, value); }

    template <class Accessor>
    void add_number(const std::string& name, Accessor& adapter) {
        add(name, number(adapter.get()));
    }

    template <class Accessor>
    void add_list(const std::string& name, Accessor& adapter) {
        add(name, list(adapter.get()));
    }
};

}  // namespace

Attributes attributes_of(const ov::Node& node) {
    Visitor visitor;
    // The visitor only reads, but visits nodes that it may write.
    const_cast<ov::Node&>(node).visit_attributes(visitor);
    return std::move(visitor.attributes);
}

}  // namespace vinelift
