#pragma once

/// \file
/// The work of `holdfast key batch`, without its command line.

#include <holdfast/key/batch.hpp>

#include "input.hpp"
#include "output.hpp"

#include <cstddef>

namespace holdfast::cli {

/// A longer line is answered with an error: a case is held in memory as a whole.
inline constexpr std::size_t longest_case = std::size_t{64} << 20;

/// Answers every line of the input, in order. What is answered is sent before a read that would wait, so that a program may ask
/// and read the answer line by line.
void run_batch(key::batch_options options, const input_file& from, output& to, std::size_t longest = longest_case);

}  // namespace holdfast::cli
