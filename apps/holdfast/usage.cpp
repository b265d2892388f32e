#include "usage.hpp"

#include "command.hpp"
#include "text.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace holdfast::cli {

namespace {

constexpr std::size_t help_width = 96;

using entry = std::pair<std::string, std::string>;

/// Two columns; the second one is folded at the page's width.
void append_table(std::string& out, std::string_view title, const std::vector<entry>& entries) {
  if (entries.empty()) return;
  std::size_t width = 0;
  for (const entry& each : entries) width = std::max(width, each.first.size());
  width = std::min<std::size_t>(width, 32);
  out += "\n" + std::string(title) + ":\n";
  for (const auto& [name, summary] : entries) {
    out += "  " + name;
    std::size_t column = 2 + name.size();
    const std::size_t start = 4 + width;
    if (column + 2 > start) {
      out += "\n";
      column = 0;
    }
    out += std::string(start - column, ' ');
    column = start;
    bool fresh = true;
    std::string_view rest = summary;
    while (!rest.empty()) {
      const std::size_t space = rest.find(' ');
      const std::string_view word = rest.substr(0, space);
      if (!fresh && column + 1 + word.size() > help_width) {
        out += "\n" + std::string(start, ' ');
        column = start;
        fresh = true;
      }
      if (!fresh) {
        out += ' ';
        ++column;
      }
      out += word;
      column += word.size();
      fresh = false;
      rest = space == std::string_view::npos ? std::string_view() : rest.substr(space + 1);
    }
    out += "\n";
  }
}

std::string_view first_line(std::string_view text) { return text.substr(0, text.find('\n')); }

/// `--name N`, `--style exact|escaped`, `-h, --help`.
std::string option_label(const CLI::Option& held) {
  std::string label;
  for (const std::string& each : held.get_snames()) label += (label.empty() ? "-" : ", -") + each;
  for (const std::string& each : held.get_lnames()) label += (label.empty() ? "--" : ", --") + each;
  const std::string type = held.get_type_name();
  if (held.get_items_expected_max() > 0 && !type.empty()) label += " " + type;
  return label;
}

std::string positional_label(const CLI::Option& held) {
  std::string label = held.get_name(true);
  if (held.get_allow_extra_args()) label += "...";
  return label;
}

std::vector<std::string> known_words(const CLI::App& app, bool options) {
  std::vector<std::string> words;
  if (options) {
    for (const CLI::Option* each : app.get_options()) {
      for (const std::string& name : each->get_lnames()) words.push_back("--" + name);
    }
  } else {
    for (const CLI::App* each : app.get_subcommands(std::function<bool(const CLI::App*)>())) words.push_back(each->get_name());
  }
  return words;
}

std::string see_help(const CLI::App& app) { return "see '" + full_name(app) + " --help'"; }

std::string about_unknown_word(const std::string& typed, const CLI::App& app) {
  const std::string word = unshield(typed);
  const bool dashed = word == typed && word.size() > 1 && word.starts_with('-');
  if (dashed) {
    const std::string name = word.substr(0, word.find('='));
    const std::vector<std::string> known = known_words(app, true);
    const std::string_view meant = nearest(name, known);
    const bool takes_words = std::ranges::any_of(app.get_options(), [](const CLI::Option* each) { return each->get_positional(); });
    std::string advice = meant.empty() ? see_help(app) : "did you mean '" + std::string(meant) + "'?";
    if (meant.empty() && takes_words) advice += ", or put -- before arguments that begin with a dash";
    return "'" + full_name(app) + "' has no option '" + name + "'; " + advice;
  }
  const std::vector<std::string> known = known_words(app, false);
  if (known.empty()) return "'" + full_name(app) + "' does not take the argument '" + word + "'; " + see_help(app);
  if (word == "help") return "there is no command 'help'; type '" + full_name(app) + " --help'";
  const std::string_view meant = nearest(word, known);
  return "'" + full_name(app) + "' has no command '" + word + "'; " +
         (meant.empty() ? "say " + listed(known) : "did you mean '" + std::string(meant) + "'?");
}

const CLI::Option* option_named(const CLI::App& app, std::string_view name) {
  for (const CLI::Option* each : app.get_options()) {
    if (each->get_name() == name || each->get_name(true) == name) return each;
  }
  return nullptr;
}

std::string about_value(std::string_view message, const CLI::App& app) {
  std::string name(message.substr(0, message.find_first_of(": ")));
  // CLI11 names a flag that was given a value without its dashes.
  if (message.ends_with("flag override")) name.insert(0, "--");
  const CLI::Option* held = option_named(app, name);
  if (held == nullptr) return std::string(message) + "; " + see_help(app);
  if (held->get_items_expected_max() == 0) return name + " takes no value; write " + name + " alone";
  if (held->count() > 1) return name + " was given " + std::to_string(held->count()) + " times; give it once";
  return name + " has no value; write " + option_label(*held);
}

}  // namespace

