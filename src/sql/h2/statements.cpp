#include "sql/h2/statements.hpp"

#include <algorithm>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::sql::h2 {

const std::string* prepared_statements::find(std::string_view text,
                                             std::span<const postgres::oid> types) {
  const auto* cached = entries_.find(text);
  return cached != nullptr && std::ranges::equal(types, cached->types) ? &cached->name : nullptr;
}

std::string prepared_statements::name_for(std::string_view text) {
  // The same text with other types of parameters is another statement, and replaces this one.
  if (auto other_types = entries_.remove(text)) return std::move(other_types->name);
  if (entries_.size() < limit) return "hf_" + std::to_string(++names_);
  return entries_.remove_oldest().name;
}

const std::string& prepared_statements::add(std::string text, std::span<const postgres::oid> types,
                                            std::string name) {
  return entries_.add(std::move(text), {{types.begin(), types.end()}, std::move(name)}).name;
}

}  // namespace HOLDFAST_NAMESPACE::detail::sql::h2
