#include <holdfast/key/interop.hpp>

#include "key/digest.hpp"
#include "key/messagepack_writer.hpp"
#include "key/output.hpp"

#include <algorithm>

namespace HOLDFAST_NAMESPACE::key {

namespace {

std::string with_digest(const std::string& pattern, const digest256& digest) {
  std::string key = pattern;
  to_hex(digest.data(), digest.size(), key.data() + key.size() - digest256_hex_length);
  return key;
}

/// Refused, never repaired: a repaired segment would be another service's.
void check_segment(std::string_view segment, const std::string& what) {
  const auto letter_or_digit = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  const auto plain = [&](char c) { return letter_or_digit(c) || c == '.' || c == '_' || c == '-'; };
  const auto fail = [&](const std::string& message) { throw error(errc::invalid_argument, message, {.path = what}); };
  if (segment.empty() || segment.size() > 64)
    fail("the " + what + " has " + std::to_string(segment.size()) + " characters; it must have 1 to 64");
  if (!letter_or_digit(segment.front())) fail("the " + what + " must begin with a lower-case letter or a digit");
  if (!std::all_of(segment.begin(), segment.end(), plain)) fail("the " + what + " may only contain a-z, 0-9, '.', '_' and '-'");
  if (segment.find("..") != std::string_view::npos) fail("the " + what + " must not contain '..'");
}

}  // namespace

interop_keys::interop_keys(std::string_view ns, std::string_view operation) {
  check_segment(ns, "namespace");
  check_segment(operation, "operation");
  if (ns == "ns" || ns == "nsapi") {
    throw error(errc::invalid_argument, "the namespace '" + std::string(ns) + "' is reserved; choose another", {.path = "namespace"});
  }
  pattern_.append(ns).append(":").append(operation).append(":").append(digest256_hex_length, '0');
}

std::string interop_keys::make(detail::argument_writer write) const {
  blake2b_256_stream hash;
  output out = hash.sink();
  messagepack_writer w(profile::interop_args, out);
  write(w);
  return with_digest(pattern_, hash.finish(out));
}

std::string interop_keys::of_bytes(std::string_view message_pack) const { return with_digest(pattern_, blake2b_256(message_pack)); }

std::string interop_keys::of(std::span<const value> args) const {
  return make([args](writer& w) { detail::write_call(w, args); });
}

hashed_key interop_keys::explain(std::span<const value> args) const {
  hashed_key result;
  output out(result.message_pack);
  messagepack_writer w(profile::interop_args, out);
  detail::write_call(w, args);
  out.flush();
  const auto digest = blake2b_256(result.message_pack);
  result.args_hash = to_hex({reinterpret_cast<const char*>(digest.data()), digest.size()});
  result.key = pattern_;
  result.key.replace(result.key.size() - digest256_hex_length, digest256_hex_length, result.args_hash);
  return result;
}

namespace detail {

byte_string encode_interop_value(argument_writer write) {
  std::string bytes;
  output out(bytes);
  messagepack_writer w(profile::interop_value, out);
  write(w);
  out.flush();
  const auto* begin = reinterpret_cast<const std::byte*>(bytes.data());
  return {begin, begin + bytes.size()};
}

}  // namespace detail

}  // namespace HOLDFAST_NAMESPACE::key
