#pragma once

/// \file
/// Entries as text: for people, and as JSON Lines that can be read back.

#include <holdfast/store.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

namespace holdfast::cli {

/// `90s`, `15m`, `1h`, `7d`; at most 36500 days. Throws errc::invalid_argument.
[[nodiscard]] std::chrono::microseconds read_duration(std::string_view text);

/// Throws errc::invalid_argument for a text that is not one JSON document.
void check_json(std::string_view text);

/// `2024-01-31T12:00:00.000001Z`. Times beyond what four digits can say are shown as the last, or the first, that they can.
[[nodiscard]] std::string iso(timestamp at);

/// `{"name","key","as_of","expire_on","payload","payload_class"}`; times in ISO 8601 with microseconds; a payload that is not UTF-8 as
/// `payload_hex`; `"payload":null` is a tombstone.
[[nodiscard]] std::string entry_json(const entry& e);

/// One line of a table.
[[nodiscard]] std::string entry_line(const entry& e, timestamp now);

/// The table as the Java library documents it.
[[nodiscard]] std::string published_schema(const std::string& prefix);

/// Reads what entry_json writes. It keeps its buffers, so reuse it.
class entry_reader {
 public:
  entry_reader();
  entry_reader(const entry_reader&) = delete;
  entry_reader& operator=(const entry_reader&) = delete;
  ~entry_reader();
  /// Throws errc::malformed or errc::invalid_argument.
  [[nodiscard]] entry operator()(std::string_view line);

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace holdfast::cli
