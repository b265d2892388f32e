#pragma once

/// \file
/// The entries that the benchmarks of stores write and read, the same for both sides, and the
/// tables that they create.

#include <holdfast/store.hpp>

#include "bench/store/raw_client.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::bench {

inline constexpr std::string_view entry_name = "bench.country";
inline constexpr std::string_view entry_class = "bench.Country";
inline constexpr std::uint64_t small_table_rows = 1'000;
inline constexpr std::uint64_t large_table_rows = 1'000'000;
/// One row in ten expires early, so that it can be removed later. Traffic uses the other nine.
inline constexpr std::uint64_t early_expiry_interval = 10;
inline constexpr auto lifetime = std::chrono::hours(24);
inline constexpr auto early_lifetime = std::chrono::hours(1);

/// Drops the tables of a benchmark, whose names begin with BENCH_<process>_.
class scratch_tables {
 public:
  scratch_tables(raw_client_settings settings, raw_client& client);
  scratch_tables(const scratch_tables&) = delete;
  scratch_tables& operator=(const scratch_tables&) = delete;
  /// Drops the tables, on a new connection if the client fails.
  ~scratch_tables();

  /// The common prefix of all tables.
  [[nodiscard]] static std::string prefix();
  /// Adds the tables of a store with this prefix to those that are dropped. Returns the name of the
  /// table of entries.
  std::string add(const std::string& store_prefix);

 private:
  raw_client_settings settings_;
  raw_client& client_;
  std::vector<std::string> names_{};
};

/// The key of a row: as long as a UUID, and sorted as the rows.
[[nodiscard]] std::string key_at(std::uint64_t row);

/// About 1 KB of JSON with the number 0 in it.
[[nodiscard]] std::string make_payload();

/// Keys and entries all over a table. Each row is visited once before any is visited again.
class traffic {
 public:
  /// Entries have versions after `start`.
  traffic(std::uint64_t rows, timestamp start);

  /// Returns `batch_rows` entries. Every batch has another payload, because SQLite does not write a
  /// row that stays the same.
  std::span<const entry> next_batch();
  std::string next_key();

 private:
  std::uint64_t rows_;
  timestamp start_;
  std::uint64_t version_ = 0;
  std::uint64_t cursor_ = 0;
  std::vector<entry> entries_;
};

/// Writes the first `rows` rows. Calls `progress` now and then.
void fill(store& target, std::uint64_t rows, timestamp start,
          const std::function<void(std::uint64_t done, std::uint64_t total)>& progress = {});

}  // namespace holdfast::bench
