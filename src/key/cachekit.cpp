#include <holdfast/key/cachekit.hpp>

#include "base/utf8.hpp"
#include "key/digest.hpp"
#include "key/messagepack_writer.hpp"
#include "key/output.hpp"

#include <algorithm>
#include <array>

namespace HOLDFAST_NAMESPACE::key {

namespace {

constexpr std::size_t max_key_code_points = 250;
constexpr std::size_t kept_code_points = 50;
constexpr std::size_t max_name = 200;

void require_utf8(std::string_view text, const char* what) {
  if (!is_utf8(text)) throw error(errc::ill_formed_text, std::string("the ") + what + " is not well-formed UTF-8", {.path = what});
}

/// Every code point outside [A-Za-z0-9_.] becomes `_`, runs of dots become one, and the first 200 characters count.
std::string sanitised(std::string_view name) {
  std::string result;
  for (const char c : name) {
    const auto u = static_cast<unsigned char>(c);
    if ((u & 0xC0U) == 0x80) continue;  // the rest of a character that is one `_` already
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
    if (c == '.' && !result.empty() && result.back() == '.') continue;
    result += plain ? c : '_';
  }
  if (result.size() > max_name) result.resize(max_name);
  return result;
}

using code_entry = std::pair<std::string_view, std::string_view>;

std::string_view code_in(std::span<const code_entry> table, std::string_view serializer) {
  const auto found = std::find_if(table.begin(), table.end(), [&](const code_entry& each) { return each.first == serializer; });
  return found == table.end() ? std::string_view() : found->second;
}

std::string serializer_code(std::string_view serializer, dialect edition) {
  static constexpr std::array<code_entry, 5> fixed{{{"std", "s"}, {"auto", "a"}, {"orjson", "o"}, {"arrow", "w"}, {"local", "l"}}};
  if (edition == dialect::seed || edition == dialect::py_0_17) {
    const auto known = std::span(fixed).first(edition == dialect::seed ? 4 : 5);
    const auto code = code_in(known, serializer);
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
    throw error(errc::invalid_argument, "the serializer's name is empty; use std, or the name of yours", {.path = "serializer"});
  const auto code = code_in(current, serializer);
  if (!code.empty()) return std::string(code);
  const auto digest = blake2b_16(serializer);
  return "x" + to_hex({reinterpret_cast<const char*>(digest.data()), digest.size()});
}

}  // namespace

cachekit_keys::cachekit_keys(const cachekit_options& options) {
  require_utf8(options.ns, "namespace");
  require_utf8(options.module, "module");
  require_utf8(options.qualname, "qualname");
  require_utf8(options.serializer, "serializer");

  if (!options.ns.empty()) pattern_.append("ns:").append(options.ns).append(":");
  const auto name = std::string(options.module) + "." + std::string(options.qualname);
  pattern_.append("func:").append(options.dialect == dialect::seed ? name : sanitised(name)).append(":args:");
  for (char& c : pattern_) {
    if (c == ' ' || c == '\n' || c == '\r') c = '_';
  }
  hash_at_ = pattern_.size();
  pattern_.append(digest256_hex_length, '0')
      .append(options.integrity ? ":1" : ":0")
      .append(serializer_code(options.serializer, options.dialect));
  shortened_ = count_code_points(pattern_) > max_key_code_points;
}

std::string cachekit_keys::finish(const unsigned char* digest) const {
  std::string whole = pattern_;
  to_hex(digest, digest256_hex_length / 2, whole.data() + hash_at_);
  if (!shortened_) return whole;

  const auto hash = blake2b_256(whole);
  std::string key = whole.substr(0, code_point_prefix(whole, kept_code_points));
  key += ':';
  const auto kept = key.size();
  key.resize(kept + 32);
  to_hex(hash.data(), 16, key.data() + kept);
  return key;
}

std::string cachekit_keys::make(detail::argument_writer write) const {
  blake2b_256_stream hash;
  output out = hash.sink();
  messagepack_writer w(profile::cachekit_auto, out);
  write(w);
  return finish(hash.finish(out).data());
}

std::string cachekit_keys::of_bytes(std::string_view message_pack) const { return finish(blake2b_256(message_pack).data()); }

std::string cachekit_keys::of(std::span<const value> args, std::span<const std::pair<std::string, value>> keywords) const {
  return make([&](writer& w) { detail::write_call(w, args, keywords); });
}

hashed_key cachekit_keys::explain(std::span<const value> args, std::span<const std::pair<std::string, value>> keywords) const {
  hashed_key result;
  output out(result.message_pack);
  messagepack_writer w(profile::cachekit_auto, out);
  detail::write_call(w, args, keywords);
  out.flush();
  const auto digest = blake2b_256(result.message_pack);
  result.args_hash = to_hex({reinterpret_cast<const char*>(digest.data()), digest.size()});
  result.key = finish(digest.data());
  return result;
}

}  // namespace HOLDFAST_NAMESPACE::key
