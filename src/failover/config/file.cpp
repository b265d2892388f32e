// The only file that includes the TOML library, which takes seconds to compile.

#include "failover/config/file.hpp"

#include <holdfast/error.hpp>

#include "base/edit_distance.hpp"
#include "base/secret.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <tuple>

namespace {

/// Thrown by the assertions of the TOML library, which fail for some invalid files. A typing error
/// must not abort the application.
struct toml_assertion {};
[[noreturn]] void throw_toml_assertion() { throw toml_assertion(); }

}  // namespace

#undef NDEBUG  // with it, the library assumes its assertions
#define TOML_ASSERT(condition) ((condition) ? void() : throw_toml_assertion())
#define TOML_ENABLE_FORMATTERS 0
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

namespace HOLDFAST_NAMESPACE::detail::failover::config {

namespace {

constexpr std::size_t max_file_size = std::size_t{1} << 20U;

/// Whether a line may contain a secret. No part of such a line is shown.
bool may_contain_secret(std::string_view line) {
  std::string lower(line);
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::ranges::any_of(
      std::array<std::string_view, 4>{"password", "key", "secret", "url"},
      [&](std::string_view word) { return lower.find(word) != std::string::npos; });
}

std::string_view line_of(std::string_view text, std::size_t number) {
  for (; number > 1; --number) {
    const auto end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  return text.substr(0, text.find('\n'));
}

bool is_variable_name(std::string_view name) {
  return !name.empty() && !(name[0] >= '0' && name[0] <= '9') &&
         std::ranges::all_of(name, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '_';
         });
}

/// The position after the quoted text that starts at `i`, or after its line if the closing quotes
/// are missing.
std::size_t end_of_quoted(std::string_view text, std::size_t i) {
  const char quote = text[i];
  const std::string_view triple = quote == '"' ? R"(""")" : "'''";
  const bool multiline = text.substr(i).starts_with(triple);
  for (i += multiline ? triple.size() : 1; i < text.size(); ++i) {
    if (text[i] == '\\' && quote == '"') ++i;
    else if (multiline && text.substr(i).starts_with(triple))
      return std::min(text.find_first_not_of(quote, i), text.size());
    else if (!multiline && (text[i] == quote || text[i] == '\n')) return i + 1;
  }
  return text.size();
}

/// The position of a non-ASCII character outside of quotes and comments, or npos. TOML does not
/// allow it, and the library has undefined behaviour for some of them.
std::size_t find_unquoted_non_ascii(std::string_view text) {
  std::size_t i = text.starts_with("\xEF\xBB\xBF") ? 3 : 0;  // byte order mark
  while (i < text.size()) {
    if (static_cast<unsigned char>(text[i]) >= 0x80) return i;
    if (text[i] == '"' || text[i] == '\'') i = end_of_quoted(text, i);
    else if (text[i] == '#') i = std::min(text.find('\n', i), text.size());
    else ++i;
  }
  return std::string_view::npos;
}

/// Wipes all texts: some are passwords and keys.
void wipe_texts(toml::node& node) {
  if (auto* text = node.as_string()) {
    detail::wipe(text->get());
  } else if (auto* table = node.as_table()) {
    for (auto&& [key, child] : *table) wipe_texts(child);
  } else if (auto* list = node.as_array()) {
    for (auto& child : *list) wipe_texts(child);
  }
}

/// Converts TOML tables to a flat list of values.
class flattener {
 public:
  flattener(const environment& lookup, std::vector<problem>& problems, const section_filter& admits)
      : lookup_(lookup), problems_(problems), admits_(admits) {}

  void add_table(const toml::table& table) {
    if (table.empty() && !path_.empty()) add(table, empty_table{});
    for (const auto& [key, node] : table) {
      path_.emplace_back(key.str());
      if (path_.size() > 1 || admits_(path_[0])) {
        if (const auto* child = node.as_table()) add_table(*child);
        else add_leaf(node);
      }
      path_.pop_back();
    }
  }

  std::vector<file_value> values{};

 private:
  void add(const toml::node& node, file_value::content value, bool substituted = false) {
    values.push_back({.path = path_,
                      .line = node.source().begin.line,
                      .value = std::move(value),
                      .substituted = substituted});
  }

  void add_leaf(const toml::node& node) {
    if (const auto* flag = node.as_boolean()) return add(node, flag->get());
    if (const auto* number = node.as_integer()) return add(node, number->get());
    if (const auto* number = node.as_floating_point()) return add(node, number->get());
    bool substituted = false;
    if (const auto* text = node.as_string()) {
      auto full_text = substitute(text->get(), node, substituted);
      return add(node, std::move(full_text), substituted);
    }
    const auto* list = node.as_array();
    if (list == nullptr) return add(node, other_value{});
    std::vector<std::string> texts;
    for (const auto& element : *list) {
      const auto* text = element.as_string();
      if (text == nullptr) return add(node, other_value{});
      texts.push_back(substitute(text->get(), element, substituted));
    }
    add(node, std::move(texts), substituted);
  }

  std::string substitute(std::string_view rest, const toml::node& node, bool& substituted) {
    std::string result;
    while (!rest.empty()) {
      const auto dollar = std::min(rest.find('$'), rest.size());
      result.append(rest.substr(0, dollar));
      rest.remove_prefix(dollar);
      if (rest.starts_with("$${")) {
        result.append("${");
        rest.remove_prefix(3);
      } else if (!rest.starts_with("${")) {
        result.append(rest.substr(0, 1));
        rest.remove_prefix(std::min<std::size_t>(1, rest.size()));
      } else {
        const auto end = rest.find('}');
        if (end == std::string_view::npos) {
          add_problem(node, "a ${ has no }");
          return result;
        }
        result.append(expand_variable(rest.substr(2, end - 2), node));
        substituted = true;
        rest.remove_prefix(end + 1);
      }
    }
    return result;
  }

  /// The value of `NAME` or `NAME:default`.
  std::string expand_variable(std::string_view expression, const toml::node& node) {
    const auto colon = expression.find(':');
    const std::string name(expression.substr(0, colon));
    if (!is_variable_name(name)) {
      add_problem(node, "a ${...} needs the name of a variable: ${NAME} or ${NAME:default}");
      return {};
    }
    if (auto value = lookup_(name)) return *value;
    if (colon != std::string_view::npos) return std::string(expression.substr(colon + 1));
    add_problem(node, "the environment variable " + name +
                          " is not set; set it, or give a default: ${" + name + ":default}");
    return {};
  }

  void add_problem(const toml::node& node, const std::string& text) {
    problems_.push_back({.line = node.source().begin.line, .text = dotted(path_) + ": " + text});
  }

  const environment& lookup_;
  std::vector<problem>& problems_;
  const section_filter& admits_;
  key_path path_{};
};

}  // namespace

environment process_environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    // Only unsafe while another thread sets variables.
    // NOLINTNEXTLINE(concurrency-mt-unsafe)
    const char* value = std::getenv(name.c_str());
    if (value == nullptr) return std::nullopt;
    return value;
  };
}

bool is_failover_section(std::string_view name) {
  return name == "failover" || edit_distance(name, "failover") <= 2;
}

void throw_problems(const std::string& file, std::vector<problem> problems) {
  constexpr std::size_t max_shown = 50;
  std::ranges::sort(problems, {}, [](const problem& p) { return std::tie(p.line, p.text); });
  std::string message;
  for (std::size_t i = 0; i < std::min(problems.size(), max_shown); ++i) {
    if (i != 0) message.append("; ");
    if (problems[i].line != 0)
      message.append("line ").append(std::to_string(problems[i].line)).append(": ");
    message.append(problems[i].text);
  }
  if (problems.size() > max_shown)
    message.append("; and ").append(std::to_string(problems.size() - max_shown)).append(" more");
  throw error(errc::invalid_argument, message, {.path = file});
}

std::vector<file_value> read_toml(std::string_view text, const environment& lookup,
                                  std::vector<problem>& problems, const section_filter& admits) {
  // TOML does not allow control characters, and the library does not reject all of them.
  const auto control_character = std::ranges::find_if(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\t' && c != '\n' && c != '\r') || byte == 0x7f;
  });
  if (control_character != text.end()) {
    const auto line =
        1 + static_cast<std::size_t>(std::count(text.begin(), control_character, '\n'));
    problems.push_back({.line = line, .text = "a control character; TOML is plain text"});
    return {};
  }
  if (const auto position = find_unquoted_non_ascii(text); position != std::string_view::npos) {
    const auto line =
        1 + static_cast<std::size_t>(std::ranges::count(text.substr(0, position), '\n'));
    problems.push_back(
        {.line = line,
         .text = "a letter that needs quotes; bare keys are made of a-z, A-Z, 0-9, - and _"});
    return {};
  }
  constexpr const char* not_toml = "this is not TOML; texts need quotes, and each key its own line";
  flattener flat(lookup, problems, admits);
  try {
    auto parsed = toml::parse(text);
    flat.add_table(parsed);
    wipe_texts(parsed);
  } catch (const toml_assertion&) {
    problems.push_back({.line = 0, .text = not_toml});
  } catch (const toml::parse_error& e) {
    const std::size_t line = e.source().begin.line;
    std::string message = not_toml;
    if (!may_contain_secret(line_of(text, line)))
      message.append(" (").append(e.description()).append(")");
    problems.push_back({.line = line, .text = std::move(message)});
  }
  // The library sorts keys by name; messages are easier to use in the order of the file.
  std::sort(flat.values.begin(), flat.values.end(), [](const file_value& a, const file_value& b) {
    return std::tie(a.line, a.path) < std::tie(b.line, b.path);
  });
  return std::move(flat.values);
}

std::string read_text(const std::string& file) {
  // Not with a stream: its buffer would keep a copy of passwords and keys.
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
  if (descriptor < 0)
    throw error(errc::unavailable,
                "the file cannot be opened; check that it exists and that this process may read it",
                {.path = file});
  std::string text(max_file_size + 1, '\0');
  std::size_t size = 0;
  ssize_t received = 0;
  while (size < text.size()) {
    received = ::read(descriptor, text.data() + size, text.size() - size);
    if (received < 0 && errno == EINTR) continue;
    if (received <= 0) break;
    size += static_cast<std::size_t>(received);
  }
  ::close(descriptor);
  if (received < 0) throw error(errc::unavailable, "the file cannot be read", {.path = file});
  if (size > max_file_size)
    throw error(errc::too_large, "a configuration file may have at most 1 MiB", {.path = file});
  text.resize(size);
  return text;
}

}  // namespace HOLDFAST_NAMESPACE::detail::failover::config
