#pragma once

/// \file
/// CacheKit's auto mode: `ns:{namespace}:func:{module}.{qualname}:args:{blake2b}:{ic}{code}`.
/// `ic` is 1 if the values have an envelope, and 0 if not; `code` names their serializer.
/// An auto-mode key names a function of one program. Use it to share a cache with CacheKit for
/// Python. Services in several languages share a cache through interop keys: see interop.hpp.

#include <holdfast/key/function_name.hpp>
#include <holdfast/key/keyable.hpp>
#include <holdfast/key/small_call.hpp>
#include <holdfast/key/value.hpp>
#include <holdfast/key/writer.hpp>
#include <holdfast/version.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace HOLDFAST_NAMESPACE::key {

/// Version of the key format. The versions differ in the function's name and the serializer's code;
/// they hash arguments alike.
enum class dialect : std::uint8_t {
  /// The protocol of 2026-10. Every serializer has a code; for unknown names it is derived.
  current = 0,
  /// cachekit-py 0.17. Five serializers have a code; all others get `s`.
  py_0_17 = 1,
  /// Protocol 1.0, the published document. The name is verbatim; four serializers have a code; all
  /// others get `s`.
  v1_0 = 2,
  seed = v1_0  // former name
};
/// The name of the enumerator, for example `current`. Does not change between versions.
[[nodiscard]] HOLDFAST_API std::string_view to_string(dialect version) noexcept;

struct cachekit_options {
  /// The cache's namespace; empty means none.
  std::string_view ns{};
  /// For example `myapp.services`.
  std::string_view module{};
  /// For example `get_user`.
  std::string_view qualname{};
  /// Whether values are stored in a ByteStorage envelope (see cachekit/envelope.hpp) rather than as
  /// plain MessagePack.
  bool integrity = true;
  /// The name of the serializer that encodes the values.
  std::string_view serializer = "std";
  key::dialect dialect = dialect::current;
};

/// A key and what it was made from.
struct hashed_key {
  std::string key;
  /// The hash of the arguments: 64 hexadecimal digits.
  std::string args_hash;
  /// The bytes that were hashed.
  std::string message_pack;
};

/// Makes the keys of one function. The constant parts of the key are prepared once.
/// Thread-safety: const after construction; can be shared by threads.
class HOLDFAST_API cachekit_keys {
 public:
  /// Throws errc::invalid_argument for an empty serializer in the current dialect,
  /// errc::ill_formed_text if a text is not UTF-8.
  explicit cachekit_keys(const cachekit_options& options);

  /// The key of a call. Keyword arguments are `kw("name", value)`. Allocates only the returned
  /// string, for arguments of any size, except that a map of more than 16 entries also allocates an
  /// index.
  template <class... A>
  [[nodiscard]] std::string operator()(const A&... args) const {
    if constexpr (sizeof...(A) < 16 && (detail::is_plain<A> && ...)) {
      detail::small_call call;
      call.add_byte(0x92);  // an array of two: [args, kwargs]
      if (call.write(args...)) {
        call.add_byte(0x80);  // no keyword arguments
        return from_bytes(call.bytes());
      }
    }
    return from_call([&](writer& w) { detail::write_call<detail::cachekit_rules>(w, args...); });
  }
  /// The same for arguments that are only known at run time.
  [[nodiscard]] std::string of(std::span<const value> args,
                               std::span<const std::pair<std::string, value>> keywords = {}) const;
  [[nodiscard]] hashed_key explain(
      std::span<const value> args,
      std::span<const std::pair<std::string, value>> keywords = {}) const;

 private:
  [[nodiscard]] std::string from_call(detail::argument_writer write) const;
  [[nodiscard]] std::string from_bytes(std::string_view message_pack) const;
  [[nodiscard]] std::string from_digest(const unsigned char* digest) const;

  std::string pattern_;      // the key with zeros in place of the hash
  std::size_t hash_offset_;  // of the hash in pattern_
  bool shortened_;           // pattern_ is longer than 250 code points
};

/// The key of one call. To make several keys of one function, use cachekit_keys.
template <class... A>
[[nodiscard]] std::string cachekit(const cachekit_options& options, const A&... args) {
  return cachekit_keys(options)(args...);
}

/// The key of a call of a C++ function: `of<&app::get_user>(42)`. The names come from the source:
/// `app::get_user` has the module `app` and the qualname `get_user`. Overloaded functions, lambdas
/// and functions in anonymous namespaces do not compile.
template <auto Function, class... A>
[[nodiscard]] std::string of(const A&... args) {
  static const cachekit_keys keys(
      {.module = function_name<Function>.module, .qualname = function_name<Function>.qualname});
  return keys(args...);
}

}  // namespace HOLDFAST_NAMESPACE::key
