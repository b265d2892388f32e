#include "groups.hpp"
#include "usage.hpp"

#include <CLI/CLI.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli {

namespace {

std::vector<const CLI::App*> children(const CLI::App& app) { return app.get_subcommands(std::function<bool(const CLI::App*)>()); }

void append_word(std::string& line, const std::string& word) { line += (line.empty() ? "" : " ") + word; }

/// The pieces of the script, gathered in one walk over the tree of commands.
struct pieces {
  std::string paths;   // every command, as a pattern of `case`
  std::string words;   // what may follow each command
  std::string values;  // what may follow each option that takes a value
};

void gather(const CLI::App& app, pieces& into) {
  const std::string path = full_name(app);
  std::string commands;
  std::string options;
  bool files = false;
  for (const CLI::App* each : children(app)) append_word(commands, each->get_name());
  for (const CLI::Option* each : app.get_options()) {
    if (each->get_positional()) {
      files = files || takes_file(*each);
      continue;
    }
    std::string patterns;
    for (const std::string& name : each->get_lnames()) {
      append_word(options, "--" + name);
      patterns += (patterns.empty() ? "'" : " | '") + path + " --" + name + "'";
    }
    if (each->get_items_expected_max() == 0) continue;
    std::string choices;
    for (const std::string& word : choices_of(*each)) append_word(choices, word);
    into.values += "    " + patterns + ") ";
    into.values += takes_file(*each) ? "files=yes" : "words='" + choices + "'";
    into.values += " ;;\n";
  }
  if (app.get_parent() != nullptr) into.paths += (into.paths.empty() ? "'" : " | '") + path + "'";
  into.words += "      '" + path + "') commands='" + commands + "' options='" + options + "'" + (files ? " files=yes" : "") + " ;;\n";
  for (const CLI::App* each : children(app)) gather(*each, into);
}

/// Made from the commands themselves, so that a new one is completed without being written down twice.
std::string bash_script(const CLI::App& root) {
  pieces made;
  gather(root, made);
  return R"(# bash completion for holdfast, made by `holdfast completion bash`.

_holdfast() {
  local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} at=holdfast i
  local commands='' options='' words='' files=no value=yes
  COMPREPLY=()

  # --option=value arrives as three words.
  if [[ $previous == '=' ]]; then
    previous=${COMP_WORDS[COMP_CWORD - 2]}
  elif [[ $word == '=' ]]; then
    word=''
  fi

  for ((i = 1; i < COMP_CWORD; ++i)); do
    [[ ${COMP_WORDS[i]} != -- ]] || return 0
    case "$at ${COMP_WORDS[i]}" in
      )" +
         made.paths +
         R"() at+=" ${COMP_WORDS[i]}" ;;
    esac
  done

  case "$at $previous" in
)" + made.values +
         R"(    *) value=no ;;
  esac
  if [[ $value == no ]]; then
    case "$at" in
)" + made.words +
         R"(    esac
    words=$commands
    [[ $word != -* ]] || { words=$options files=no; }
  fi

  local IFS=$' \t\n'
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
  if [[ $files == yes ]]; then
    compopt -o filenames 2>/dev/null
    mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$word")
  fi
  return 0
}

complete -F _holdfast holdfast
)";
}

}  // namespace

void add_completion_command(command root) {
  command group = root.add("completion", "Print a shell's completion script");
  group.examples("source <(holdfast completion bash)");
  command at = group.add("bash", "The completion script for bash");
  at.examples(
      "source <(holdfast completion bash)                                                   for this shell\n"
      "holdfast completion bash > ~/.local/share/bash-completion/completions/holdfast       for every shell from now on");
  at.run([&app = root.app()](console& io) {
    io.out << bash_script(app);
    return exit_fine;
  });
}

}  // namespace holdfast::cli
