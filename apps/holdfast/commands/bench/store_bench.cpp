// `holdfast bench store`: puts, puts of many entries, and finds.

#include <holdfast/store.hpp>

#include "commands/bench/bench_command.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace holdfast::cli {

namespace {

constexpr std::string_view bench_entry_name = "bench";

/// Writes and reads the entries of one thread. Threads use different keys, because transactions
/// that write the same rows wait for each other.
class bench_entries {
 public:
  bench_entries(std::shared_ptr<store> target, std::size_t keys, std::size_t thread,
                const bench_settings& settings)
      : target_(std::move(target)), keys_(keys), batch_(std::min(keys, batch_size(settings))) {
    for (std::size_t i = 0; i < batch_.size(); ++i)
      batch_[i] = {.name = std::string(bench_entry_name),
                   .key = {},
                   .payload = make_bench_payload(settings.payload_bytes, i),
                   .payload_class = "bench.Entry"};
    key_prefix_ = "thread-" + std::to_string(thread) + "-key-";
  }

  std::uint64_t put() { return put_entries(1); }
  std::uint64_t put_batch() { return put_entries(batch_.size()); }
  std::uint64_t find() {
    // A prime: finds are spread over the table.
    constexpr std::size_t stride = 7'919;
    next_ += stride;
    if (!target_->find(bench_entry_name, key_at(next_)))
      throw error(errc::internal, "the store does not find an entry that was put");
    return 1;
  }
  /// Writes every key.
  void fill() {
    for (std::size_t i = 0; i < keys_; i += batch_.size()) (void)put_batch();
  }

 private:
  [[nodiscard]] std::string key_at(std::size_t number) const {
    return key_prefix_ + std::to_string(number % keys_);
  }
  std::uint64_t put_entries(std::size_t count) {
    const auto now = system_clock()->now();
    for (std::size_t i = 0; i < count; ++i) {
      batch_[i].key = key_at(next_++);
      batch_[i].as_of = now;
      batch_[i].expire_on = now + std::chrono::hours(1);
    }
    target_->put(std::span(batch_).first(count));
    return count;
  }

  std::shared_ptr<store> target_;
  std::size_t keys_;
  std::vector<entry> batch_;
  std::string key_prefix_{};
  std::size_t next_ = 0;
};

void measure_store_rows(bench_run& run, private_area& area) {
  const auto& settings = run.settings();
  const auto target = area.open_store();
  const std::size_t keys = std::max<std::size_t>(
      1, payloads_within(std::size_t{64} << 20U, settings, 5'000) / settings.threads);
  std::vector<bench_entries> threads;
  for (std::size_t i = 0; i < settings.threads; ++i) {
    threads.emplace_back(target, keys, i, settings);
    threads.back().fill();
  }
  run.measure({.name = "put", .unit = "puts/s", .operation = [&](std::size_t i) {
                 return threads[i].put();
               }});
  run.measure({.name = "put_batch", .unit = "entries/s", .operation = [&](std::size_t i) {
                 return threads[i].put_batch();
               }});
  run.measure({.name = "find", .unit = "finds/s", .operation = [&](std::size_t i) {
                 return threads[i].find();
               }});
}

}  // namespace

void add_store_bench(command group) {
  add_bench_command(
      group,
      {.name = "store",
       .summary = "Puts and finds of a store",
       .about = "put writes one entry, put_batch up to 100 of them in one call; both are durable "
                "when the call returns. find reads one entry.",
       .url_option = "--store",
       .url_summary = "The database: sqlite:app.db, postgresql://host/name, mysql://host/name, "
                      "h2://host/name, odbc:DSN=name, memory:"},
      measure_store_rows);
}

}  // namespace holdfast::cli
