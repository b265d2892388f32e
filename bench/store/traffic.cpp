#include "bench/store/traffic.hpp"

#include <unistd.h>

#include <utility>

namespace holdfast::bench {

namespace {

/// Where the number in the payload ends.
constexpr std::size_t payload_number_end = 22;
constexpr std::size_t payload_number_digits = 10;

void write_number(std::string& text, std::size_t end, std::size_t digits, std::uint64_t number) {
  for (std::size_t i = end; i-- > end - digits; number /= 10)
    text[i] = static_cast<char>('0' + number % 10);
}

/// Drops a table and its row in the table of schema versions, which others share.
bool drop_table(const std::string& table, raw_client& client) noexcept {
  try {
    client.run("DROP TABLE IF EXISTS " + table);
    client.run("DELETE FROM HOLDFAST_SCHEMA WHERE SET_NAME = '" + table + "'");
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace

scratch_tables::scratch_tables(raw_client_settings settings, raw_client& client)
    : settings_(std::move(settings)), client_(client) {}

scratch_tables::~scratch_tables() {
  for (const std::string& table : names_) {
    if (drop_table(table, client_)) continue;
    try {
      (void)drop_table(table, *connect_raw_client(settings_));
    } catch (...) {
      // The database is not reachable any more, so the table cannot be dropped.
    }
  }
}

std::string scratch_tables::prefix() { return "BENCH_" + std::to_string(::getpid()) + "_"; }

std::string scratch_tables::add(const std::string& store_prefix) {
  names_.push_back(store_prefix + "HOLDFAST_LEASE");
  return names_.emplace_back(store_prefix + "FAILOVER_STORE");
}

std::string key_at(std::uint64_t row) {
  std::string key = "00000000-0000-4000-8000-000000000000";
  write_number(key, 8, 8, row);
  return key;
}

std::string make_payload() {
  std::string text = R"({"version":"0000000000","text":")";
  text.resize(1022, 'x');
  return text + "\"}";
}

traffic::traffic(std::uint64_t rows, timestamp start)
    : rows_(rows), start_(start), entries_(batch_rows) {
  for (entry& prepared : entries_) {
    prepared.name = entry_name;
    prepared.payload = make_payload();
    prepared.payload_class = entry_class;
  }
}

std::span<const entry> traffic::next_batch() {
  const timestamp as_of = start_ + std::chrono::microseconds(++version_);
  for (entry& next : entries_) {
    next.key = next_key();
    next.as_of = as_of;
    next.expire_on = as_of + lifetime;
    write_number(*next.payload, payload_number_end, payload_number_digits, version_);
  }
  return entries_;
}

std::string traffic::next_key() {
  // A prime, which has no common divisor with the number of rows: all rows come before any repeats.
  constexpr std::uint64_t stride = 7'919;
  constexpr std::uint64_t visited_per_interval = early_expiry_interval - 1;
  const std::uint64_t visit =
      (++cursor_ * stride) % (rows_ / early_expiry_interval * visited_per_interval);
  return key_at(visit / visited_per_interval * early_expiry_interval + 1 +
                visit % visited_per_interval);
}

void fill(store& target, std::uint64_t rows, timestamp start,
          const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  constexpr std::uint64_t rows_at_once = 500;
  std::vector<entry> batch;
  for (std::uint64_t row = 0; row < rows; ++row) {
    const bool early = row % early_expiry_interval == 0;
    batch.push_back({.name = std::string(entry_name),
                     .key = key_at(row),
                     .as_of = start,
                     .expire_on = start + (early ? early_lifetime : lifetime),
                     .payload = make_payload(),
                     .payload_class = std::string(entry_class)});
    if (batch.size() < rows_at_once && row + 1 < rows) continue;
    target.put(batch);
    batch.clear();
    if (progress && (row + 1) % 10'000 == 0) progress(row + 1, rows);
  }
}

}  // namespace holdfast::bench
