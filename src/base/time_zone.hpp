#pragma once

/// \file
/// Time zones of the system, read from its files (TZif, RFC 9636). The standard library of Debian
/// 12 does not have them.

#include <holdfast/version.hpp>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail {

/// The offsets of a time zone from UTC.
///
/// Thread-safety: immutable after construction.
class HOLDFAST_API time_zone {
 public:
  /// From this moment on, the offset applies.
  struct transition {
    std::chrono::sys_seconds begin{};
    std::chrono::seconds offset{};
  };

  /// UTC.
  time_zone() = default;
  /// Reads the zone with this name, for example `Europe/Paris`. Empty and `UTC` need no file. The
  /// file is read each time: the data of the system may be replaced while the program runs. Throws
  /// errc::invalid_argument if the name is not one of a zone, and errc::malformed for a file that
  /// cannot be read.
  [[nodiscard]] static time_zone load(std::string_view name);
  [[nodiscard]] static time_zone load(std::string_view name,
                                      const std::filesystem::path& directory);
  /// Parses the content of a file. Throws errc::malformed.
  [[nodiscard]] static time_zone parse(std::string_view bytes);

  /// The offset at this moment: local time is UTC plus the offset.
  [[nodiscard]] std::chrono::seconds offset_at(std::chrono::sys_seconds time) const;
  /// The first transition after this moment; nothing after the last one.
  [[nodiscard]] std::optional<transition> next_transition(std::chrono::sys_seconds time) const;

 private:
  /// The day of a year on which a rule begins or ends summer time.
  struct rule_day {
    enum class kind : std::uint8_t { month_week_day, julian, day_of_year };
    kind type = kind::month_week_day;
    int month = 0, week = 0, day = 0;
    std::chrono::seconds time{7200};
  };
  /// The rules after the last transition of the table.
  struct rules {
    std::chrono::seconds standard{};
    std::chrono::seconds summer{};
    rule_day begin{}, end{};
    bool has_summer = false;
  };
  class rule_parser;

  void read_table(std::string_view bytes, std::size_t time_size);
  [[nodiscard]] static std::chrono::sys_seconds moment_of(const rule_day& day, int year,
                                                          std::chrono::seconds offset);
  /// The transitions by the rules from the year before `time` to two years after it, in order.
  [[nodiscard]] std::vector<transition> rule_transitions(std::chrono::sys_seconds time) const;

  std::chrono::seconds first_offset_{};  ///< before the first transition
  std::vector<transition> transitions_{};
  std::optional<rules> rules_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail
