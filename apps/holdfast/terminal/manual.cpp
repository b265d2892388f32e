#include "terminal/manual.hpp"

#include <holdfast/version.hpp>

#include "terminal/usage.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <string_view>
#include <utility>

namespace holdfast::cli {

namespace {

/// Text that man(7) prints unchanged. Without the escapes `-` becomes a hyphen, and `'`, "`", `^`
/// and `~` characters that no shell understands; a point begins a request.
std::string literal(std::string_view text) {
  std::string out = text.starts_with('.') ? "\\&" : "";
  for (const char c : text) {
    switch (c) {
      case '\\':
        out += "\\(rs";
        break;
      case '-':
        out += "\\-";
        break;
      case '\'':
        out += "\\(aq";
        break;
      case '"':
        out += "\\(dq";
        break;
      case '`':
        out += "\\(ga";
        break;
      case '^':
        out += "\\(ha";
        break;
      case '~':
        out += "\\(ti";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string page_name(const CLI::App& app) {
  std::string name = full_name(app);
  std::ranges::replace(name, ' ', '-');
  return name;
}

void collect(const CLI::App& app, std::vector<const CLI::App*>& commands) {
  commands.push_back(&app);
  for (const CLI::App* child : subcommands_of(app)) collect(*child, commands);
}

/// One page while it is written.
class page_writer {
 public:
  page_writer(const std::string& name, std::string_view summary) {
    std::string title = name;
    for (char& c : title) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    // Left-adjusted: lines with long words would get wide gaps.
    out_ = ".TH " + literal(title) +
           R"( 1 "" "Holdfast )" HOLDFAST_VERSION_STRING R"(" "Holdfast manual")"
           "\n.ad l\n";
    section("NAME");
    out_ += literal(name) + " \\- " + literal(summary) + "\n";
  }

  void section(std::string_view title) { out_ += ".SH " + literal(title) + "\n"; }
  void subsection(std::string_view title) { out_ += ".SS " + literal(title) + "\n"; }
  void paragraph(std::string_view text) { out_ += ".PP\n" + literal(text) + "\n"; }
  void synopsis(std::string_view text) { out_ += ".PP\n.B " + literal(text) + "\n"; }
  void paragraphs(const std::vector<std::string>& lines) {
    for (const std::string& line : lines) {
      if (!line.empty()) paragraph(line);
    }
  }
  void rows(const std::vector<table_row>& rows) {
    for (const auto& [name, description] : rows)
      out_ += ".TP\n.B " + literal(name) + "\n" + literal(description) + "\n";
  }
  void table(std::string_view title, const std::vector<table_row>& content) {
    if (content.empty()) return;
    section(title);
    rows(content);
  }
  void examples(const std::vector<std::string>& lines) {
    if (lines.empty()) return;
    section("EXAMPLES");
    out_ += ".EX\n";
    for (const std::string& line : lines) out_ += literal(line) + "\n";
    out_ += ".EE\n";
  }
  void exit_status() {
    table(
        "EXIT STATUS",
        {{"0", "The command did what it says."},
         {"1", "The command ran, and the answer is no: no such entry, not stored, a check failed."},
         {"2", "The command line or its input is wrong."},
         {"3", "Something else has to change first: a database, a disk, a file."}});
  }
  void see_also(const std::vector<std::string>& names) {
    section("SEE ALSO");
    for (const std::string& name : names)
      out_ += ".BR " + literal(name) + " (1)" + (name == names.back() ? "\n" : ",\n");
  }
  [[nodiscard]] std::string text() && { return std::move(out_); }

 private:
  std::string out_{};
};

/// Appends the rows that `target` does not have.
void add_missing(std::vector<table_row>& target, const std::vector<table_row>& rows) {
  for (const table_row& row : rows) {
    if (std::ranges::find(target, row) == target.end()) target.push_back(row);
  }
}

/// The options that every command of a page has; none if there is only one command.
std::vector<table_row> shared_options(const std::vector<const CLI::App*>& commands) {
  std::vector<std::vector<table_row>> all;
  for (const CLI::App* app : commands) {
    if (runs(*app)) all.push_back(tables_of(*app).options);
  }
  if (all.size() < 2) return {};
  std::vector<table_row> shared = all.front();
  for (const auto& options : all) {
    std::erase_if(shared, [&](const table_row& row) {
      return std::ranges::find(options, row) == options.end();
    });
  }
  return shared;
}

manual_page page_of(const CLI::App& app) {
  std::vector<const CLI::App*> commands;
  collect(app, commands);
  const std::vector<table_row> shared = shared_options(commands);
  const auto own_options = [&](const usage_tables& tables) {
    std::vector<table_row> options = tables.options;
    std::erase_if(options, [&](const table_row& row) {
      return std::ranges::find(shared, row) != shared.end();
    });
    return options;
  };

  const usage_tables first = tables_of(app);
  page_writer page(page_name(app), first.summary);
  page.section("SYNOPSIS");
  std::vector<table_row> environment;
  std::vector<std::string> examples;
  for (const CLI::App* each : commands) {
    const usage_tables tables = tables_of(*each);
    if (runs(*each)) page.synopsis(tables.synopsis);
    add_missing(environment, tables.environment);
    for (const std::string& line : tables.examples) {
      if (std::ranges::find(examples, line) == examples.end()) examples.push_back(line);
    }
  }
  page.section("DESCRIPTION");
  page.paragraph(first.summary + ".");
  page.paragraphs(first.about);
  if (runs(app)) {
    page.table("ARGUMENTS", first.arguments);
    page.table("OPTIONS", own_options(first));
  }
  if (commands.size() > 1) page.section("COMMANDS");
  for (const CLI::App* each : commands) {
    if (each == &app) continue;
    const usage_tables tables = tables_of(*each);
    page.subsection(full_name(*each));
    page.paragraph(tables.summary + ".");
    page.paragraphs(tables.about);
    if (!runs(*each)) continue;
    page.rows(tables.arguments);
    page.rows(own_options(tables));
  }
  page.table("OPTIONS OF ALL COMMANDS", shared);
  page.table("ENVIRONMENT", environment);
  page.exit_status();
  page.examples(examples);
  page.see_also({page_name(*app.get_parent())});
  return {.name = page_name(app), .text = std::move(page).text()};
}

manual_page page_of_program(const CLI::App& root) {
  const usage_tables tables = tables_of(root);
  page_writer page(page_name(root), tables.summary);
  page.section("SYNOPSIS");
  page.synopsis(tables.synopsis + " [OPTION...] [ARGUMENT...]");
  page.section("DESCRIPTION");
  page.paragraph(tables.summary + ".");
  page.paragraphs(tables.about);
  page.table("COMMANDS", tables.commands);
  page.table("OPTIONS", tables.options);
  page.exit_status();
  page.examples(tables.examples);
  std::vector<std::string> names;
  for (const CLI::App* child : subcommands_of(root)) names.push_back(page_name(*child));
  page.see_also(names);
  return {.name = page_name(root), .text = std::move(page).text()};
}

}  // namespace

std::vector<manual_page> manual_pages(const CLI::App& root) {
  std::vector<manual_page> pages{page_of_program(root)};
  for (const CLI::App* child : subcommands_of(root)) pages.push_back(page_of(*child));
  return pages;
}

}  // namespace holdfast::cli
