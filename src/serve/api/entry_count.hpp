#pragma once

/// \file
/// Counts the entries of a store within limits: a console must not stop the database that it
/// watches. A count that a limit has ended is a lower bound.

#include <holdfast/store.hpp>
#include <holdfast/version.hpp>

#include "serve/api/json_writer.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve {

/// What one request may ask of a database.
struct question_limits {
  std::size_t rows = 10'000;
  std::chrono::steady_clock::time_point deadline =
      std::chrono::steady_clock::now() + std::chrono::seconds(2);

  [[nodiscard]] bool is_late() const { return std::chrono::steady_clock::now() >= deadline; }
};

/// The entries of one name.
struct entry_count {
  std::string name{};
  std::uint64_t entries = 0;
  std::uint64_t tombstones = 0;
  std::uint64_t expired = 0;
  std::uint64_t unreadable = 0;
  /// Of the payloads, after decryption.
  std::uint64_t bytes = 0;
  std::optional<timestamp> oldest{};
  std::optional<timestamp> newest{};
  std::optional<timestamp> next_expiry{};
  /// There are more entries than were counted.
  bool at_least = false;
};

struct store_count {
  std::vector<entry_count> names{};
  /// There are more names.
  bool at_least = false;
};

/// Returns at most `limit` names after `after` that have entries in a realm, with their counts. The
/// rows are shared by the names, so that a large name does not hide those that follow. Reduces the
/// limits by what it used. Throws errc::unsupported_type if the store does not list names.
[[nodiscard]] store_count count_entries(store& counted, const std::string& realm, timestamp now,
                                        std::size_t limit, const std::string& after,
                                        question_limits& limits);

/// Writes the members of an object that is begun.
void write_count(json_writer& out, const entry_count& count);

}  // namespace HOLDFAST_NAMESPACE::detail::serve
