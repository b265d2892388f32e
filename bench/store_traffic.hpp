#pragma once

/// \file
/// What is written and read when a store is measured, and the tables it is written to: the same work for both sides.

#include <holdfast/store.hpp>

#include "store_floor.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::bench {

inline constexpr std::string_view name = "bench.country";
inline constexpr std::uint64_t few = 1'000;
inline constexpr std::uint64_t many = 1'000'000;
/// Of each ten rows the first expires early, so that a tenth can be removed later. Everything else is measured on the other nine.
inline constexpr std::uint64_t tenth = 10;
inline constexpr auto kept = std::chrono::hours(24);
inline constexpr auto kept_early = std::chrono::hours(1);

/// The raw client library of a database. Throws errc::invalid_argument when this build has none for it.
[[nodiscard]] std::unique_ptr<store_floor> connect_floor(const store_place& place);

/// Tables that are gone when this is, whatever happened.
class tables {
 public:
  tables(store_place place, store_floor& with) : place_(std::move(place)), with_(with) {}
  tables(const tables&) = delete;
  tables& operator=(const tables&) = delete;
  ~tables() {
    for (const std::string& each : names_) {
      if (!dropped(each, with_)) dropped_anew(each);
    }
  }

  /// To be dropped at the end.
  std::string add(const std::string& prefix) {
    names_.push_back(prefix + "HOLDFAST_LEASE");
    return names_.emplace_back(prefix + "FAILOVER_STORE");
  }

 private:
  static bool dropped(const std::string& table, store_floor& with) noexcept {
    try {
      with.run("DROP TABLE IF EXISTS " + table);
      return true;
    } catch (...) {
      return false;
    }
  }
  /// The connection may have been what failed.
  void dropped_anew(const std::string& table) const noexcept {
    try {
      (void)dropped(table, *connect_floor(place_));
    } catch (...) {
      // The database is gone, and so is our way to its tables.
    }
  }

  store_place place_;
  store_floor& with_;
  std::vector<std::string> names_{};
};

/// The key of a row: as long as a UUID, in the order of the rows.
inline std::string key_of(std::uint64_t row) {
  std::string key = "00000000-0000-4000-8000-000000000000";
  for (std::size_t at = 8; at-- > 0; row /= 10) key[at] = static_cast<char>('0' + row % 10);
  return key;
}

/// Entries for a table of so many rows, made up in turn. Rows are visited all over the table, and each is visited once before any is
/// visited twice. The same work for both sides.
class traffic {
 public:
  traffic(std::uint64_t rows, timestamp start) : rows_(rows), start_(start), entries_(batch_rows) {
    for (entry& each : entries_) {
      each.name = name;
      each.payload = payload();
      each.payload_class = "bench.Country";
    }
  }

  /// The payload is never what it was: SQLite does not write a row that stays the same.
  std::span<const entry> next_batch() {
    const timestamp as_of = start_ + std::chrono::microseconds(++version_);
    for (entry& each : entries_) {
      each.key = next_key();
      each.as_of = as_of;
      each.expire_on = as_of + kept;
      auto number = version_;
      for (std::size_t at = digits_end; at-- > digits_end - 10; number /= 10) (*each.payload)[at] = static_cast<char>('0' + number % 10);
    }
    return entries_;
  }

  std::string next_key() {
    // Prime, and so without a common divisor with the number of rows: no row comes twice before all have come.
    constexpr std::uint64_t stride = 7'919;
    constexpr std::uint64_t late = tenth - 1;
    const std::uint64_t visited = (++cursor_ * stride) % (rows_ / tenth * late);
    return key_of(visited / late * tenth + 1 + visited % late);
  }

  static std::string payload() {
    std::string text = R"({"version":"0000000000","text":")";
    text.resize(1022, 'x');
    return text + "\"}";
  }

 private:
  static constexpr std::size_t digits_end = 22;

  std::uint64_t rows_;
  timestamp start_;
  std::uint64_t version_ = 0;
  std::uint64_t cursor_ = 0;
  std::vector<entry> entries_;
};

/// Writes so many rows; `progress` is told now and then.
void fill(store& into, std::uint64_t rows, timestamp start, const std::function<void(std::uint64_t, std::uint64_t)>& progress);

}  // namespace holdfast::bench
