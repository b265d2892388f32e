#pragma once

/// \file
/// The values of a configuration file, checked and converted to the types of options.

#include <holdfast/failover/expiry.hpp>
#include <holdfast/failover/scatter.hpp>

#include "failover/config/file.hpp"

#include <set>
#include <type_traits>

namespace HOLDFAST_NAMESPACE::detail::failover::config {

/// Parses a duration such as `1h30m` or `500ms`, with the units us, ms, s, m, h and d. Returns
/// nothing if it is invalid or too long.
[[nodiscard]] HOLDFAST_API std::optional<std::chrono::microseconds> parse_duration(
    std::string_view text) noexcept;
/// Parses a duration, `3 months`, `1 year`, or `policy:name`.
[[nodiscard]] HOLDFAST_API std::optional<holdfast::expiry> parse_expiry(std::string_view text);

/// `U` of `std::optional<U>`, else T.
template <class T>
struct option_type {
  using type = T;
};
template <class T>
struct option_type<std::optional<T>> {
  using type = T;
};
template <class T>
using option_type_t = typename option_type<T>::type;
/// The type in which a setting for an option of type T is stored.
template <class T>
using setting_type = std::conditional_t<std::is_same_v<option_type_t<T>, std::chrono::milliseconds>,
                                        std::chrono::microseconds, option_type_t<T>>;

/// The settings of a file, checked against the table of keys. Invalid values are reported as
/// problems and are not part of the settings.
///
/// Keys are names of the table. `name` is the name of the point or tenant that `*` stands for.
class HOLDFAST_API settings {
 public:
  settings(const std::vector<file_value>& values, std::vector<problem>& problems);
  settings(const settings&) = delete;
  settings& operator=(const settings&) = delete;
  /// Wipes its texts: some are passwords and keys.
  ~settings();

  /// The value of a key, or nothing if the file does not have it. T must fit the kind of the key.
  template <class T>
  [[nodiscard]] std::optional<T> get(std::string_view key, std::string_view name = {}) const {
    const auto* stored = find(key, name);
    if (stored == nullptr) return std::nullopt;
    return std::get<T>(stored->value);
  }
  /// A choice, as an enumeration whose values have the order of known_key::choices.
  template <class Enumeration>
  [[nodiscard]] std::optional<Enumeration> choice(std::string_view key,
                                                  std::string_view name = {}) const {
    const auto word = get<chosen>(key, name);
    if (!word) return std::nullopt;
    return static_cast<Enumeration>(word->index);
  }
  /// Sets an option if the file has the key. Durations are rounded up to the unit of the option.
  template <class T>
  void read(T& option, std::string_view key, std::string_view name = {}) const {
    const auto value = get<setting_type<T>>(key, name);
    if (!value) return;
    if constexpr (std::is_same_v<T, std::chrono::milliseconds>)
      option = std::chrono::ceil<std::chrono::milliseconds>(*value);
    else if constexpr (std::is_same_v<T, std::remove_const_t<decltype(value)>>) option = value;
    else option = *value;
  }
  template <class T>
  void read_choice(T& option, std::string_view key, std::string_view name = {}) const {
    const auto value = choice<option_type_t<T>>(key, name);
    if (!value) return;
    if constexpr (std::is_same_v<T, std::remove_const_t<decltype(value)>>) option = value;
    else option = *value;
  }

  [[nodiscard]] bool has(std::string_view key, std::string_view name = {}) const {
    return find(key, name) != nullptr;
  }
  /// The line of a key in the file; 0 if the file does not have it.
  [[nodiscard]] std::size_t line(std::string_view key, std::string_view name = {}) const;
  /// The names under a section: `failover.points` or `failover.store.multitenant.tenants`.
  [[nodiscard]] const std::set<std::string, std::less<>>& names_below(
      std::string_view section) const;
  /// One sentence for each key without effect.
  [[nodiscard]] const std::vector<std::string>& warnings() const noexcept { return warnings_; }

 private:
  /// The index of a word in known_key::choices.
  struct chosen {
    std::size_t index;
  };
  struct setting {
    std::variant<bool, std::size_t, double, std::string, std::chrono::microseconds,
                 holdfast::expiry, holdfast::partial, std::vector<std::string>, chosen>
        value;
    std::size_t line = 0;
  };

  [[nodiscard]] const setting* find(std::string_view key, std::string_view name) const;
  void add(const file_value& value, std::vector<problem>& problems);
  /// Records the name at the position of `*` and returns it; empty if the path has none.
  std::string remember_name(const key_path& path);
  /// Converts a value to the kind of its key. If it does not fit, returns nothing and sets
  /// `expected` to a description of valid values.
  [[nodiscard]] static std::optional<setting> convert(const known_key& key, const file_value& value,
                                                      std::string& expected);

  // By the key, or the key, a line break and the name that `*` stands for.
  std::map<std::string, setting, std::less<>> settings_{};
  std::map<std::string, std::set<std::string, std::less<>>, std::less<>> names_{};
  std::vector<std::string> warnings_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail::failover::config
