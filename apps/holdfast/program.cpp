#include "program.hpp"

#include <holdfast/error.hpp>
#include <holdfast/version.hpp>

#include "base/url.hpp"
#include "commands/groups.hpp"
#include "terminal/text.hpp"
#include "terminal/usage.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <functional>
#include <map>
#include <new>
#include <utility>

namespace holdfast::cli {

/// The tree of commands, and the action of each.
class program {
 public:
  program() {
    app_.name("holdfast");
    app_.description("Keeps services answering and consistent when what they depend on fails");
    app_.set_help_flag("-h,--help", "Show this help");
    app_.set_version_flag("--version", "holdfast " HOLDFAST_VERSION_STRING, "Show the version")
        ->disable_flag_override();

    command root(app_, actions_);
    add_key_commands(root);
    add_store_commands(root);
    add_seq_commands(root);
#if HOLDFAST_HAS_REDIS
    add_redis_commands(root);
#endif
    add_outbox_commands(root);
    add_schema_commands(root);
    add_doctor_command(root);
    add_serve_commands(root);
    add_backup_commands(root);
    add_config_commands(root);
    add_gateway_command(root);
    add_bench_commands(root);
    add_demo_command(root);
    add_completion_command(root);
    add_man_command(root);
    add_log_options(app_);
    root.examples(
        "holdfast demo                                       a tour of one minute\n"
        "holdfast key failover --name country-by-code FR     the key of a protected call\n"
        "holdfast key interop users get_user --json-args 42  a key that other languages share\n"
        "source <(holdfast completion bash)                  completion in this shell");
  }

  exit_code run(std::vector<std::string> words, console& io) {
    // What is wrong with the command line is reported in this form, too.
    io.log.json = asks_for_json_log(words);
    words = shield(asked_for_help(std::move(words)));
    std::ranges::reverse(words);  // CLI11 expects the last word first
    try {
      app_.parse(words);
    } catch (const CLI::CallForHelp&) {
      io.out << help(selected(app_));
      return exit_ok;
    } catch (const CLI::CallForVersion& version) {
      io.out << version.what() << "\n";
      return exit_ok;
    } catch (const CLI::ParseError& failure) {
      throw error(errc::invalid_argument, describe(failure, app_));
    }
    const CLI::App& chosen = selected(app_);
    io.log = log_options_.at(&chosen).settings();
    for (const auto& [app, preparation] : actions_.before_them) {
      if (app == &chosen) preparation(io);
    }
    const auto entry = std::ranges::find(actions_.of_commands, &chosen,
                                         [](const auto& pair) { return pair.first; });
    if (entry == actions_.of_commands.end())
      throw error(errc::internal, "'" + full_name(chosen) + "' has no action");
    return entry->second(io);
  }

 private:
  struct log_options {
    option format;
    option level;

    [[nodiscard]] log_settings settings() const {
      const auto name = level.text("warning");
      auto least = log_level::debug;
      while (least != log_level::error && to_string(least) != name)
        least = static_cast<log_level>(static_cast<int>(least) + 1);
      return {.json = format.text() == "json", .least = least};
    }
  };
  /// To every command that runs.
  void add_log_options(CLI::App& app) {
    const auto children = app.get_subcommands(std::function<bool(CLI::App*)>());
    for (CLI::App* child : children) add_log_options(*child);
    if (app.get_require_subcommand_min() > 0) return;
    command cmd(app, actions_);
    const option format =
        cmd.value("--log", "", "Form of messages on standard error (default text)")
            .one_of({"text", "json"});
    const option level = cmd.value("--log-level", "", "Least level of messages (default warning)")
                             .one_of({"debug", "info", "warning", "error"});
    log_options_.emplace(&app, log_options{.format = format, .level = level});
  }

  /// `help`, `help store get`, `store help` and `version` as options.
  [[nodiscard]] std::vector<std::string> asked_for_help(std::vector<std::string> words) const {
    if (words == std::vector<std::string>{"version"}) return {"--version"};
    const bool first = !words.empty() && words.front() == "help";
    // Not as the last word of a command, where it is an argument.
    const bool last = words.size() == 2 && words.back() == "help";
    if (!first && !last) return words;
    std::vector<std::string> path(words.begin() + (first ? 1 : 0), words.end() - (first ? 0 : 1));
    const CLI::App* named = find_command(path);
    if (named == nullptr) return first ? path : words;
    if (!first && children_of(*named).empty()) return words;
    path.emplace_back("--help");
    return path;
  }

  /// Before the words are parsed.
  static bool asks_for_json_log(const std::vector<std::string>& words) {
    for (std::size_t i = 0; i < words.size() && words[i] != "--"; ++i) {
      if (words[i] == "--log=json") return true;
      if (words[i] == "--log" && i + 1 < words.size() && words[i + 1] == "json") return true;
    }
    return false;
  }

