#pragma once

/// \file
/// How a subcommand joins the command line. A group of subcommands is one function that receives
/// the root command, adds options and subcommands, and sets their actions; commands/groups.hpp
/// lists the groups. This header hides CLI11, so that only a few files compile it.

#include <holdfast/log.hpp>

#include "terminal/output.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace holdfast::cli {

enum exit_code : std::uint8_t {
  exit_ok = 0,
  /// The command ran, and the answer is no: no such entry, not stored, a check failed.
  exit_negative = 1,
  /// The command line or its input is wrong.
  exit_usage = 2,
  /// Something else has to change first: a database, a disk, a file.
  exit_unavailable = 3
};

/// What `--log` and `--log-level` say.
struct log_settings {
  bool json = false;
  log_level least = log_level::warning;
};

/// The output streams of a running command.
struct console {
  output& out;
  output& err;
  log_settings log{};

  /// Writes one line to `err`, after what is in `out`: a record of the library, or of the command.
  /// Drops records below the level. Does not change the exit code.
  void write(const log_record& record) const;
  void warn(std::string_view message) const {
    write({.level = log_level::warning, .message = message});
  }
  /// As `write`, at any level: what the user must see, such as the address of a server.
  void note(std::string_view message, std::span<const log_field> fields = {}) const;
  /// The log of objects that this command uses on its own thread.
  [[nodiscard]] log_sink sink() const {
    return [this](const log_record& record) { write(record); };
  }
};

using action = std::function<exit_code(console&)>;

/// An option or a positional argument. It is declared while the command line is set up, and read
/// when the command runs.
class option {
 public:
  option required();
  /// Accepts only these words. The error for another word suggests the nearest one. Former words
  /// are accepted, but neither listed nor completed.
  option one_of(std::initializer_list<std::string_view> words,
                std::initializer_list<std::string_view> former = {});
  /// Accepts only an integer in this range.
  option number(std::uint64_t least, std::uint64_t most);
  /// Completes file names.
  option file();
  /// An environment variable is the default. An empty variable counts as not set.
  option variable(std::string_view name);

  /// `--store`.
  [[nodiscard]] std::string name() const;
  /// Whether the command line has it.
  [[nodiscard]] bool is_set() const;
  [[nodiscard]] std::string text(std::string_view fallback = {}) const;
  [[nodiscard]] std::uint64_t count(std::uint64_t fallback) const;
  [[nodiscard]] std::vector<std::string> all() const;
  /// Whether the value is that of the environment variable.
  [[nodiscard]] bool is_from_variable() const;
  /// Sets the value, as if the command line had it.
  void set(const std::string& text) const;

 private:
  friend class command;
  explicit option(CLI::Option* cli_option) : cli_option_(cli_option) {}
  CLI::Option* cli_option_;
};

/// The environment variables that are defaults of URLs.
inline constexpr std::array<const char*, 3> url_variables{"HOLDFAST_STORE", "HOLDFAST_SEQUENCE",
                                                          "HOLDFAST_OUTBOX"};

/// One command of the tree. Copies refer to the same command.
class command {
 public:
  /// Adds a subcommand. The summary is a sentence without its full stop.
  command add(std::string_view name, std::string_view summary);
  /// Text that --help shows after the summary.
  command about(std::string_view text);
  /// Examples that --help shows, one per line.
  command examples(std::string_view lines);
  /// Sets the action. A command without one needs a subcommand; a command with one and subcommands
  /// sets it first.
  void run(action function);
  /// Runs before the action.
  void prepare(std::function<void(console&)> function);

  /// `--name VALUE`, at most once.
  option value(std::string_view name, std::string_view placeholder, std::string_view summary);
  /// `--kwarg VALUE`, any number of times.
  option values(std::string_view name, std::string_view placeholder, std::string_view summary);
  /// `--json`. Commas separate several spellings.
  option flag(std::string_view name, std::string_view summary);
  /// A positional argument that occurs once.
  option positional(std::string_view name, std::string_view summary);
  /// A positional argument that occurs any number of times.
  option rest(std::string_view name, std::string_view summary);

  /// Returns an option that was added before, or null.
  [[nodiscard]] std::optional<option> find(std::string_view name) const;
  [[nodiscard]] CLI::App& app() const noexcept { return *app_; }

 private:
  friend class program;
  struct actions {
    std::vector<std::pair<const CLI::App*, action>> of_commands{};
    std::vector<std::pair<const CLI::App*, std::function<void(console&)>>> before_them{};
  };
  command(CLI::App& app, actions& all) : app_(&app), actions_(&all) {}

  CLI::App* app_;
  actions* actions_;
};

/// CLI11 interprets some words itself: `[a,b]`, `++`, and what follows `--`. `shield` marks them
/// before CLI11 parses the command line; `unshield` removes the mark when a value is read.
[[nodiscard]] std::vector<std::string> shield(std::vector<std::string> words);
[[nodiscard]] std::string unshield(std::string word);

/// The words of an option declared with `one_of`; empty for other options.
[[nodiscard]] std::vector<std::string> choices_of(const CLI::Option& cli_option);
[[nodiscard]] bool takes_file(const CLI::Option& cli_option);

}  // namespace holdfast::cli
