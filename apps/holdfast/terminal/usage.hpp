#pragma once

/// \file
/// Help texts, and messages about command lines that cannot be parsed.

#include <string>
#include <string_view>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace holdfast::cli {

/// The command that the command line selects: the deepest subcommand that was parsed.
[[nodiscard]] const CLI::App& selected(const CLI::App& root);

/// `holdfast key slot`.
[[nodiscard]] std::string full_name(const CLI::App& app);

[[nodiscard]] std::string help(const CLI::App& app);

/// `<what is wrong>; <what to do>`, with the nearest valid word.
[[nodiscard]] std::string describe(const CLI::ParseError& failure, const CLI::App& root);

}  // namespace holdfast::cli
