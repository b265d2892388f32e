#include "terminal/command.hpp"

#include <holdfast/clock.hpp>

#include "base/log_text.hpp"
#include "terminal/text.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <utility>

namespace holdfast::cli {

namespace {

// Precedes a word that CLI11 must not interpret. `unshield` removes exactly one.
constexpr char shield_mark = '\x01';

// The type name of an option carries the information for completion: `exact|escaped` or `FILE`.
constexpr std::string_view file_type = "FILE";

// Values are read verbatim from Option::results(). CLI11's own conversion would interpret `{}` and
// `[..]`.
CLI::callback_t no_conversion() {
  return [](const CLI::results_t&) { return true; };
}

}  // namespace

namespace {

void write_record(const console& io, const log_record& record) {
  io.out.flush();
  if (io.log.json) {
    io.err << detail::log_json(record, system_clock()->now()) << "\n";
  } else {
    io.err << "holdfast: ";
    if (record.level != log_level::info) io.err << to_string(record.level) << ": ";
    io.err << detail::log_message(record) << "\n";
  }
  io.err.flush();
}

}  // namespace

void console::write(const log_record& record) const {
  if (record.level >= log.least) write_record(*this, record);
}

void console::note(std::string_view message, std::span<const log_field> fields) const {
  write_record(*this, {.level = log_level::info, .message = message, .fields = fields});
}

option option::required() {
  cli_option_->required();
  return *this;
}

option option::variable(std::string_view name) {
  cli_option_->envname(std::string(name));
  return *this;
}

option option::one_of(std::initializer_list<std::string_view> words,
                      std::initializer_list<std::string_view> former) {
  std::vector<std::string> listed_words(words.begin(), words.end());
  std::vector<std::string> accepted(listed_words);
  accepted.insert(accepted.end(), former.begin(), former.end());
  std::string type;
  for (const std::string& word : listed_words) type += (type.empty() ? "" : "|") + word;
  cli_option_->type_name(type);
  cli_option_->check(CLI::Validator(
      [listed_words, accepted, cli_option = cli_option_](std::string& typed) -> std::string {
        const std::string word = unshield(typed);
        if (std::ranges::find(accepted, word) != accepted.end()) return {};
        const std::string_view suggestion = nearest(word, listed_words);
        return cli_option->get_name() + " does not accept '" + word + "'; " +
               (suggestion.empty() ? "use " + listed(listed_words)
                                   : "did you mean '" + std::string(suggestion) + "'?");
      },
      ""));
  return *this;
}

option option::number(std::uint64_t least, std::uint64_t most) {
  cli_option_->check(CLI::Validator(
      [least, most, cli_option = cli_option_](std::string& typed) -> std::string {
        std::uint64_t number = 0;
        const char* end = typed.data() + typed.size();
        const auto [stop, failure] = std::from_chars(typed.data(), end, number);
        if (failure == std::errc{} && stop == end && number >= least && number <= most) return {};
        return cli_option->get_name() + " is '" + unshield(typed) + "'; give an integer from " +
               std::to_string(least) + " to " + std::to_string(most);
      },
      ""));
  return *this;
}

option option::file() {
  cli_option_->type_name(std::string(file_type));
  return *this;
}

std::string option::name() const { return cli_option_->get_name(); }

bool option::is_set() const { return cli_option_->count() != 0; }

std::string option::text(std::string_view fallback) const {
  return is_set() ? unshield(cli_option_->results().back()) : std::string(fallback);
}

std::uint64_t option::count(std::uint64_t fallback) const {
  const std::string typed = text();
  std::uint64_t number = fallback;
  std::from_chars(typed.data(), typed.data() + typed.size(), number);
  return number;
}

std::vector<std::string> option::all() const {
  std::vector<std::string> words = cli_option_->results();
  for (std::string& word : words) word = unshield(std::move(word));
  return words;
}

bool option::is_from_variable() const {
  const std::string name = cli_option_->get_envname();
  if (name.empty() || !is_set()) return false;
  const char* value = std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe): no thread yet
  return value != nullptr && text() == value;
}

void option::set(const std::string& text) const {
  cli_option_->clear();
  cli_option_->add_result(text.starts_with(shield_mark) ? shield_mark + text : text);
}

command command::add(std::string_view name, std::string_view summary) {
  CLI::App* child = app_->add_subcommand(std::string(name), std::string(summary));
  // At most one: otherwise CLI11 mistakes an argument that equals the name of a subcommand for it.
  const bool has_action = std::ranges::any_of(
      actions_->of_commands, [this](const auto& pair) { return pair.first == app_; });
  app_->require_subcommand(has_action ? 0 : 1, 1);
  return {*child, *actions_};
}

command command::about(std::string_view text) {
  app_->description(app_->get_description() + "\n" + std::string(text));
  return *this;
}

command command::examples(std::string_view lines) {
  app_->footer(std::string(lines));
  return *this;
}

void command::run(action function) {
  actions_->of_commands.emplace_back(app_, std::move(function));
}

void command::prepare(std::function<void(console&)> function) {
  actions_->before_them.emplace_back(app_, std::move(function));
}

std::optional<option> command::find(std::string_view name) const {
  CLI::Option* found = app_->get_option_no_throw(std::string(name));
  return found == nullptr ? std::nullopt : std::optional(option(found));
}

option command::value(std::string_view name, std::string_view placeholder,
                      std::string_view summary) {
  CLI::Option* added = app_->add_option(std::string(name), no_conversion(), std::string(summary));
  added->type_name(std::string(placeholder));
  return option(added);
}

option command::values(std::string_view name, std::string_view placeholder,
                       std::string_view summary) {
  option added = value(name, placeholder, summary);
  added.cli_option_->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  added.cli_option_->allow_extra_args(false);
  return added;
}

option command::flag(std::string_view name, std::string_view summary) {
  CLI::Option* added = app_->add_flag(std::string(name))->description(std::string(summary));
  added->disable_flag_override();  // otherwise --json=no would set it
  return option(added);
}

option command::positional(std::string_view name, std::string_view summary) {
  return value(name, "", summary);
}

option command::rest(std::string_view name, std::string_view summary) {
  option added = value(name, "", summary);
  added.cli_option_->expected(0, CLI::detail::expected_max_vector_size);
  added.cli_option_->allow_extra_args(true);
  return added;
}

std::vector<std::string> shield(std::vector<std::string> words) {
  std::vector<std::string> out;
  out.reserve(words.size());
  bool only_arguments = false;
  for (std::string& word : words) {
    if (!only_arguments && word == "--") {
      only_arguments = true;
      continue;
    }
    const bool special = word == "++" || (word.starts_with('[') && word.ends_with(']')) ||
                         word.starts_with(shield_mark);
    if (only_arguments || special) word.insert(word.begin(), shield_mark);
    out.push_back(std::move(word));
  }
  return out;
}

std::string unshield(std::string word) {
  if (word.starts_with(shield_mark)) word.erase(word.begin());
  return word;
}

std::vector<std::string> choices_of(const CLI::Option& cli_option) {
  const std::string type = cli_option.get_type_name();
  std::vector<std::string> out;
  if (type.find('|') == std::string::npos) return out;
  std::size_t begin = 0;
  for (;;) {
    const std::size_t bar = type.find('|', begin);
    out.push_back(type.substr(begin, bar - begin));
    if (bar == std::string::npos) return out;
    begin = bar + 1;
  }
}

bool takes_file(const CLI::Option& cli_option) { return cli_option.get_type_name() == file_type; }

}  // namespace holdfast::cli
