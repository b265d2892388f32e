#pragma once

/// \file
/// Entries as text: rows of a table, and JSON Lines that can be read back.

#include <holdfast/store.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli {

/// `{"name","key","as_of","expire_on","payload","payload_class"}`. Times are in ISO 8601 with
/// microseconds. A payload that is not UTF-8 is `payload_hex`. `"payload":null` is a tombstone.
[[nodiscard]] std::string entry_json(const entry& e);

/// One row of the table that `holdfast store list` prints: key, age, expiry, bytes, class.
[[nodiscard]] std::vector<std::string> entry_row(const entry& e, timestamp now);

/// Reads what entry_json returns. Reuse it: it keeps the buffers of the parser.
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
