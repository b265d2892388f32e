#pragma once

/// \file
/// Numbers over time: every 10 seconds for 6 hours in memory, and every minute for 30 days in the
/// state database, where they survive a restart.
///
/// A series has a name and a subject: `point.rate` of `countries`. In the database a row has one
/// hour of a series, as 60 numbers with commas between them; a minute without a number is empty.

#include <holdfast/clock.hpp>
#include <holdfast/version.hpp>

#include "serve/auth/state_database.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve {

struct series_id {
  std::string name{};     ///< `point.rate`
  std::string subject{};  ///< `countries`
  auto operator<=>(const series_id&) const = default;
};

struct series_value {
  series_id id{};
  double value = 0;
  /// The series begins with its first number that is not 0: most points never fail.
  bool starts_at_zero = true;
};

struct history_request {
  /// Names, or `name:subject` for one subject.
  std::vector<std::string> series{};
  timestamp begin_time{};
  timestamp end_time{};
  std::chrono::seconds step{};
};

struct history_answer {
  struct series {
    series_id id{};
    std::vector<double> values{};  ///< NaN: no number
  };
  std::vector<timestamp> moment{};
  std::vector<series> all{};
};

/// Thread-safety: may be called from any thread. `add` waits for the state database once a minute.
class history {
 public:
  static constexpr std::chrono::seconds fine_step{10};
  static constexpr std::chrono::hours fine_time{6};
  static constexpr std::chrono::days kept_time{30};
  /// Enough for 1,000 points that all fail. A series needs 9 KB.
  static constexpr std::size_t max_series = 4'000;
  static constexpr std::size_t max_numbers = 20'000;

  /// Creates its table. A state database that fails is not an error: see `failures`.
  /// Null: nothing survives the server. It must outlive the history.
  explicit history(state_database* database = nullptr);

  /// Adds the numbers of a moment. Ignores them if their 10 seconds, or later ones, have numbers
  /// already.
  void add(timestamp moment, const std::vector<series_value>& values);
  /// The first step contains `begin_time`, the last one `end_time`. Throws errc::invalid_argument
  /// if the request is invalid or has more than 20,000 numbers, and errors of the state database.
  [[nodiscard]] history_answer read(const history_request& request) const;
  /// Writes the current minute. Called when the server stops.
  void flush();

  /// Times that the state database failed.
  [[nodiscard]] std::uint64_t failures() const;

 private:
  static constexpr std::size_t fine_slots = fine_time / fine_step;
  static constexpr std::size_t minutes_of_hour = 60;
  using hour_values = std::array<float, minutes_of_hour>;

  struct series_data {
    std::vector<float> fine{};  // by the number of the slot, modulo fine_slots
    hour_values hour{};         // the current hour, by minutes
    double minute_sum = 0;
    unsigned minute_count = 0;
  };
  struct mean_value;
  struct stored_hour {
    std::int64_t hour = 0;
    series_id id{};
    std::string values{};
  };

  void load_hour(std::int64_t hour);
  series_data* find_or_add(const series_id& id, bool is_wanted = true);
  void forget_empty_series();
  void finish_minute();
  [[nodiscard]] std::vector<stored_hour> rows_of_hour() const;
  void store(const std::vector<stored_hour>& rows, std::int64_t oldest_hour);
  [[nodiscard]] std::vector<stored_hour> load(std::int64_t first, std::int64_t last,
                                              const std::vector<std::string>& selection) const;
  void add_fine_values(const series_data& data, std::int64_t first, std::int64_t end,
                       mean_value& mean) const;

  state_database* const database_;
  mutable std::mutex mutex_{};
  std::map<series_id, series_data> series_{};  // under mutex_, as all below
  std::int64_t slot_ = 0;                      // the last one that has numbers
  std::int64_t first_slot_ = 0;                // since the start
  std::int64_t minute_ = 0;                    // of the sums
  std::int64_t hour_ = 0;                      // of series_data::hour
  mutable std::uint64_t failures_ = 0;
  std::mutex store_mutex_{};  // held while rows are written, in the order of the minutes
};

}  // namespace HOLDFAST_NAMESPACE::detail::serve
