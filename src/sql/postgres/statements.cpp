#include "sql/postgres/statements.hpp"

#include "base/hex.hpp"

#include <endian.h>

#include <algorithm>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::sql::postgres {

std::string prepared_statements::name_of(std::string_view text, std::span<const oid> types) {
  // Two FNV-1a hashes make 128 bits: enough against accidental collisions. Untrusted input does not
  // reach the texts.
  std::uint64_t first = 0xcbf29ce484222325U;
  std::uint64_t second = 0x84222325cbf29ce4U;
  const auto mix = [&](std::uint64_t unit) {
    first = (first ^ unit) * 0x100000001b3U;
    second = (second ^ (unit + 0x9eU)) * 0x100000001b3U;
  };
  for (const char c : text) mix(static_cast<unsigned char>(c));
  for (const oid type : types) mix(type);
  std::string name = "hf_";
  for (std::uint64_t hash : {first, second}) {
    hash = htobe64(hash);
    append_hex(name, {reinterpret_cast<const char*>(&hash), sizeof hash});
  }
  return name;
}

const std::string* prepared_statements::find(std::string_view text, std::span<const oid> types) {
  const auto* cached = entries_.find(text);
  return cached != nullptr && std::ranges::equal(types, cached->types) ? &cached->name : nullptr;
}

const std::string* prepared_statements::obstacle_to(std::string_view text) const {
  if (const auto* cached = entries_.peek(text)) return &cached->name;
  return entries_.size() >= limit ? &entries_.oldest().name : nullptr;
}

void prepared_statements::add(std::string text, std::span<const oid> types, std::string name) {
  entries_.add(std::move(text), {{types.begin(), types.end()}, std::move(name)});
}

void prepared_statements::remove(std::string_view name) {
  entries_.remove_first([name](const entry& e) { return e.name == name; });
}

}  // namespace HOLDFAST_NAMESPACE::detail::sql::postgres
