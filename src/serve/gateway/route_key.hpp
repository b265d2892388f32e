#pragma once

/// \file
/// The text from which the key of an answer is made: what is forwarded, and nothing else.

#include <holdfast/version.hpp>

#include "http/fields.hpp"
#include "http/target.hpp"
#include "serve/gateway/route.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve::gateway {

/// What the key of a request needs beside its fields.
struct key_source {
  /// Value of Host. Part of the key only if the route forwards it.
  std::string_view host{};
  std::string_view path{};
  std::string_view query{};
  bool has_query = false;
};

[[nodiscard]] key_source source_of(const http::target& target, std::string_view host) noexcept;

/// The target without the parameters that the route ignores.
[[nodiscard]] std::string target_text(const route& rules, const key_source& source);

/// Makes the texts of keys. GET and HEAD share them.
/// Thread-safety: immutable.
class route_keys {
 public:
  /// `secret` is the key of the hash that replaces credentials.
  explicit route_keys(std::string secret) : secret_(std::move(secret)) {}

  /// For a request. The values of Authorization and Cookie are hashed.
  [[nodiscard]] std::string of_request(const route& rules, const key_source& source,
                                       const http::fields& request) const;
  /// The keys of all answers of a target, for a route without `vary`; else the key of the entry
  /// that invalidates them: see `invalidation_key`.
  [[nodiscard]] static std::vector<std::string> of_target(const route& rules,
                                                          const key_source& source);
  /// A route with `vary` has any number of answers for a target. An invalid marker with this key
  /// invalidates those that are older.
  [[nodiscard]] static std::string invalidation_key(const route& rules, const key_source& source);

 private:
  std::string secret_;
};

/// Whether a client accepts gzip, which is all that is forwarded of Accept-Encoding.
[[nodiscard]] bool accepts_gzip(const http::fields& request);

/// A keyed hash of 128 bits, as hexadecimal digits.
[[nodiscard]] std::string keyed_hash(std::string_view secret, std::string_view text);

}  // namespace HOLDFAST_NAMESPACE::detail::serve::gateway
