#pragma once

/// \file
/// The values of serve.toml, checked against the table of keys.

#include "failover/config/file.hpp"
#include "serve/config/keys.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve::config {

using failover::config::file_value;
using failover::config::problem;

/// Invalid values are reported as problems and are not part of the values. `name` stands for the
/// `*` of a key.
/// Thread-safety: immutable.
class config_values {
 public:
  config_values(const std::vector<file_value>& file, std::vector<problem>& problems);
  config_values(const config_values&) = delete;
  config_values& operator=(const config_values&) = delete;
  /// Wipes its texts: some are passwords.
  ~config_values();

  /// Sets an option if the file has the key.
  void read(std::string& option, std::string_view key, std::string_view name = {}) const;
  void read(std::vector<std::string>& option, std::string_view key,
            std::string_view name = {}) const;
  void read(bool& option, std::string_view key, std::string_view name = {}) const;
  void read(std::size_t& option, std::string_view key, std::string_view name = {}) const;
  void read(std::chrono::milliseconds& option, std::string_view key,
            std::string_view name = {}) const;
  /// The index of a word in known_key::choices.
  [[nodiscard]] std::optional<std::size_t> choice(std::string_view key,
                                                  std::string_view name = {}) const;
  /// The line of a key; 0 if the file does not have it.
  [[nodiscard]] std::size_t line(std::string_view key, std::string_view name = {}) const;
  /// Whether the file takes the value from an environment variable.
  [[nodiscard]] bool from_environment(std::string_view key, std::string_view name = {}) const;
  /// The names below `stores`, `outboxes`, `gateway.routes` or `serve.clients`, in the order of the
  /// file, with their lines.
  [[nodiscard]] const std::vector<std::pair<std::string, std::size_t>>& names_below(
      std::string_view section) const;

  /// The value for people: without passwords. Empty if the file does not have the key.
  [[nodiscard]] std::string shown(const known_key& key, std::string_view name = {}) const;

 private:
  struct chosen {
    std::size_t index;
  };
  struct setting {
    std::variant<bool, std::size_t, std::string, std::chrono::milliseconds,
                 std::vector<std::string>, chosen>
        value;
    std::size_t line = 0;
    std::string shown{};
    bool from_environment = false;
  };
  void add(const file_value& value, std::vector<problem>& problems);
  void remember_name(const key_path& path, std::size_t line);
  [[nodiscard]] const setting* find(std::string_view key, std::string_view name) const;
  [[nodiscard]] static std::optional<setting> convert(const known_key& key, const file_value& value,
                                                      std::string& expected);

  std::map<std::string, setting, std::less<>> settings_{};
  std::map<std::string, std::vector<std::pair<std::string, std::size_t>>, std::less<>> names_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail::serve::config
