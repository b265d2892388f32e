#include "command.hpp"

#include "text.hpp"

#include <CLI/CLI.hpp>

#include <charconv>
#include <utility>

namespace holdfast::cli {

namespace {

// Starts a word that CLI11 must take as it is. Never part of a value: `unshield` removes exactly one.
constexpr char mark = '\x01';

// What CLI11 shows as an option's type carries what completion needs to know: `exact|escaped` or `FILE`.
constexpr std::string_view file_type = "FILE";

// Values are read from Option::results(), as they were typed. CLI11's own conversion gives `{}` and `[..]` a meaning.
CLI::callback_t keep_as_typed() {
  return [](const CLI::results_t&) { return true; };
}

}  // namespace

void console::warn(std::string_view message) const {
  out.flush();
  err << "holdfast: warning: " << printable(message) << "\n";
  err.flush();
}

option option::required() {
  held_->required();
  return *this;
}

option option::one_of(std::initializer_list<std::string_view> words) {
  std::vector<std::string> known(words.begin(), words.end());
  std::string type;
  for (const std::string& each : known) type += (type.empty() ? "" : "|") + each;
  held_->type_name(type);
  held_->check(CLI::Validator(
      [known, held = held_](std::string& typed) -> std::string {
        const std::string word = unshield(typed);
        for (const std::string& each : known) {
          if (word == each) return {};
        }
        const std::string_view meant = nearest(word, known);
        return held->get_name() + " does not know '" + word + "'; " +
               (meant.empty() ? "say " + listed(known) : "did you mean '" + std::string(meant) + "'?");
      },
      ""));
  return *this;
}

option option::number(std::uint64_t least, std::uint64_t most) {
  held_->check(CLI::Validator(
      [least, most, held = held_](std::string& typed) -> std::string {
        std::uint64_t number = 0;
        const char* end = typed.data() + typed.size();
        const auto [stop, wrong] = std::from_chars(typed.data(), end, number);
        if (wrong == std::errc{} && stop == end && number >= least && number <= most) return {};
        return held->get_name() + " is '" + unshield(typed) + "'; give a whole number from " + std::to_string(least) + " to " +
               std::to_string(most);
      },
      ""));
  return *this;
}

option option::file() {
  held_->type_name(std::string(file_type));
  return *this;
}

bool option::given() const { return held_->count() != 0; }

std::string option::text(std::string_view otherwise) const { return given() ? unshield(held_->results().back()) : std::string(otherwise); }

std::uint64_t option::count(std::uint64_t otherwise) const {
  const std::string typed = text();
  std::uint64_t number = otherwise;
  std::from_chars(typed.data(), typed.data() + typed.size(), number);
  return number;
}

std::vector<std::string> option::all() const {
  std::vector<std::string> words = held_->results();
  for (std::string& each : words) each = unshield(std::move(each));
  return words;
}

command command::add(std::string_view name, std::string_view summary) {
  CLI::App* child = app_->add_subcommand(std::string(name), std::string(summary));
  // One of them: otherwise CLI11 takes an argument that happens to be a subcommand's name for that subcommand.
  app_->require_subcommand(1);
  return {*child, *runs_};
}

command command::about(std::string_view text) {
  app_->description(app_->get_description() + "\n" + std::string(text));
  return *this;
}

command command::examples(std::string_view lines) {
  app_->footer(std::string(lines));
  return *this;
}

void command::run(action what) { runs_->emplace_back(app_, std::move(what)); }

option command::value(std::string_view name, std::string_view placeholder, std::string_view summary) {
  CLI::Option* made = app_->add_option(std::string(name), keep_as_typed(), std::string(summary));
  made->type_name(std::string(placeholder));
  return option(made);
}

option command::values(std::string_view name, std::string_view placeholder, std::string_view summary) {
  option made = value(name, placeholder, summary);
  made.held_->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  made.held_->allow_extra_args(false);
  return made;
}

option command::flag(std::string_view name, std::string_view summary) {
  CLI::Option* made = app_->add_flag(std::string(name))->description(std::string(summary));
  made->disable_flag_override();  // --json=no would otherwise count as given
  return option(made);
}

option command::positional(std::string_view name, std::string_view summary) { return value(name, "", summary); }

option command::rest(std::string_view name, std::string_view summary) {
  option made = value(name, "", summary);
  made.held_->expected(0, CLI::detail::expected_max_vector_size);
  made.held_->allow_extra_args(true);
  return made;
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
    const bool special = word == "++" || (word.starts_with('[') && word.ends_with(']')) || word.starts_with(mark);
    if (only_arguments || special) word.insert(word.begin(), mark);
    out.push_back(std::move(word));
  }
  return out;
}

std::string unshield(std::string word) {
  if (word.starts_with(mark)) word.erase(word.begin());
  return word;
}

std::vector<std::string> choices_of(const CLI::Option& held) {
  const std::string type = held.get_type_name();
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

bool takes_file(const CLI::Option& held) { return held.get_type_name() == file_type; }

}  // namespace holdfast::cli
