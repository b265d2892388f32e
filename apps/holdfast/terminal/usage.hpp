#pragma once

/// \file
/// Help texts, and messages about command lines that cannot be parsed.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace holdfast::cli {

/// The command that the command line selects: the deepest subcommand that was parsed.
[[nodiscard]] const CLI::App& selected(const CLI::App& root);

/// `holdfast key slot`.
[[nodiscard]] std::string full_name(const CLI::App& app);

/// A name and its description.
using table_row = std::pair<std::string, std::string>;

/// What --help and the manual page of a command say.
struct usage_tables {
  std::string summary;             // a sentence without its full stop
  std::vector<std::string> about;  // lines; an empty one ends a paragraph
  std::string synopsis;            // `holdfast key slot [OPTION...] KEY...`
  std::vector<table_row> arguments;
  std::vector<table_row> commands;
  std::vector<table_row> options;
  std::vector<table_row> environment;
  std::vector<std::string> examples;
};
[[nodiscard]] usage_tables tables_of(const CLI::App& app);

[[nodiscard]] std::vector<const CLI::App*> subcommands_of(const CLI::App& app);
/// Whether the command does something without a subcommand.
[[nodiscard]] bool runs(const CLI::App& app);

[[nodiscard]] std::string help(const CLI::App& app);

/// `<what is wrong>; <what to do>`, with the nearest valid word.
[[nodiscard]] std::string describe(const CLI::ParseError& failure, const CLI::App& root);

}  // namespace holdfast::cli
