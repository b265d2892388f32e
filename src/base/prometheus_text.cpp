#include "base/prometheus_text.hpp"

#include <holdfast/error.hpp>

#include "base/utf8.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::prometheus {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Returns true if the name consists of letters, digits and `_`, and `:` if `colons` is true, and
/// does not begin with a digit.
bool is_valid_name(std::string_view name, bool colons) {
  if (name.empty() || is_digit(name.front())) return false;
  return std::all_of(name.begin(), name.end(),
                     [&](char c) { return is_letter(c) || is_digit(c) || (colons && c == ':'); });
}

void append_escaped(std::string& output, std::string_view text, bool quotes) {
  for (const char c : text) {
    if (c == '\\') output += R"(\\)";
    else if (c == '\n') output += R"(\n)";
    else if (c == '"' && quotes) output += R"(\")";
    else output += c;
  }
}

void append_number(std::string& output, double value) {
  if (std::isnan(value)) {
    output += "NaN";
  } else if (std::isinf(value)) {
    output += value > 0 ? "+Inf" : "-Inf";
  } else {
    char buffer[32];
    const auto end = std::to_chars(std::begin(buffer), std::end(buffer), value).ptr;
    output.append(std::begin(buffer), end);
  }
}

}  // namespace

void check_name(std::string_view name) {
  if (is_valid_name(name, true)) return;
  throw error(
      errc::invalid_argument,
      "'" + std::string(name) +
          "' cannot be a metric's name: use letters, digits, '_' and ':', and no digit first");
}

void check_bounds(std::string_view name, std::span<const double> bounds) {
  const bool finite =
      std::all_of(bounds.begin(), bounds.end(), [](double bound) { return std::isfinite(bound); });
  const bool growing = std::adjacent_find(bounds.begin(), bounds.end(), [](double a, double b) {
                         return !(a < b);
                       }) == bounds.end();
  if (finite && growing && bounds.size() <= 100) return;
  throw error(errc::invalid_argument,
              "the bounds of the buckets of '" + std::string(name) +
                  "' must be at most 100 finite numbers in ascending order");
}

std::string label_text(metrics::labels labels, bool histogram) {
  std::vector<metrics::label> sorted(labels.begin(), labels.end());
  std::sort(sorted.begin(), sorted.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  std::string text;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const auto& [name, value] = sorted[i];
    if (!is_valid_name(name, false) || name.starts_with("__") || (histogram && name == "le"))
      throw error(errc::invalid_argument,
                  "'" + std::string(name) +
                      "' cannot be a label's name: use letters, digits and '_', no digit first, " +
                      "not '__' first, and not 'le' on a histogram");
    if (i > 0 && sorted[i - 1].name == name)
      throw error(errc::invalid_argument, "the label '" + std::string(name) + "' occurs twice");
    if (i > 0) text += ',';
    text.append(name).append("=\"");
    append_escaped(text, replace_ill_formed(value), true);
    text += '"';
  }
  return text;
}

void text_writer::head(std::string_view name, std::string_view kind, std::string_view help) {
  if (!help.empty()) {
    text_.append("# HELP ").append(name).append(" ");
    append_escaped(text_, replace_ill_formed(help), false);
    text_ += '\n';
  }
  text_.append("# TYPE ").append(name).append(" ").append(kind).append("\n");
}

void text_writer::begin(std::string_view name, std::string_view suffix, std::string_view labels,
                        std::string_view bound) {
  text_.append(name).append(suffix);
  if (!labels.empty() || !bound.empty()) {
    text_.append("{").append(labels);
    if (!bound.empty())
      text_.append(labels.empty() ? "" : ",").append("le=\"").append(bound).append("\"");
    text_ += '}';
  }
  text_ += ' ';
}

void text_writer::sample(std::string_view name, std::string_view labels, std::uint64_t value) {
  begin(name, {}, labels);
  text_.append(std::to_string(value)).append("\n");
}

void text_writer::sample(std::string_view name, std::string_view labels, double value) {
  begin(name, {}, labels);
  append_number(text_, value);
  text_ += '\n';
}

void text_writer::buckets(std::string_view name, std::string_view labels,
                          std::span<const double> bounds, std::span<const std::uint64_t> counts,
                          double sum) {
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    total += counts[i];
    std::string bound;
    if (i < bounds.size()) append_number(bound, bounds[i]);
    else bound = "+Inf";
    begin(name, "_bucket", labels, bound);
    text_.append(std::to_string(total)).append("\n");
  }
  begin(name, "_sum", labels);
  append_number(text_, sum);
  text_ += '\n';
  begin(name, "_count", labels);
  text_.append(std::to_string(total)).append("\n");
}

}  // namespace HOLDFAST_NAMESPACE::detail::prometheus
