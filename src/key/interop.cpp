#include <holdfast/key/interop.hpp>

#include "key/call_digest.hpp"

#include <algorithm>

namespace HOLDFAST_NAMESPACE::key {

using namespace holdfast::detail::key;

namespace {

std::string interop_key(const std::string& pattern, const digest256& digest) {
  std::string key = pattern;
  holdfast::detail::to_hex(digest.data(), digest.size(),
                           key.data() + key.size() - digest256_hex_length);
  return key;
}

/// Refuses an invalid segment. Repairing it could give the segment of another service.
void check_segment(std::string_view segment, const std::string& role) {
  const auto letter_or_digit = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
  };
  const auto allowed = [&](char c) {
    return letter_or_digit(c) || c == '.' || c == '_' || c == '-';
  };
  const auto fail = [&](const std::string& message) {
    throw error(errc::invalid_argument, "the " + role + " " + message, {.path = role});
  };
  if (segment.empty() || segment.size() > 64)
    fail("has " + std::to_string(segment.size()) + " characters; it must have 1 to 64");
  if (!letter_or_digit(segment.front())) fail("must begin with a lower-case letter or a digit");
  if (!std::all_of(segment.begin(), segment.end(), allowed))
    fail("may only contain a-z, 0-9, '.', '_' and '-'");
  if (segment.find("..") != std::string_view::npos) fail("must not contain '..'");
}

}  // namespace

interop_keys::interop_keys(std::string_view ns, std::string_view operation) {
  check_segment(ns, "namespace");
  check_segment(operation, "operation");
  if (ns == "ns" || ns == "nsapi") {
    throw error(errc::invalid_argument,
                "the namespace '" + std::string(ns) + "' is reserved; choose another",
                {.path = "namespace"});
  }
  pattern_.append(ns).append(":").append(operation).append(":").append(digest256_hex_length, '0');
}

std::string interop_keys::from_call(detail::argument_writer write) const {
  return interop_key(pattern_, hash_call(profile::interop_args, write));
}

std::string interop_keys::from_bytes(std::string_view message_pack) const {
  return interop_key(pattern_, blake2b_256(message_pack));
}

std::string interop_keys::of(std::span<const value> args) const {
  return from_call([args](writer& w) { detail::write_call(w, args); });
}

hashed_key interop_keys::explain(std::span<const value> args) const {
  hashed_key result;
  const auto digest = explain_call(
      profile::interop_args, [args](writer& w) { detail::write_call(w, args); }, result);
  result.key = interop_key(pattern_, digest);
  return result;
}

byte_string detail::encode_interop_value(argument_writer write) {
  byte_string bytes;
  output out(bytes);
  messagepack_writer w(profile::interop_value, out);
  write(w);
  out.flush();
  return bytes;
}

}  // namespace HOLDFAST_NAMESPACE::key
