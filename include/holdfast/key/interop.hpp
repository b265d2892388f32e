#pragma once

/// \file
/// CacheKit interop/v1 keys, `{namespace}:{operation}:{hash}`. Services in Python, Rust, TypeScript
/// and C++ make the same keys.
///
/// An interop value is one MessagePack document. encode_value writes it; decode_value in
/// cachekit/messagepack.hpp reads it.

#include <holdfast/key/cachekit.hpp>
#include <holdfast/key/keyable.hpp>
#include <holdfast/key/small_call.hpp>
#include <holdfast/key/value.hpp>
#include <holdfast/key/writer.hpp>
#include <holdfast/version.hpp>

#include <span>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::key {

/// Makes the keys of one operation.
/// Thread-safety: const after construction; can be shared by threads.
class HOLDFAST_API interop_keys {
 public:
  /// Both segments must match `[a-z0-9][a-z0-9._-]{0,63}` and must not contain `..`. The namespace
  /// must not be `ns` or `nsapi`. Throws errc::invalid_argument.
  interop_keys(std::string_view ns, std::string_view operation);

  /// The key of a call. Pass all arguments in declared order, including those with default values.
  /// Allocates only the returned string, except that sets, and maps of more than 16 entries, also
  /// allocate memory to sort in.
  template <class... A>
  [[nodiscard]] std::string operator()(const A&... args) const {
    if constexpr (sizeof...(A) < 16 && (detail::is_plain<A> && ...)) {
      detail::small_call call;
      if (call.write(args...)) return from_bytes(call.bytes());
    }
    return from_call([&](writer& w) { detail::write_call<detail::interop_rules>(w, args...); });
  }
  /// The same for arguments that are only known at run time.
  [[nodiscard]] std::string of(std::span<const value> args) const;
  [[nodiscard]] hashed_key explain(std::span<const value> args) const;

 private:
  [[nodiscard]] std::string from_call(detail::argument_writer write) const;
  [[nodiscard]] std::string from_bytes(std::string_view message_pack) const;

  std::string pattern_;  // "namespace:operation:" and zeros in place of the hash
};

/// The key of one call: `interop("users", "get_user", 42, true)`. To make several keys of one
/// operation, use interop_keys.
template <class... A>
[[nodiscard]] std::string interop(std::string_view ns, std::string_view operation,
                                  const A&... args) {
  return interop_keys(ns, operation)(args...);
}

namespace detail {
[[nodiscard]] HOLDFAST_API byte_string encode_interop_value(argument_writer write);
}

/// Encodes an interop value as canonical MessagePack. Floats stay floats; a C++ enumeration is
/// encoded as its number. NaN, infinities, sets, UUIDs, decimals, paths and run-time enumerators
/// are refused because some SDKs cannot read them.
template <class T>
[[nodiscard]] byte_string encode_value(const T& v) {
  return detail::encode_interop_value(
      [&v](writer& w) { detail::write_argument<detail::interop_rules>(w, v); });
}

}  // namespace HOLDFAST_NAMESPACE::key
