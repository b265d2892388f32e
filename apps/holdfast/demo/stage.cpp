#include "demo/stage.hpp"

#include "terminal/text.hpp"

#include <cstdlib>

namespace holdfast::cli {

namespace {

constexpr std::size_t page_width = 88;
constexpr std::string_view bold = "1";
constexpr std::string_view faint = "2";
constexpr std::string_view red = "31";
constexpr std::string_view green = "32";
constexpr std::string_view cyan = "36";

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

/// The first of these variables that is set determines the character set, as in the C library.
bool terminal_is_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string_view value = environment(name);
    if (value.empty()) continue;
    return value.find("UTF-8") != std::string_view::npos ||
           value.find("utf8") != std::string_view::npos;
  }
  return false;
}

}  // namespace

bool wants_colour(const output& out) {
  return out.is_terminal() && environment("NO_COLOR").empty() && environment("TERM") != "dumb" &&
         !environment("TERM").empty();
}

stage::stage(output& out, bool colour)
    : out_(out), colour_(colour), symbols_(colour && terminal_is_utf8()) {}

std::string stage::painted(std::string_view code, std::string_view text) const {
  if (!colour_) return std::string(text);
  return "\x1b[" + std::string(code) + "m" + std::string(text) + "\x1b[0m";
}

void stage::heading(std::string_view text) { out_ << painted(bold, text) << "\n"; }

void stage::chapter(std::size_t number, std::size_t total, std::string_view title) {
  out_ << "\n"
       << painted(bold,
                  std::to_string(number) + "/" + std::to_string(total) + "  " + std::string(title))
       << "\n\n";
}

void stage::paragraph(std::string_view text) { out_ << folded(text, 0, page_width) << "\n"; }

void stage::typed(std::string_view command_line) {
  out_ << "  " << painted(faint, "$") << " " << painted(cyan, command_line) << "\n";
}

void stage::show(std::string_view label, std::string_view value) {
  constexpr std::size_t width = 16;
  out_ << "    " << painted(faint, label)
       << std::string(width > label.size() ? width - label.size() : 1, ' ') << printable(value)
       << "\n";
}

void stage::good(std::string_view text) {
  out_ << "  " << painted(green, symbols_ ? "✓" : "ok") << " " << text << "\n";
}

void stage::bad(std::string_view text) {
  out_ << "  " << painted(red, symbols_ ? "✗" : "!!") << " " << text << "\n";
}

void stage::gap() { out_ << "\n"; }

}  // namespace holdfast::cli
