#pragma once

/// \file
/// The failover scheme: the keys of the Société Générale Failover library. They have three layers:
///
/// 1. the arguments become a raw text, for example `active:EU`;
/// 2. the raw text, prefixed with the effective name of the point, becomes a UUID;
/// 3. (effective name, UUID) identifies a row.

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

/// The names of a point.
struct point_info {
  /// Unique per engine; appears in logs.
  std::string_view name;
  /// A namespace of keys and rows that several points can share; blank means none.
  std::string_view domain{};
};

/// The namespace of a point's keys and rows: the domain, unchanged, or the name if the domain is
/// blank (as Java's isBlank defines it).
[[nodiscard]] HOLDFAST_API std::string_view effective_name(const point_info& point) noexcept;

/// How arguments become raw text.
enum class style : std::uint8_t {
  /// Two different argument lists of one signature never have the same text: `:` `,` `\` inside a
  /// segment are escaped; null, empty text, empty lists and nested lists are distinct. Arguments
  /// without such characters and values have the same text as with `exact`.
  escaped,
  /// The same bytes as the Java library, including its collisions. Use it for tables that are
  /// shared with Java services.
  exact
};
/// The name of the enumerator, for example `escaped`. Does not change between versions.
[[nodiscard]] HOLDFAST_API std::string_view to_string(style key_style) noexcept;

/// How raw text becomes the key of a row.
enum class row_hash : std::uint8_t {
  /// UUID version 3 from MD5, as Java's nameUUIDFromBytes. The Java library uses it.
  md5,
  /// UUID version 8 from BLAKE2b, keyed if there is a secret. For systems that must not use MD5.
  blake2b
};
/// The name of the enumerator, for example `md5`. Does not change between versions.
[[nodiscard]] HOLDFAST_API std::string_view to_string(row_hash hash) noexcept;

/// Makes the raw text of a call and replaces layer 1 completely.
/// It must be deterministic and free of side effects: the text is made once when an answer is
/// stored and again when it is recovered.
using generator = std::function<std::string(const point_info& point, std::span<const value> args)>;

/// A registry of generators by name.
/// Thread-safety: that of a standard container.
class HOLDFAST_API generators {
 public:
  /// Contains `sorted_csv`. It splits its only argument, a text, at commas, trims the parts, sorts
  /// and joins them: `3, 2,1` becomes `1,2,3`.
  generators();

  /// Throws errc::duplicate if the name is registered already, errc::invalid_argument if the name
  /// is blank or the generator is empty.
  void add(std::string name, generator make);
  /// Throws errc::not_found; the message lists the registered names.
  [[nodiscard]] const generator& at(std::string_view name) const;

 private:
  std::map<std::string, generator, std::less<>> by_name_;
};

struct failover_options {
  key::style style = key::style::escaped;
  row_hash hash = row_hash::md5;
  /// Key of row_hash::blake2b, 16 to 64 bytes; empty means unkeyed. Rows can be found again only
  /// with the same secret.
  std::string secret{};
  /// Name of a custom generator; empty means the default rules.
  std::string generator{};
  /// Called once per type, for at most 1,000 types, when style `exact` prints an object as its hash
  /// code. Such a text usually changes between runs.
  std::function<void(std::string_view point_name, std::string_view type)> on_unstable{};
};

namespace detail {

/// The properties of a point that the functions below need. Its texts belong to the caller.
struct failover_view {
  std::string_view name;
  std::string_view effective_name;
  key::style style = key::style::escaped;
  row_hash hash = row_hash::md5;
  std::string_view secret{};
  const std::function<void(std::string_view)>* on_unstable = nullptr;
};
/// Layer 1, layers 1 and 2 of the arguments that `write` writes, and layer 2 of a raw text.
[[nodiscard]] HOLDFAST_API std::string failover_raw(const failover_view& point,
                                                    argument_writer write);
[[nodiscard]] HOLDFAST_API std::string failover_key(const failover_view& point,
                                                    argument_writer write);
[[nodiscard]] HOLDFAST_API std::string failover_key_of_raw(const failover_view& point,
                                                           std::string_view raw);

}  // namespace detail

/// Makes the keys of one point. The constructor validates the point and its options.
/// Thread-safety: const after construction; can be shared by threads.
class HOLDFAST_API failover_keys {
 public:
  /// Throws errc::invalid_argument (blank name, secret of a wrong size), errc::ill_formed_text
  /// (name or domain is not UTF-8), errc::not_found (unknown generator).
  explicit failover_keys(const point_info& point, failover_options options = {},
                         const key::generators& registry = {});

  /// Layer 1: the raw text.
  template <class... A>
  [[nodiscard]] std::string raw(const A&... args) const {
    if (has_generator()) return generate(std::vector<value>{to_value(args)...});
    return detail::failover_raw(
        view_, [&](writer& w) { detail::write_call<detail::failover_rules>(w, args...); });
  }
  /// Layers 1 and 2: the row's key, 36 characters. Allocates only the returned string.
  template <class... A>
  [[nodiscard]] std::string operator()(const A&... args) const {
    if (has_generator()) return of_raw(generate(std::vector<value>{to_value(args)...}));
    if constexpr (sizeof...(A) > 0 && (detail::is_plain<A> && ...)) {
      detail::small_text raw;
      if (raw.write(view_.style == style::escaped, args...)) return of_raw(raw.text());
    }
    return detail::failover_key(
        view_, [&](writer& w) { detail::write_call<detail::failover_rules>(w, args...); });
  }
  /// The same for arguments that are only known at run time.
  [[nodiscard]] std::string raw_of(std::span<const value> args) const;
  [[nodiscard]] std::string of(std::span<const value> args) const { return of_raw(raw_of(args)); }
  /// Layer 2 alone: the row's key of a raw text.
  [[nodiscard]] std::string of_raw(std::string_view raw) const {
    return detail::failover_key_of_raw(view_, raw);
  }

  /// Layer 3: the row's name.
  [[nodiscard]] std::string_view effective_name() const noexcept { return view_.effective_name; }

 private:
  struct state;
  [[nodiscard]] bool has_generator() const noexcept;
  [[nodiscard]] std::string generate(const std::vector<value>& args) const;

  std::shared_ptr<const state> state_;
  detail::failover_view view_;  // refers to state_
};

/// The row's key of one call with default options: `failover({.name = "country-by-code"}, "FR")`.
template <class... A>
[[nodiscard]] std::string failover(const point_info& point, const A&... args) {
  if constexpr (sizeof...(A) > 0 && (detail::is_plain<A> && ...)) {
    detail::small_text raw;
    if (raw.write(true, args...))
      return detail::failover_key_of_raw({point.name, effective_name(point)}, raw.text());
  }
  return detail::failover_key({point.name, effective_name(point)}, [&](writer& w) {
    detail::write_call<detail::failover_rules>(w, args...);
  });
}

}  // namespace HOLDFAST_NAMESPACE::key
