#pragma once

/// \file
/// CacheKit interop/v1: `{namespace}:{operation}:{hash}`, the one key that services in Python, Rust, TypeScript and C++ make alike.
/// Values travel as one plain MessagePack document: encode_value here, decode_value in messagepack.hpp.

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
/// Thread-safety: const after construction; share it freely.
class HOLDFAST_API interop_keys {
 public:
  /// Both segments must match `[a-z0-9][a-z0-9._-]{0,63}` and contain no `..`; the namespace must not be `ns` or `nsapi`.
  /// Throws errc::invalid_argument.
  interop_keys(std::string_view ns, std::string_view operation);

  /// The key of a call: all arguments in declared order, defaults filled in by the caller. One heap allocation, the returned string's
  /// (sets, and maps of more than 16 entries, allocate room to sort).
  template <class... A>
  [[nodiscard]] std::string operator()(const A&... args) const {
    if constexpr (sizeof...(A) < 16 && (detail::is_plain<A> && ...)) {
      detail::small_call call;
      if (call.write(args...)) return of_bytes(call.bytes());
    }
    return make([&](writer& w) { detail::write_call<detail::interop_rules>(w, args...); });
  }
  /// The same for arguments that are only known at run time.
  [[nodiscard]] std::string of(std::span<const value> args) const;
  [[nodiscard]] hashed_key explain(std::span<const value> args) const;

 private:
  [[nodiscard]] std::string make(detail::argument_writer write) const;
  [[nodiscard]] std::string of_bytes(std::string_view message_pack) const;

  std::string pattern_;  // "namespace:operation:" and zeros where the hash goes: one copy makes a new one
};

/// One call, ad hoc: `interop("users", "get_user", 42, true)`.
template <class... A>
[[nodiscard]] std::string interop(std::string_view ns, std::string_view operation, const A&... args) {
  return interop_keys(ns, operation)(args...);
}

namespace detail {
[[nodiscard]] HOLDFAST_API byte_string encode_interop_value(argument_writer write);
}

/// One interop value as canonical MessagePack. Floats stay floats; a C++ enumeration is its number. NaN, infinities, sets, UUIDs, decimals,
/// paths and run-time enumerators are refused: not every SDK could read them.
template <class T>
[[nodiscard]] byte_string encode_value(const T& v) {
  return detail::encode_interop_value([&v](writer& w) { detail::write_argument<detail::interop_rules>(w, v); });
}

}  // namespace HOLDFAST_NAMESPACE::key