const CLI::App& selected(const CLI::App& root) {
  const CLI::App* at = &root;
  for (;;) {
    const auto next = at->get_subcommands();
    if (next.empty()) return *at;
    at = next.front();
  }
}

std::string full_name(const CLI::App& app) {
  return app.get_parent() == nullptr ? app.get_name() : full_name(*app.get_parent()) + " " + app.get_name();
}

std::string help(const CLI::App& app) {
  std::vector<entry> arguments;
  std::vector<entry> options;
  std::vector<entry> commands;
  std::string usage;
  for (const CLI::Option* each : app.get_options()) {
    if (each->get_positional()) {
      const std::string label = positional_label(*each);
      usage += each->get_required() ? " " + label : " [" + label + "]";
      arguments.emplace_back(label, each->get_description());
    } else {
      options.emplace_back(option_label(*each), each->get_description() + (each->get_required() ? " (required)" : ""));
    }
  }
  for (const CLI::App* each : app.get_subcommands(std::function<bool(const CLI::App*)>())) {
    commands.emplace_back(each->get_name(), first_line(each->get_description()));
  }

  std::string out = app.get_description() + ".\n\nUsage: " + full_name(app);
  // The summary is a phrase; only that first line lacks its full stop.
  const std::string description = app.get_description();
  if (const std::size_t line = description.find('\n'); line != std::string::npos) {
    out = description.substr(0, line) + ".\n\n" + description.substr(line + 1) + "\n\nUsage: " + full_name(app);
  }
  out += commands.empty() ? " [OPTION...]" + usage + "\n" : " COMMAND\n";
  append_table(out, "Arguments", arguments);
  append_table(out, "Commands", commands);
  append_table(out, "Options", options);
  const std::string examples = app.get_footer();
  if (!examples.empty()) {
    out += "\nExamples:\n";
    for (std::string_view rest = examples; !rest.empty();) {
      const std::size_t line = rest.find('\n');
      out += "  " + std::string(rest.substr(0, line)) + "\n";
      rest = line == std::string_view::npos ? std::string_view() : rest.substr(line + 1);
    }
  }
  return out;
}

std::string complaint(const CLI::ParseError& wrong, const CLI::App& root) {
  const CLI::App& app = selected(root);
  // A word that nobody took is the reason behind most other complaints: `holdfast kye` also lacks a subcommand.
  if (const std::vector<std::string> left = root.remaining(true); !left.empty()) return about_unknown_word(left.front(), app);

  const std::string_view message = wrong.what();
  if (dynamic_cast<const CLI::ValidationError*>(&wrong) != nullptr) {
    // Our own validators write the whole sentence; CLI11 puts the option's name before it.
    const std::size_t colon = message.find(": ");
    return std::string(colon == std::string_view::npos ? message : message.substr(colon + 2));
  }
  if (dynamic_cast<const CLI::RequiredError*>(&wrong) != nullptr) {
    const std::vector<std::string> commands = known_words(app, false);
    if (!commands.empty()) return "'" + full_name(app) + "' needs a command; say " + listed(commands);
    const std::string name(message.substr(0, message.find(' ')));
    const CLI::Option* held = option_named(app, name);
    const bool positional = held != nullptr && held->get_positional();
    return (positional ? "no " : "") + name + (positional ? " was given" : " is missing") + "; " + see_help(app);
  }
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&wrong) != nullptr) return about_value(message, app);
  return std::string(message) + "; " + see_help(app);
}

}  // namespace holdfast::cli
