#pragma once

/// \file
/// The failover scheme: keys as the Société Générale Failover library makes
/// them, in three layers. The arguments become a raw text (`active:EU`); the
/// raw text, under the point's effective name, becomes a UUID; and a row is
/// identified by (effective name, UUID).

#include <holdfast/key/keyable.hpp>
#include <holdfast/key/small_call.hpp>
#include <holdfast/key/value.hpp>
#include <holdfast/key/writer.hpp>
#include <holdfast/version.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::key {

/// What a key needs to know of a point.
struct point_info {
  std::string_view name;      ///< unique per engine; what logs say
  std::string_view domain{};  ///< shared namespace of keys and rows; blank means none
};

/// The namespace of keys and rows: the domain, verbatim, unless it is blank (Java's isBlank), else the name.
[[nodiscard]] HOLDFAST_API std::string_view effective_name(const point_info& point) noexcept;

/// How arguments become raw text.
enum class style : std::uint8_t {
  /// Two different argument lists of one signature never make the same text: `:` `,` `\` inside a segment are escaped, and null, empty
  /// text, empty and nested lists are told apart. For ordinary arguments it is the text that `exact` makes.
  escaped,
  /// Byte for byte what the Java library makes, collisions included: for tables shared with Java services.
  exact
};

/// How raw text becomes a row's key.
enum class row_hash : std::uint8_t {
  md5,     ///< UUID version 3 as Java's nameUUIDFromBytes; what the Java library makes
  blake2b  ///< UUID version 8 from BLAKE2b, keyed if there is a secret; for those who must not use MD5
};

/// Makes the raw text of a call by itself; replaces layer 1 completely.
/// It must be deterministic and without side effects: the same arguments give the same text when storing and when recovering.
using generator = std::function<std::string(const point_info& point, std::span<const value> args)>;

/// The generators that points may name.
/// Thread-safety: like a standard container.
class HOLDFAST_API generators {
 public:
  /// Holds `sorted_csv`: splits its one text argument at commas, trims, sorts and joins: `3, 2,1` is `1,2,3`.
  generators();

  /// Throws errc::duplicate when the name is taken, errc::invalid_argument when it is blank or the generator is empty.
  void add(std::string name, generator make);
  /// Throws errc::not_found, naming the known ones.
  [[nodiscard]] const generator& at(std::string_view name) const;

 private:
  std::map<std::string, generator, std::less<>> by_name_;
};

struct failover_options {
  key::style style = key::style::escaped;
  row_hash hash = row_hash::md5;
  std::string secret{};  ///< key of row_hash::blake2b, 16 to 64 bytes; empty means unkeyed. Rows are only found again with the same secret.
  std::string generator{};  ///< name of a custom generator; empty means the default rules
  /// Called once per type (up to 1,000 types) when style `exact` prints an object by its hash code, which is seldom stable.
  std::function<void(std::string_view point_name, std::string_view type)> on_unstable{};
};

namespace detail {

struct failover_view {
  std::string_view name;
  std::string_view effective_name;
  key::style style = key::style::escaped;
  row_hash hash = row_hash::md5;
  std::string_view secret{};
  const std::function<void(std::string_view)>* on_unstable = nullptr;
};

[[nodiscard]] HOLDFAST_API std::string failover_raw(const failover_view& how, argument_writer write);
[[nodiscard]] HOLDFAST_API std::string failover_key(const failover_view& how, argument_writer write);
[[nodiscard]] HOLDFAST_API std::string failover_key_of_raw(const failover_view& how, std::string_view raw);

}  // namespace detail

/// Makes the keys of one point. Everything that can be wrong with the point is found here, not at the first call.
/// Thread-safety: const after construction; share it freely.
class HOLDFAST_API failover_keys {
 public:
  /// Throws errc::invalid_argument (blank or ill-formed name, secret of a wrong size), errc::not_found (unknown generator).
  explicit failover_keys(const point_info& point, failover_options options = {}, const key::generators& known = {});

  /// Layer 1: the raw text.
  template <class... A>
  [[nodiscard]] std::string raw(const A&... args) const {
    if (has_generator()) return generate(std::vector<value>{to_value(args)...});
    return detail::failover_raw(view_, [&](writer& w) { detail::write_call<detail::failover_rules>(w, args...); });
  }
  /// Layers 1 and 2: the row's key, 36 characters. One heap allocation, the returned string's.
  template <class... A>
  [[nodiscard]] std::string operator()(const A&... args) const {
    if (has_generator()) return of_raw(generate(std::vector<value>{to_value(args)...}));
    if constexpr (sizeof...(A) > 0 && (detail::is_plain<A> && ...)) {
      detail::small_text raw;
      if (raw.write(view_.style == style::escaped, args...)) return of_raw(raw.text());
    }
    return detail::failover_key(view_, [&](writer& w) { detail::write_call<detail::failover_rules>(w, args...); });
  }
  /// The same for arguments that are only known at run time.
  [[nodiscard]] std::string raw_of(std::span<const value> args) const;
  [[nodiscard]] std::string of(std::span<const value> args) const { return of_raw(raw_of(args)); }
  /// Layer 2 alone.
  [[nodiscard]] std::string of_raw(std::string_view raw) const { return detail::failover_key_of_raw(view_, raw); }

  /// Layer 3: the row's name.
  [[nodiscard]] std::string_view effective_name() const noexcept { return view_.effective_name; }

 private:
  struct state;
  [[nodiscard]] bool has_generator() const noexcept;
  [[nodiscard]] std::string generate(const std::vector<value>& args) const;

  std::shared_ptr<const state> state_;
  detail::failover_view view_;  // refers to state_
};

/// The row's key of one call with the default options: `failover({.name = "country-by-code"}, "FR")`.
template <class... A>
[[nodiscard]] std::string failover(const point_info& point, const A&... args) {
  if constexpr (sizeof...(A) > 0 && (detail::is_plain<A> && ...)) {
    detail::small_text raw;
    if (raw.write(true, args...)) return detail::failover_key_of_raw({point.name, effective_name(point)}, raw.text());
  }
  return detail::failover_key({point.name, effective_name(point)},
                              [&](writer& w) { detail::write_call<detail::failover_rules>(w, args...); });
}

}  // namespace HOLDFAST_NAMESPACE::key
