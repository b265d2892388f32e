#include <holdfast/key/cachekit.hpp>

#include "base/utf8.hpp"
#include "key/call_digest.hpp"

#include <algorithm>
#include <array>

namespace HOLDFAST_NAMESPACE::key {

using namespace holdfast::detail::key;

namespace {

constexpr std::size_t max_key_code_points = 250;
constexpr std::size_t kept_code_points = 50;
constexpr std::size_t max_function_name = 200;

void require_utf8(std::string_view text, const char* option) {
  if (!holdfast::detail::is_utf8(text))
    throw error(errc::ill_formed_text, std::string("the ") + option + " is not well-formed UTF-8",
                {.path = option});
}

/// Replaces every code point outside [A-Za-z0-9_.] by `_` and each run of dots by one dot, then
/// keeps the first 200 characters.
std::string sanitised(std::string_view name) {
  std::string result;
  for (const char c : name) {
    if (holdfast::detail::continues_code_point(c)) continue;
    const bool allowed = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                         (c >= '0' && c <= '9') || c == '_' || c == '.';
    if (c == '.' && !result.empty() && result.back() == '.') continue;
    result += allowed ? c : '_';
  }
  if (result.size() > max_function_name) result.resize(max_function_name);
  return result;
}

using code_entry = std::pair<std::string_view, std::string_view>;

/// Returns an empty text if the table does not contain the serializer.
std::string_view find_code(std::span<const code_entry> table, std::string_view serializer) {
  const auto entry = std::find_if(table.begin(), table.end(), [&](const code_entry& candidate) {
    return candidate.first == serializer;
  });
  return entry == table.end() ? std::string_view() : entry->second;
}

std::string serializer_code(std::string_view serializer, dialect version) {
  static constexpr std::array<code_entry, 5> py_0_17{
      {{"std", "s"}, {"auto", "a"}, {"orjson", "o"}, {"arrow", "w"}, {"local", "l"}}};
  if (version != dialect::current) {
    const auto table = std::span(py_0_17).first(version == dialect::v1_0 ? 4 : 5);
    const auto code = find_code(table, serializer);
    return std::string(code.empty() ? "s" : code);
  }
  static constexpr std::array<code_entry, 8> current{{{"default", "s"},
                                                      {"std", "s"},
                                                      {"standard", "s"},
                                                      {"auto", "a"},
                                                      {"pythonic", "a"},
                                                      {"orjson", "o"},
                                                      {"arrow", "w"},
                                                      {"local", "l"}}};
  if (serializer.empty())
    throw error(errc::invalid_argument,
                "the serializer's name is empty; use std, or the name of your serializer",
                {.path = "serializer"});
  const auto code = find_code(current, serializer);
  return code.empty() ? "x" + holdfast::detail::to_hex(blake2b_16(serializer)) : std::string(code);
}

}  // namespace

cachekit_keys::cachekit_keys(const cachekit_options& options) {
  require_utf8(options.ns, "namespace");
  require_utf8(options.module, "module");
  require_utf8(options.qualname, "qualname");
  require_utf8(options.serializer, "serializer");

  if (!options.ns.empty()) pattern_.append("ns:").append(options.ns).append(":");
  const auto name = std::string(options.module) + "." + std::string(options.qualname);
  pattern_.append("func:")
      .append(options.dialect == dialect::v1_0 ? name : sanitised(name))
      .append(":args:");
  for (char& c : pattern_) {
    if (c == ' ' || c == '\n' || c == '\r') c = '_';
  }
  hash_offset_ = pattern_.size();
  pattern_.append(digest256_hex_length, '0')
      .append(options.integrity ? ":1" : ":0")
      .append(serializer_code(options.serializer, options.dialect));
  shortened_ = holdfast::detail::count_code_points(pattern_) > max_key_code_points;
}

std::string cachekit_keys::from_digest(const unsigned char* digest) const {
  std::string full_key = pattern_;
  holdfast::detail::to_hex(digest, digest256_hex_length / 2, full_key.data() + hash_offset_);
  if (!shortened_) return full_key;

  const auto hash = blake2b_256(full_key);
  std::string key = full_key.substr(0, holdfast::detail::prefix_size(full_key, kept_code_points));
  key += ':';
  const auto hash_offset = key.size();
  key.resize(hash_offset + 32);
  holdfast::detail::to_hex(hash.data(), 16, key.data() + hash_offset);
  return key;
}

std::string cachekit_keys::from_call(detail::argument_writer write) const {
  return from_digest(hash_call(profile::cachekit_auto, write).data());
}

std::string cachekit_keys::from_bytes(std::string_view message_pack) const {
  return from_digest(blake2b_256(message_pack).data());
}

std::string cachekit_keys::of(std::span<const value> args,
                              std::span<const std::pair<std::string, value>> keywords) const {
  return from_call([&](writer& w) { detail::write_call(w, args, keywords); });
}

hashed_key cachekit_keys::explain(std::span<const value> args,
                                  std::span<const std::pair<std::string, value>> keywords) const {
  hashed_key result;
  const auto digest = explain_call(
      profile::cachekit_auto, [&](writer& w) { detail::write_call(w, args, keywords); }, result);
  result.key = from_digest(digest.data());
  return result;
}

}  // namespace HOLDFAST_NAMESPACE::key
