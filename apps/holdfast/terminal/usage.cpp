#include "terminal/usage.hpp"

#include "terminal/command.hpp"
#include "terminal/text.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace holdfast::cli {

namespace {

constexpr std::size_t help_width = 96;

/// Appends a table of two columns. Descriptions are folded at `help_width`.
void append_table(std::string& out, std::string_view title, const std::vector<table_row>& rows) {
  if (rows.empty()) return;
  std::size_t name_width = 0;
  for (const table_row& row : rows) name_width = std::max(name_width, row.first.size());
  const std::size_t indent = 4 + std::min<std::size_t>(name_width, 32);
  out += "\n" + std::string(title) + ":\n";
  for (const auto& [name, description] : rows) {
    std::string line = "  " + name;
    if (line.size() + 2 > indent) {
      out += line + "\n";
      line.clear();
    }
    line.resize(indent, ' ');
    out += line + folded(description, indent, help_width) + "\n";
  }
}

std::string_view first_line(std::string_view text) { return text.substr(0, text.find('\n')); }

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t line_end = text.find('\n');
    lines.emplace_back(text.substr(0, line_end));
    text = line_end == std::string_view::npos ? std::string_view() : text.substr(line_end + 1);
  }
  return lines;
}

/// `--name N`, `--style exact|escaped`, `-h, --help`.
std::string option_label(const CLI::Option& option) {
  std::string label;
  for (const std::string& name : option.get_snames()) label += (label.empty() ? "-" : ", -") + name;
  for (const std::string& name : option.get_lnames())
    label += (label.empty() ? "--" : ", --") + name;
  const std::string type = option.get_type_name();
  if (option.get_items_expected_max() > 0 && !type.empty()) label += " " + type;
  return label;
}

std::string positional_label(const CLI::Option& option) {
  std::string label = option.get_name(true);
  if (option.get_allow_extra_args()) label += "...";
  return label;
}

/// `--json`, `--name`, ...
std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::vector<std::string> subcommand_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* child : subcommands_of(app)) names.push_back(child->get_name());
  return names;
}

std::string see_help(const CLI::App& app) { return "see '" + full_name(app) + " --help'"; }

/// The environment variables that a command reads.
std::vector<table_row> environment_of(const CLI::App& app) {
  std::vector<table_row> variables;
  bool has_password = false;
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_envname().empty())
      variables.emplace_back(option->get_envname(), "Default of " + option->get_name());
    has_password = has_password || option->check_lname("password-file");
  }
  if (!has_password) return variables;
  variables.emplace_back("HOLDFAST_PASSWORD",
                         "Password of the database, if neither the URL nor a file has one");
  variables.emplace_back("HOLDFAST_REDIS_PASSWORD", "The same for Redis");
  variables.emplace_back("HOLDFAST_SCHEMES",
                         "URL schemes that may be opened, separated by commas (default all)");
  return variables;
}

std::string describe_unknown_option(const std::string& word, const CLI::App& app) {
  const std::string name = word.substr(0, word.find('='));
  const std::vector<std::string> names = option_names(app);
  // `outbox recur --outbox URL add`: unknown to the group, and known to the command after it.
  if (std::ranges::find(names, name) != names.end())
    return "'" + name + "' is an option of '" + full_name(app) + "'; write it after '" +
           app.get_name() + "'";
  const std::string_view suggestion = nearest(name, names);
  std::string advice =
      suggestion.empty() ? see_help(app) : "did you mean '" + std::string(suggestion) + "'?";
  const bool has_positional = std::ranges::any_of(
      app.get_options(), [](const CLI::Option* option) { return option->get_positional(); });
  if (suggestion.empty() && has_positional)
    advice += ", or put -- before arguments that begin with a dash";
  return "'" + full_name(app) + "' has no option '" + name + "'; " + advice;
}

std::string describe_unknown_word(const std::string& typed, const CLI::App& app) {
  const std::string word = unshield(typed);
  const bool shielded = word != typed;
  if (!shielded && word.size() > 1 && word.starts_with('-'))
    return describe_unknown_option(word, app);
  const std::vector<std::string> names = subcommand_names(app);
  if (names.empty())
    return "'" + full_name(app) + "' does not take the argument '" + word + "'; " + see_help(app);
  const std::string_view suggestion = nearest(word, names);
  return "'" + full_name(app) + "' has no command '" + word + "'; " +
         (suggestion.empty() ? "use " + listed(names)
                             : "did you mean '" + std::string(suggestion) + "'?");
}

const CLI::Option* option_named(const CLI::App& app, std::string_view name) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_name() == name || option->get_name(true) == name) return option;
  }
  return nullptr;
}

