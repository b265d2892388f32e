#include "outbox/relay/destination.hpp"

#include <holdfast/error.hpp>

namespace HOLDFAST_NAMESPACE::detail::outbox {

destination_template::destination_template(std::string_view text) {
  const auto add_literal = [this](std::string_view literal) {
    if (literal.find('}') != std::string_view::npos)
      throw error(errc::invalid_argument,
                  "the destination has } without {; placeholders are {type}, {key} and "
                  "{aggregate_type}");
    if (!literal.empty()) parts_.push_back({field::literal, std::string(literal)});
  };
  while (true) {
    const auto open = text.find('{');
    add_literal(text.substr(0, open));
    if (open == std::string_view::npos) return;
    const auto close = text.find('}', open);
    const auto name = text.substr(open + 1, close == std::string_view::npos ? 0 : close - open - 1);
    if (name == "type") parts_.push_back({field::type});
    else if (name == "key") parts_.push_back({field::key});
    else if (name == "aggregate_type") parts_.push_back({field::aggregate_type});
    else
      throw error(errc::invalid_argument,
                  "the destination has an unknown placeholder; use {type}, {key} or "
                  "{aggregate_type}");
    text.remove_prefix(close + 1);
  }
}

std::string destination_template::expand(const holdfast::event& event) const {
  std::string result;
  for (const auto& part : parts_) {
    switch (part.source) {
      case field::literal:
        result += part.text;
        break;
      case field::type:
        result += event.type;
        break;
      case field::key:
        result += event.key;
        break;
      case field::aggregate_type:
        result += event.aggregate_type;
        break;
    }
  }
  return result;
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