  static std::vector<const CLI::App*> children_of(const CLI::App& app) {
    return app.get_subcommands(std::function<bool(const CLI::App*)>());
  }
  /// Returns null if a word is not a command.
  [[nodiscard]] const CLI::App* find_command(const std::vector<std::string>& path) const {
    const CLI::App* app = &app_;
    for (const auto& word : path) {
      const auto children = children_of(*app);
      const auto child = std::ranges::find(children, word, &CLI::App::get_name);
      if (child == children.end()) return nullptr;
      app = *child;
    }
    return app;
  }

  CLI::App app_;
  command::actions actions_;
  std::map<const CLI::App*, log_options> log_options_;
};

namespace {

/// Advice for an error whose message has none. The default is for codes that have none of their
/// own.
std::string_view advice(errc code) noexcept {
  switch (code) {
    case errc::invalid_argument:
      return "change it and try again";
    case errc::unsupported_type:
      return "pass a type that this scheme supports, or its text";
    case errc::out_of_range:
      return "pass a smaller number, or its text";
    case errc::not_finite:
      return "pass a finite number, or its text";
    case errc::ill_formed_text:
      return "pass UTF-8, or bytes as {\"t\":\"bytes\",\"v\":\"hex\"}";
    case errc::duplicate:
      return "pass it once";
    case errc::too_deep:
      return "nest it less deeply";
    case errc::too_large:
      return "pass less data";
    case errc::malformed:
      return "check its format";
    case errc::tampered:
      return "fetch it again from its source";
    case errc::not_found:
      return "check its name";
    case errc::unavailable:
      return "check that it is there and try again";
    case errc::internal:
      return "please report it";
    default:
      return "check what it depends on and try again";
  }
}

/// exit_usage if another command line would help, exit_unavailable if something else has to change
/// first.
exit_code exit_for(errc code) noexcept {
  switch (code) {
    case errc::invalid_argument:
    case errc::unsupported_type:
    case errc::out_of_range:
    case errc::not_finite:
    case errc::ill_formed_text:
    case errc::duplicate:
    case errc::too_deep:
    case errc::too_large:
    case errc::malformed:
    case errc::tampered:
    case errc::not_found:
      return exit_usage;
    default:
      return exit_unavailable;
  }
}

exit_code report(const console& io, std::string message, errc code) {
  if (message.find("; ") == std::string::npos) message += "; " + std::string(advice(code));
  if (io.log.json) {
    const log_field field{.name = "code", .value = to_string(code)};
    io.write({.level = log_level::error, .message = message, .fields = {&field, 1}});
  } else {
    io.note(message);
  }
  return exit_for(code);
}

/// A damaged database is not a mistake of the command line.
exit_code exit_for_failure(const error& failure, exit_code reported) noexcept {
  const bool from_backend = !failure.backend_code().empty();
  return from_backend && failure.code() == errc::malformed ? exit_unavailable : reported;
}

/// Hides passwords and keys in messages that repeat an argument: a URL or a key may stand where
/// another argument should.
class argument_mask {
 public:
  explicit argument_mask(const std::vector<std::string>& words) {
    for (const char* name : url_variables) {
      if (const char* url = std::getenv(name); url != nullptr) add(url);
    }
    for (const std::string& word : words) {
      add(word);
      if (const auto equals = word.find('='); word.starts_with('-') && equals != std::string::npos)
        add(word.substr(equals + 1));
    }
  }

  [[nodiscard]] std::string applied_to(std::string message) const {
    for (const auto& [word, shown] : masked_) {
      for (auto at = message.find(word); at != std::string::npos;
           at = message.find(word, at + shown.size()))
        message.replace(at, word.size(), shown);
    }
    return message;
  }

 private:
  void add(const std::string& word) {
    if (auto shown = detail::without_secrets(word); shown != word)
      masked_.emplace_back(word, std::move(shown));
  }

  std::vector<std::pair<std::string, std::string>> masked_{};
};

/// Writes the output that precedes a failure. Ignores errors: the first failure is reported.
void flush_quietly(output& out) noexcept {
  try {
    out.flush();
  } catch (...) {
  }
}

}  // namespace

int run(std::vector<std::string> words, output& out, output& err) noexcept {
  try {
    const argument_mask mask(words);
    console io{out, err};
    try {
      program commands;
      const exit_code code = commands.run(std::move(words), io);
      out.flush();
      return code;
    } catch (const reader_gone&) {
      return exit_ok;
    } catch (const error& failure) {
      flush_quietly(out);
      return exit_for_failure(failure, report(io, mask.applied_to(failure.what()), failure.code()));
    } catch (const std::bad_alloc&) {
      return report(io, "not enough memory; pass less data at once", errc::unavailable);
    } catch (const std::exception& failure) {
      return report(io, mask.applied_to(failure.what()), errc::internal);
    }
  } catch (...) {
    // Standard error cannot be written either: only the exit code remains.
    return exit_unavailable;
  }
}

}  // namespace holdfast::cli
