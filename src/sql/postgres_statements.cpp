#include "sql/postgres_statements.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace HOLDFAST_NAMESPACE::sql::postgres {

std::string prepared_statements::name_of(std::string_view text, std::span<const oid> types) {
  // FNV-1a in two lanes: 128 bits, so that two statements do not meet by chance. Nobody outside chooses the texts.
  std::uint64_t a = 0xcbf29ce484222325U;
  std::uint64_t b = 0x84222325cbf29ce4U;
  const auto mix = [&](std::uint64_t each) {
    a = (a ^ each) * 0x100000001b3U;
    b = (b ^ (each + 0x9eU)) * 0x100000001b3U;
  };
  for (const char c : text) mix(static_cast<unsigned char>(c));
  for (const oid t : types) mix(t);
  std::string result = "hf_";
  for (const auto lane : {a, b})
    for (int shift = 60; shift >= 0; shift -= 4) result += "0123456789abcdef"[(lane >> static_cast<unsigned>(shift)) & 0xFU];
  return result;
}

const std::string* prepared_statements::find(std::string_view text, std::span<const oid> types) {
  const auto found = by_text_.find(text);
  if (found == by_text_.end() || !std::equal(types.begin(), types.end(), found->second->types.begin(), found->second->types.end()))
    return nullptr;
  by_use_.splice(by_use_.begin(), by_use_, found->second);
  return &found->second->name;
}

const std::string* prepared_statements::in_the_way_of(std::string_view text) const {
  if (const auto found = by_text_.find(text); found != by_text_.end()) return &found->second->name;
  return by_use_.size() >= limit ? &by_use_.back().name : nullptr;
}

void prepared_statements::add(std::string text, std::span<const oid> types, std::string name) {
  by_use_.push_front({std::move(text), {types.begin(), types.end()}, std::move(name)});
  try {
    by_text_.emplace(by_use_.front().text, by_use_.begin());
  } catch (...) {
    by_use_.pop_front();
    throw;
  }
}

void prepared_statements::remove(std::string_view name) {
  const auto found = std::find_if(by_use_.begin(), by_use_.end(), [name](const entry& e) { return e.name == name; });
  if (found == by_use_.end()) return;
  by_text_.erase(found->text);
  by_use_.erase(found);
}

}  // namespace HOLDFAST_NAMESPACE::sql::postgres
