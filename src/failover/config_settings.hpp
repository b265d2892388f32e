#pragma once

#include <holdfast/failover/expiry.hpp>
#include <holdfast/failover/scatter.hpp>
#include <holdfast/version.hpp>

#include "failover/config_file.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace HOLDFAST_NAMESPACE::config {

/// `1h30m`, `500ms`: digits and us, ms, s, m, h or d. Nothing for anything else, and for what does not fit.
[[nodiscard]] HOLDFAST_API std::optional<std::chrono::microseconds> parse_duration(std::string_view text) noexcept;
/// The same, `3 months`, `1 year`, or `policy:name`.
[[nodiscard]] HOLDFAST_API std::optional<expiry> parse_expiry(std::string_view text);

/// What the file says, checked against the table of keys. What is wrong is in `problems`, and is not among the settings.
class HOLDFAST_API settings {
 public:
  settings(const std::vector<file_value>& values, std::vector<problem>& problems);
  settings(const settings&) = delete;
  settings& operator=(const settings&) = delete;
  /// Wipes its texts: some are passwords and keys.
  ~settings();

  /// By the known name; nothing when the file does not say. `of` is the name of the point or tenant in the place of `*`.
  [[nodiscard]] std::optional<bool> flag(std::string_view key, std::string_view of = {}) const { return get<bool>(key, of); }
  [[nodiscard]] std::optional<std::size_t> count(std::string_view key, std::string_view of = {}) const { return get<std::size_t>(key, of); }
  [[nodiscard]] std::optional<double> rate(std::string_view key, std::string_view of = {}) const { return get<double>(key, of); }
  [[nodiscard]] std::optional<std::string> text(std::string_view key, std::string_view of = {}) const { return get<std::string>(key, of); }
  [[nodiscard]] std::optional<std::chrono::microseconds> duration(std::string_view key, std::string_view of = {}) const {
    return get<std::chrono::microseconds>(key, of);
  }
  [[nodiscard]] std::optional<holdfast::expiry> expiry(std::string_view key, std::string_view of = {}) const {
    return get<holdfast::expiry>(key, of);
  }
  [[nodiscard]] std::optional<holdfast::partial> partial(std::string_view key, std::string_view of = {}) const {
    return get<holdfast::partial>(key, of);
  }
  [[nodiscard]] std::vector<std::string> names(std::string_view key, std::string_view of = {}) const {
    return get<std::vector<std::string>>(key, of).value_or(std::vector<std::string>());
  }
  /// A choice, as the enumeration whose values have the order of known_key::choices.
  template <class Enumeration>
  [[nodiscard]] std::optional<Enumeration> choice(std::string_view key, std::string_view of = {}) const {
    const auto word = get<chosen>(key, of);
    if (!word) return std::nullopt;
    return static_cast<Enumeration>(word->index);
  }

  [[nodiscard]] bool has(std::string_view key, std::string_view of = {}) const { return find(key, of) != nullptr; }
  /// Where it stands; 0 when it does not.
  [[nodiscard]] std::size_t line(std::string_view key, std::string_view of = {}) const;
  /// The names that stand in the place of `*` below `section`: `failover.points`.
  [[nodiscard]] const std::set<std::string, std::less<>>& names_below(std::string_view section) const;
  /// Keys that are accepted and have no effect: a sentence each.
  [[nodiscard]] const std::vector<std::string>& warnings() const noexcept { return warnings_; }

 private:
  struct chosen {
    std::size_t index;
  };
  struct setting {
    std::variant<bool, std::size_t, double, std::string, std::chrono::microseconds, holdfast::expiry, holdfast::partial,
                 std::vector<std::string>, chosen>
        is;
    std::size_t line = 0;
  };

  template <class T>
  [[nodiscard]] std::optional<T> get(std::string_view key, std::string_view of) const {
    const auto* found = find(key, of);
    if (found == nullptr) return std::nullopt;
    return std::get<T>(found->is);
  }
  [[nodiscard]] const setting* find(std::string_view key, std::string_view of) const;
  void take(const file_value& value, std::vector<problem>& problems);
  /// Keeps the name in the place of `*`, and gives it.
  std::string remember_names(const key_path& path);
  /// The value as the key wants it; nothing when it is not that, and then `wanted` says what is.
  [[nodiscard]] static std::optional<setting> convert(const known_key& key, const file_value& value, std::string& wanted);

  std::map<std::string, setting, std::less<>> all_{};  // the known name, and behind a line break the name in the place of `*`
  std::map<std::string, std::set<std::string, std::less<>>, std::less<>> names_{};
  std::vector<std::string> warnings_{};
};

/// Assigns a setting to an option, if the file has that setting.
template <class T, class U>
void set(T& option, const std::optional<U>& setting) {
  if (setting) option = *setting;
}
template <class T>
void set(std::optional<T>& option, const std::optional<T>& setting) {
  if (setting) option = setting;
}
inline void set(std::chrono::milliseconds& option, const std::optional<std::chrono::microseconds>& setting) {
  if (setting) option = std::chrono::ceil<std::chrono::milliseconds>(*setting);
}

}  // namespace HOLDFAST_NAMESPACE::config
