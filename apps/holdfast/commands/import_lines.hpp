#pragma once

/// \file
/// Reads a file of JSON Lines, line by line.

#include "terminal/command.hpp"

#include <functional>
#include <string>
#include <string_view>

namespace holdfast::cli {

/// Calls `add` for each line that is not empty, and `flush` at the end, and before it throws.
/// `label` is a verb for the progress: "imported". `-` is standard input. An error of `add` gets
/// the name of the file and the number of the line. Throws `stopped` after SIGINT or SIGTERM, and
/// errors of the file.
void import_lines(console& io, const std::string& file, const std::string& label,
                  const std::function<void(std::string_view)>& add,
                  const std::function<void()>& flush);

}  // namespace holdfast::cli
