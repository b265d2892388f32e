#pragma once

/// \file
/// How a subcommand joins the command line. A group of subcommands is one function that takes the root command, adds what it has and
/// says what to run; groups.hpp lists them. Nothing here shows CLI11, so that only a few files pay for compiling it.

#include "output.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace holdfast::cli {

/// What the exit code of a command means.
enum exit_code : std::uint8_t { exit_fine = 0, exit_no = 1, exit_usage = 2, exit_unavailable = 3 };

/// What a command is given when it runs.
struct console {
  output& out;
  output& err;

  /// Something that deserves attention, but does not change the answer; one line on stderr.
  void warn(std::string_view message) const;
};

using action = std::function<exit_code(console&)>;

/// An option or a positional: described while the command line is set up, read when the command runs.
class option {
 public:
  /// Describing it.
  option required();
  /// One of these words; anything else is refused with the nearest one.
  option one_of(std::initializer_list<std::string_view> words);
  /// A whole number in a range.
  option number(std::uint64_t least, std::uint64_t most);
  /// A file's name, for completion.
  option file();

  /// Reading it.
  [[nodiscard]] bool given() const;
  [[nodiscard]] std::string text(std::string_view otherwise = {}) const;
  [[nodiscard]] std::uint64_t count(std::uint64_t otherwise) const;
  [[nodiscard]] std::vector<std::string> all() const;

 private:
  friend class command;
  explicit option(CLI::Option* held) : held_(held) {}
  CLI::Option* held_;
};

/// One command of the tree. Copies refer to the same one.
class command {
 public:
  /// A subcommand. The summary is a sentence without its full stop.
  command add(std::string_view name, std::string_view summary);
  /// More than the summary says; and what to type. Shown by --help. Examples: one a line.
  command about(std::string_view text);
  command examples(std::string_view lines);
  /// What it does. A command without an action needs one of its subcommands.
  void run(action what);

  /// `--name VALUE`, at most once.
  option value(std::string_view name, std::string_view placeholder, std::string_view summary);
  /// `--kwarg VALUE`, as often as one likes.
  option values(std::string_view name, std::string_view placeholder, std::string_view summary);
  /// `--json`; several spellings are separated with commas.
  option flag(std::string_view name, std::string_view summary);
  /// A positional argument that comes once, or as often as one likes.
  option positional(std::string_view name, std::string_view summary);
  option rest(std::string_view name, std::string_view summary);

  [[nodiscard]] CLI::App& app() const noexcept { return *app_; }

 private:
  friend class program;
  using actions = std::vector<std::pair<const CLI::App*, action>>;
  command(CLI::App& app, actions& runs) : app_(&app), runs_(&runs) {}

  CLI::App* app_;
  actions* runs_;
};

/// CLI11 gives a meaning of its own to some words (`[a,b]`, `++`, and where `--` ends the options). They are marked before it sees
/// them, and the mark is taken off when a value is read.
[[nodiscard]] std::vector<std::string> shield(std::vector<std::string> words);
[[nodiscard]] std::string unshield(std::string word);

/// The words of an option made with `one_of`, or none. For completion and messages.
[[nodiscard]] std::vector<std::string> choices_of(const CLI::Option& held);
[[nodiscard]] bool takes_file(const CLI::Option& held);

}  // namespace holdfast::cli
