#pragma once

/// \file
/// What a person is told: help, and in one line what was wrong with a command line.

#include <string>
#include <string_view>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace holdfast::cli {

/// The command that was being read: the last one of the tree that was named.
[[nodiscard]] const CLI::App& selected(const CLI::App& root);

/// `holdfast key slot`.
[[nodiscard]] std::string full_name(const CLI::App& app);

[[nodiscard]] std::string help(const CLI::App& app);

/// `<what was wrong>; <what to do>`, with the nearest known word.
[[nodiscard]] std::string complaint(const CLI::ParseError& wrong, const CLI::App& root);

}  // namespace holdfast::cli
