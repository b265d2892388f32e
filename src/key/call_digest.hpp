#pragma once

/// \file
/// Hashes the arguments of a call: canonical MessagePack, then BLAKE2b-256.

#include <holdfast/key/cachekit.hpp>
#include <holdfast/key/writer.hpp>
#include <holdfast/version.hpp>

#include "base/hex.hpp"
#include "key/digest.hpp"
#include "key/messagepack_writer.hpp"
#include "key/output.hpp"

#include <cstddef>

namespace HOLDFAST_NAMESPACE::detail::key {

/// Length of a 32-byte digest in hexadecimal digits.
inline constexpr std::size_t digest256_hex_length = 64;

/// Hashes the arguments while they are written. Does not allocate, except for sets.
[[nodiscard]] inline digest256 hash_call(profile rules,
                                         holdfast::key::detail::argument_writer write) {
  blake2b_256_stream hash;
  output out = hash.sink();
  messagepack_writer w(rules, out);
  write(w);
  return hash.finish(out);
}

/// Hashes the arguments and fills `explained.message_pack` and `explained.args_hash`.
[[nodiscard]] inline digest256 explain_call(profile rules,
                                            holdfast::key::detail::argument_writer write,
                                            hashed_key& explained) {
  output out(explained.message_pack);
  messagepack_writer w(rules, out);
  write(w);
  out.flush();
  const auto digest = blake2b_256(explained.message_pack);
  explained.args_hash = to_hex(digest);
  return digest;
}

}  // namespace HOLDFAST_NAMESPACE::detail::key
