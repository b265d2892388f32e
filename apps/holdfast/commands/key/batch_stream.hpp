#pragma once

/// \file
/// `holdfast key batch` without its command line.

#include <holdfast/key/batch.hpp>

#include "terminal/input.hpp"
#include "terminal/output.hpp"

#include <cstddef>

namespace holdfast::cli {

/// Limit of a line in bytes. A longer one is answered with an error, because a whole case is held
/// in memory.
inline constexpr std::size_t longest_case = std::size_t{64} << 20;

/// Answers every line of the input, in order. Flushes the output before a read that would wait, so
/// that another program can write a case and read its answer before it writes the next case.
void run_batch(key::batch_options options, const input_file& cases, output& answers,
               std::size_t longest = longest_case);

}  // namespace holdfast::cli