/// `message` is the message of CLI11, which begins with the name of the option.
std::string describe_mismatch(std::string_view message, const CLI::App& app) {
  std::string name(message.substr(0, message.find_first_of(": ")));
  // For a flag with a value, CLI11 omits the dashes.
  if (message.ends_with("flag override")) name.insert(0, "--");
  const CLI::Option* option = option_named(app, name);
  if (option == nullptr) return std::string(message) + "; " + see_help(app);
  if (option->get_items_expected_max() == 0)
    return name + " takes no value; write " + name + " alone";
  if (option->count() > 1)
    return name + " was given " + std::to_string(option->count()) + " times; give it once";
  return name + " has no value; write " + option_label(*option);
}

std::string describe_missing(std::string_view message, const CLI::App& app) {
  const std::vector<std::string> commands = subcommand_names(app);
  if (!commands.empty()) return "'" + full_name(app) + "' needs a command; use " + listed(commands);
  const std::string name(message.substr(0, message.find(' ')));
  const CLI::Option* option = option_named(app, name);
  const bool positional = option != nullptr && option->get_positional();
  return (positional ? "no " : "") + name + (positional ? " was given" : " is missing") + "; " +
         see_help(app);
}

}  // namespace

const CLI::App& selected(const CLI::App& root) {
  const CLI::App* app = &root;
  for (;;) {
    const auto parsed = app->get_subcommands();
    if (parsed.empty()) return *app;
    app = parsed.front();
  }
}

std::string full_name(const CLI::App& app) {
  return app.get_parent() == nullptr ? app.get_name()
                                     : full_name(*app.get_parent()) + " " + app.get_name();
}

std::vector<const CLI::App*> subcommands_of(const CLI::App& app) {
  return app.get_subcommands(std::function<bool(const CLI::App*)>());
}

bool runs(const CLI::App& app) { return app.get_require_subcommand_min() == 0; }

usage_tables tables_of(const CLI::App& app) {
  usage_tables tables;
  std::string positionals;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) {
      const std::string label = positional_label(*option);
      positionals += option->get_required() ? " " + label : " [" + label + "]";
      tables.arguments.emplace_back(label, option->get_description());
    } else {
      tables.options.emplace_back(
          option_label(*option),
          option->get_description() + (option->get_required() ? " (required)" : ""));
    }
  }
  for (const CLI::App* child : subcommands_of(app))
    tables.commands.emplace_back(child->get_name(), first_line(child->get_description()));
  tables.environment = environment_of(app);

  // The first line is the summary, which has no full stop; the rest is the text of `about`.
  tables.about = lines_of(app.get_description());
  if (!tables.about.empty()) {
    tables.summary = tables.about.front();
    tables.about.erase(tables.about.begin());
  }
  tables.synopsis = full_name(app) + (runs(app) ? " [OPTION...]" + positionals : " COMMAND");
  tables.examples = lines_of(app.get_footer());
  return tables;
}

std::string help(const CLI::App& app) {
  const usage_tables tables = tables_of(app);
  std::string out = tables.summary + ".\n\n";
  for (const std::string& line : tables.about) out += folded(line, 0, help_width) + "\n";
  if (!tables.about.empty()) out += "\n";
  out += "Usage: " + tables.synopsis + "\n";
  append_table(out, "Arguments", tables.arguments);
  append_table(out, "Commands", tables.commands);
  append_table(out, "Options", tables.options);
  append_table(out, "Environment", tables.environment);
  if (!tables.examples.empty()) out += "\nExamples:\n";
  for (const std::string& line : tables.examples) out += "  " + line + "\n";
  return out;
}

std::string describe(const CLI::ParseError& failure, const CLI::App& root) {
  const CLI::App& app = selected(root);
  // An unknown word is the cause of most other errors: `holdfast kye` also lacks a subcommand.
  if (const std::vector<std::string> unknown = root.remaining(true); !unknown.empty())
    return describe_unknown_word(unknown.front(), app);

  const std::string_view message = failure.what();
  if (dynamic_cast<const CLI::ValidationError*>(&failure) != nullptr) {
    // The validators of class option return a complete message. CLI11 prefixes the option's name.
    const std::size_t colon = message.find(": ");
    return std::string(colon == std::string_view::npos ? message : message.substr(colon + 2));
  }
  if (dynamic_cast<const CLI::RequiredError*>(&failure) != nullptr)
    return describe_missing(message, app);
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&failure) != nullptr)
    return describe_mismatch(message, app);
  return std::string(message) + "; " + see_help(app);
}

}  // namespace holdfast::cli
