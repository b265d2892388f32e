#pragma once

/// \file
/// Writes entries from JSON Lines into a store.

#include <holdfast/store.hpp>

#include "terminal/command.hpp"
#include "terminal/input.hpp"
#include "terminal/stop_signals.hpp"

#include <cstdint>
#include <span>
#include <string>

namespace holdfast::cli {

struct import_result {
  std::uint64_t read = 0;
  std::uint64_t written = 0;
  std::uint64_t expired = 0;  ///< skipped: they have expired
  std::uint64_t older = 0;    ///< skipped: a newer entry is stored, or a later one in the input
};

/// `written 3, skipped 2 (expired 1, older 1)`.
[[nodiscard]] std::string to_text(const import_result& result);
[[nodiscard]] std::string to_json(const import_result& result);

/// Writes a batch of entries and counts what became of them. Throws errors of the store.
void put_entries(store& target, std::span<const entry> batch, import_result& result);

/// Reads entries line by line and writes them in batches. Throws an error with the number of the
/// line, after it has written the lines before; `stopped` after a signal; and errors of the store.
[[nodiscard]] import_result import_entries(console& io, store& entries, const input_file& file,
                                           const stop_signals& stop);

}  // namespace holdfast::cli
