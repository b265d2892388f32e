// holdfast config check, show and reference.

#include <holdfast/database.hpp>

#include "base/secret.hpp"
#include "commands/groups.hpp"
#include "commands/serve/config_check.hpp"
#include "failover/config/file.hpp"
#include "serve/config/effective.hpp"
#include "serve/config/server_config.hpp"
#include "terminal/table.hpp"
#include "terminal/text.hpp"

#include <string>
#include <vector>

namespace holdfast::cli {

namespace {

namespace config = detail::serve::config;

constexpr std::size_t comment_width = 96;

std::string source_of(const config::effective_value& value) {
  if (value.line == 0) return "default";
  return "line " + std::to_string(value.line) + (value.from_environment ? ", environment" : "");
}

/// The values that are in force, with the defaults of [failover].
std::vector<config::effective_value> effective_values(const std::string& file) {
  const detail::secret_text text(detail::failover::config::read_text(file));
  const bool is_engine = config::is_engine_file(text.view());
  auto values = is_engine ? config::read_engine_file(file, text.view())
                          : config::read_config(file, text.view()).effective;
  config::add_point_defaults(values, is_engine);
  return values;
}

void add_check(command group) {
  command cmd = group.add("check", "Check a configuration file");
  cmd.about(
      "Reads the file as 'holdfast serve' or engine::from_config would, with the environment of "
      "this shell, and names every problem with its line. Reads certificates, and does not "
      "connect.");
  cmd.examples("holdfast config check /etc/holdfast/serve.toml");
  const option file = cmd.positional("FILE", "Configuration file").required().file();
  const option json = cmd.flag("--json", "Print one JSON object");
  cmd.run([=](console& io) {
    const detail::secret_text text(detail::failover::config::read_text(file.text()));
    std::string content = "an engine";
    if (config::is_engine_file(text.view())) {
      (void)config::read_engine_file(file.text(), text.view());
    } else {
      const auto parsed = config::read_config(file.text(), text.view());
      config::check_config(parsed);
      content = check_references(parsed);
    }
    if (json.is_set()) io.out << "{\"valid\":true,\"content\":" << json_string(content) << "}\n";
    else io.out << "the configuration is valid: " << content << "\n";
    return exit_ok;
  });
}

void add_show(command group) {
  command cmd = group.add("show", "Show the values in force, and where each comes from");
  cmd.about(
      "Lists every key with its value: from a line of the file, from an environment variable that "
      "the line names, or the default. Passwords and keys are masked, and so is text from the "
      "environment.");
  cmd.examples(
      "holdfast config show serve.toml\n"
      "holdfast config show serve.toml --json");
  const option file = cmd.positional("FILE", "Configuration file").required().file();
  const option json = cmd.flag("--json", "Print one JSON object for each key");
  cmd.run([=](console& io) {
    table shown({"key", "value", "from"});
    for (const auto& value : effective_values(file.text())) {
      if (json.is_set())
        io.out << "{\"key\":" << json_string(value.key) << ",\"value\":" << json_string(value.value)
               << ",\"from\":" << json_string(source_of(value))
               << ",\"line\":" << std::to_string(value.line) << "}\n";
      else shown.add({printable(value.key), printable(value.value), source_of(value)});
    }
    if (!json.is_set()) shown.print(io.out);
    return exit_ok;
  });
}

void print_as_toml(output& out, const std::vector<config::reference_key>& keys) {
  out << "## Uncomment at least one of [stores.NAME], [outboxes.NAME] and [sequences], with its "
         "url: remove the # of\n## the section and of its keys. Then run: holdfast config check "
         "FILE\n\n";
  const std::string* section = nullptr;
  for (const auto& key : keys) {
    if (section == nullptr || *section != key.section) {
      out << (section == nullptr ? "" : "\n") << "# [" << key.section << "]\n";
      section = &key.section;
    }
    std::string comment(key.description);
    if (!key.choices.empty()) comment.append(" (").append(key.choices).append(")");
    else if (key.default_value.empty()) comment.append(" (").append(key.type).append(")");
    std::string lines = folded(comment, 3, comment_width);
    // folded() indents with spaces; each line is a comment.
    for (auto end = lines.find('\n'); end != std::string::npos; end = lines.find('\n', end + 1))
      lines.replace(end + 1, 3, "## ");
    out << "## " << lines << "\n# " << key.name << " ="
        << (key.default_value.empty() ? "" : " " + key.default_value) << "\n";
  }
}

void add_reference(command group) {
  command cmd = group.add("reference", "Print every key with its default");
  cmd.about(
      "Prints a file of 'holdfast serve' in which everything is commented out: remove the # of a "
      "section and of the keys that you change. NAME is a name of your choice. A file for "
      "engine::from_config has [failover] only.");
  cmd.examples(
      "holdfast config reference > serve.toml\n"
      "holdfast config reference --json | grep tiered");
  const option json = cmd.flag("--json", "Print one JSON object for each key");
  cmd.run([=](console& io) {
    const auto keys = config::reference();
    if (!json.is_set()) {
      print_as_toml(io.out, keys);
      return exit_ok;
    }
    for (const auto& key : keys)
      io.out << "{\"key\":" << json_string(key.section + "." + key.name)
             << ",\"type\":" << json_string(key.type)
             << ",\"default\":" << json_string(key.default_value)
             << ",\"choices\":" << json_string(key.choices)
             << ",\"description\":" << json_string(key.description) << "}\n";
    return exit_ok;
  });
}

}  // namespace

void add_config_commands(command root) {
  command group = root.add("config", "Check, show and explain configuration files");
  group.examples(
      "holdfast config reference > serve.toml\n"
      "holdfast config check serve.toml\n"
      "holdfast config show serve.toml");
  add_check(group);
  add_show(group);
  add_reference(group);
}

}  // namespace holdfast::cli
