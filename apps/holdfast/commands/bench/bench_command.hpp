#pragma once

/// \file
/// The options of all `holdfast bench` commands, and the output of their rows.

#include "commands/bench/measurement.hpp"
#include "commands/bench/private_area.hpp"
#include "terminal/command.hpp"
#include "terminal/password_option.hpp"

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace holdfast::cli {

/// A running benchmark: measures workloads and prints their rows.
class bench_run {
 public:
  bench_run(console& io, std::string_view name, bench_settings settings, bool json);

  [[nodiscard]] console& io() const { return io_; }
  [[nodiscard]] const bench_settings& settings() const { return settings_; }
  [[nodiscard]] const interruption& signals() const { return signals_; }

  /// Describes the database in the output. Call it before the first row.
  void set_database(std::string kind) { database_ = std::move(kind); }
  /// Measures a workload and prints its row.
  void measure(const bench_workload& workload);
  /// Prints a row; with --json, when the run ends.
  void print(const bench_row& row);
  /// Prints the end of the JSON object.
  void finish();

 private:
  console& io_;
  interruption signals_{};
  std::string name_;
  bench_settings settings_;
  bool json_;
  std::string database_{};
  std::string json_rows_{};
  bool has_header_ = false;
};

struct bench_command_description {
  std::string_view name;
  std::string_view summary;
  std::string_view about;
  /// `--store` or `--outbox`.
  std::string_view url_option;
  std::string_view url_summary;
  /// Whether it writes payloads, and so has --payload.
  bool has_payload = true;
};

/// Measures on a private area.
using bench_action = std::function<void(bench_run& run, private_area& area)>;

void add_bench_command(command group, const bench_command_description& description,
                       bench_action action);

/// A JSON string of so many bytes, with its quotes. `number` makes it differ from others.
[[nodiscard]] std::string make_bench_payload(std::size_t bytes, std::uint64_t number = 0);

/// How many payloads have this many bytes together: at least 1, at most `most`.
[[nodiscard]] std::size_t payloads_within(std::size_t total_bytes, const bench_settings& settings,
                                          std::size_t most);

/// The number of entries or events of a batch: 100, or fewer if payloads are large.
[[nodiscard]] std::size_t batch_size(const bench_settings& settings);

// The commands.
void add_store_bench(command group);
void add_failover_bench(command group);
void add_sequence_bench(command group);
void add_outbox_bench(command group);

}  // namespace holdfast::cli
