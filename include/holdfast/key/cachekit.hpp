#pragma once

/// \file
/// CacheKit's auto mode: `ns:{namespace}:func:{module}.{qualname}:args:{blake2b}:{ic}{code}`.
/// These keys name a function of one program and are meant for sharing a cache with CacheKit for Python. Services in
/// several languages share a cache through interop keys: see interop.hpp.

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

/// Which edition of the format. They differ in the function's name and the serializer's code, not in how arguments are hashed.
enum class dialect : std::uint8_t {
  current,  ///< the protocol of 2026-10: any serializer has a code, derived if need be
  py_0_17,  ///< cachekit-py 0.17: five codes, anything else is `s`
  seed      ///< the published document, protocol 1.0: the name verbatim, four codes, anything else is `s`
};

struct cachekit_options {
  std::string_view ns{};                    ///< the namespace; empty means none
  std::string_view module{};                ///< `myapp.services`
  std::string_view qualname{};              ///< `get_user`
  bool integrity = true;                    ///< values are kept in a ByteStorage envelope (see envelope.hpp), not as raw MessagePack
  std::string_view serializer = "std";      ///< what values are encoded with
  key::dialect dialect = dialect::current;  ///< see above
};

/// A key with what it was made from.
struct hashed_key {
  std::string key;
  std::string args_hash;     ///< 64 hexadecimal digits
  std::string message_pack;  ///< the bytes that were hashed
};

/// Makes the keys of one function: the fixed parts are prepared once.
/// Thread-safety: const after construction; share it freely.
class HOLDFAST_API cachekit_keys {
 public:
  /// Throws errc::invalid_argument (empty serializer in the current dialect) and errc::ill_formed_text.
  explicit cachekit_keys(const cachekit_options& options);

  /// The key of a call; keyword arguments are `kw("name", value)`. One heap allocation, the returned string's, for arguments of any size
  /// (maps of more than 16 entries allocate an index).
  template <class... A>
  [[nodiscard]] std::string operator()(const A&... args) const {
    if constexpr (sizeof...(A) < 16 && (detail::is_plain<A> && ...)) {
      detail::small_call call;
      call.add_byte(0x92);  // [args, kwargs]
      if (call.write(args...)) {
        call.add_byte(0x80);
        return of_bytes(call.bytes());
      }
    }
    return make([&](writer& w) { detail::write_call<detail::cachekit_rules>(w, args...); });
  }
  /// The same for arguments that are only known at run time.
  [[nodiscard]] std::string of(std::span<const value> args, std::span<const std::pair<std::string, value>> keywords = {}) const;
  [[nodiscard]] hashed_key explain(std::span<const value> args, std::span<const std::pair<std::string, value>> keywords = {}) const;

 private:
  [[nodiscard]] std::string make(detail::argument_writer write) const;
  [[nodiscard]] std::string of_bytes(std::string_view message_pack) const;
  [[nodiscard]] std::string finish(const unsigned char* digest) const;

  std::string pattern_;  // the key with zeros where the hash goes: one copy makes a new one
  std::size_t hash_at_;  // where that is
  bool shortened_;       // the whole is longer than 250 code points
};

/// One call, ad hoc.
template <class... A>
[[nodiscard]] std::string cachekit(const cachekit_options& options, const A&... args) {
  return cachekit_keys(options)(args...);
}

/// The key of a call of a C++ function, named as it is in the source: `of<&app::get_user>(42)`.
/// `app::get_user` becomes module `app`, qualname `get_user`. Overloads, lambdas and functions in anonymous namespaces do not compile.
template <auto Function, class... A>
[[nodiscard]] std::string of(const A&... args) {
  static const cachekit_keys keys({.module = function_name<Function>.module, .qualname = function_name<Function>.qualname});
  return keys(args...);
}

}  // namespace HOLDFAST_NAMESPACE::key
