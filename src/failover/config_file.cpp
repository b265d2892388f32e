// The only file that knows the TOML library: it takes seconds to compile.

#include "failover/config_file.hpp"

#include <holdfast/error.hpp>

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

/// The library asserts where a text surprises it; an application must not end for a typing error.
struct surprised {};
[[noreturn]] void surprise() { throw surprised(); }

}  // namespace

#undef NDEBUG  // with it, the library takes for granted what it asserts without
#define TOML_ASSERT(condition) ((condition) ? void() : surprise())
#define TOML_ENABLE_FORMATTERS 0
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

namespace HOLDFAST_NAMESPACE::config {

namespace {

constexpr std::size_t max_file_size = std::size_t{1} << 20U;

/// Keys whose values may be secrets: a line with one of these is not shown, not even a letter of it.
bool may_hold_secret(std::string_view line) {
  std::string lower(line);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::ranges::any_of(std::array<std::string_view, 4>{"password", "key", "secret", "url"},
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

bool is_variable(std::string_view name) {
  return !name.empty() && !(name[0] >= '0' && name[0] <= '9') && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

/// The end of the quoted text that starts at `at`: behind its closing quotes, or where its line ends without them.
std::size_t end_of_quoted(std::string_view text, std::size_t at) {
  const char quote = text[at];
  const std::string_view many = quote == '"' ? R"(""")" : "'''";
  const bool lines = text.substr(at).starts_with(many);
  for (at += lines ? many.size() : 1; at < text.size(); ++at) {
    if (text[at] == '\\' && quote == '"') ++at;
    else if (lines && text.substr(at).starts_with(many)) return std::min(text.find_first_not_of(quote, at), text.size());
    else if (!lines && (text[at] == quote || text[at] == '\n')) return at + 1;
  }
  return text.size();
}

/// Where a letter beyond ASCII stands outside of quotes and comments, or npos. TOML has none there, and the library's way of finding out is
/// undefined for many.
std::size_t find_bare_foreign(std::string_view text) {
  std::size_t at = text.starts_with("\xEF\xBB\xBF") ? 3 : 0;  // the mark that some editors write
  while (at < text.size()) {
    if (static_cast<unsigned char>(text[at]) >= 0x80) return at;
    if (text[at] == '"' || text[at] == '\'') at = end_of_quoted(text, at);
    else if (text[at] == '#') at = std::min(text.find('\n', at), text.size());
    else ++at;
  }
  return std::string_view::npos;
}

/// Some of the texts are passwords and keys.
void wipe_texts(toml::node& node) {
  if (auto* text = node.as_string()) {
    wipe(text->get());
  } else if (auto* table = node.as_table()) {
    for (auto&& [key, below] : *table) wipe_texts(below);
  } else if (auto* list = node.as_array()) {
    for (auto& below : *list) wipe_texts(below);
  }
}

class flattening {
 public:
  flattening(const environment& lookup, std::vector<problem>& problems) : lookup_(lookup), problems_(problems) {}

  void table(const toml::table& from) {
    if (from.empty() && !path_.empty()) add(from, empty_table{});
    for (const auto& [key, node] : from) {
      path_.emplace_back(key.str());
      if (path_.size() == 1 && foreign_top(path_[0])) {
        path_.pop_back();
        continue;
      }
      if (const auto* below = node.as_table()) table(*below);
      else leaf(node);
      path_.pop_back();
    }
  }

  std::vector<file_value> values{};

 private:
  /// The application's own part of the file.
  static bool foreign_top(std::string_view name) { return name != "failover" && distance(name, "failover") > 2; }

  void add(const toml::node& from, file_value::content is, bool substituted = false) {
    values.push_back({.path = path_, .line = from.source().begin.line, .is = std::move(is), .substituted = substituted});
  }

  void leaf(const toml::node& node) {
    if (const auto* flag = node.as_boolean()) return add(node, flag->get());
    if (const auto* number = node.as_integer()) return add(node, number->get());
    if (const auto* number = node.as_floating_point()) return add(node, number->get());
    bool substituted = false;
    if (const auto* text = node.as_string()) {
      auto full = substitute(text->get(), node, substituted);
      return add(node, std::move(full), substituted);
    }
    const auto* list = node.as_array();
    if (list == nullptr) return add(node, other_value{});
    std::vector<std::string> texts;
    for (const auto& each : *list) {
      const auto* text = each.as_string();
      if (text == nullptr) return add(node, other_value{});
      texts.push_back(substitute(text->get(), each, substituted));
    }
    add(node, std::move(texts), substituted);
  }

  std::string substitute(std::string_view from, const toml::node& at, bool& substituted) {
    std::string to;
    while (!from.empty()) {
      const auto dollar = std::min(from.find('$'), from.size());
      to.append(from.substr(0, dollar));
      from.remove_prefix(dollar);
      if (from.starts_with("$${")) {
        to.append("${");
        from.remove_prefix(3);
      } else if (!from.starts_with("${")) {
        to.append(from.substr(0, 1));
        from.remove_prefix(std::min<std::size_t>(1, from.size()));
      } else {
        const auto end = from.find('}');
        if (end == std::string_view::npos) {
          complain(at, "a ${ has no }");
          return to;
        }
        to.append(variable(from.substr(2, end - 2), at));
        substituted = true;
        from.remove_prefix(end + 1);
      }
    }
    return to;
  }

  std::string variable(std::string_view inner, const toml::node& at) {
    const auto colon = inner.find(':');
    const std::string name(inner.substr(0, colon));
    if (!is_variable(name)) {
      complain(at, "a ${...} needs the name of a variable: ${NAME} or ${NAME:default}");
      return {};
    }
    if (auto found = lookup_(name)) return *found;
    if (colon != std::string_view::npos) return std::string(inner.substr(colon + 1));
    complain(at, "the environment variable " + name + " is not set; set it, or give a default: ${" + name + ":default}");
    return {};
  }

  void complain(const toml::node& at, const std::string& what) {
    problems_.push_back({.line = at.source().begin.line, .text = dotted(path_) + ": " + what});
  }

  const environment& lookup_;
  std::vector<problem>& problems_;
  key_path path_{};
};

}  // namespace

environment process_environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe): nobody sets variables while engines are made
    if (value == nullptr) return std::nullopt;
    return value;
  };
}

std::vector<file_value> read_toml(std::string_view text, const environment& lookup, std::vector<problem>& problems) {
  // TOML has none of these, and the library stumbles over some.
  const auto wrong = std::ranges::find_if(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\t' && c != '\n' && c != '\r') || byte == 0x7f;
  });
  if (wrong != text.end()) {
    const auto line = 1 + static_cast<std::size_t>(std::count(text.begin(), wrong, '\n'));
    problems.push_back({.line = line, .text = "a control character; TOML is plain text"});
    return {};
  }
  if (const auto foreign = find_bare_foreign(text); foreign != std::string_view::npos) {
    const auto line = 1 + static_cast<std::size_t>(std::ranges::count(text.substr(0, foreign), '\n'));
    problems.push_back({.line = line, .text = "a letter that needs quotes; bare keys are made of a-z, A-Z, 0-9, - and _"});
    return {};
  }
  flattening flat(lookup, problems);
  try {
    auto parsed = toml::parse(text);
    flat.table(parsed);
    wipe_texts(parsed);
  } catch (const surprised&) {
    problems.push_back({.line = 0, .text = "this is no TOML; texts stand in quotes, one key a line"});
  } catch (const toml::parse_error& e) {
    const std::size_t line = e.source().begin.line;
    std::string what = "this is no TOML; texts stand in quotes, one key a line";
    if (!may_hold_secret(line_of(text, line))) what.append(" (").append(e.description()).append(")");
    problems.push_back({.line = line, .text = std::move(what)});
  }
  // The library sorts keys by their names; people read a file from the top.
  std::sort(flat.values.begin(), flat.values.end(),
            [](const file_value& a, const file_value& b) { return std::tie(a.line, a.path) < std::tie(b.line, b.path); });
  return std::move(flat.values);
}

std::string read_text(const std::string& file) {
  // Without a stream, whose buffer would keep a copy of the passwords and keys in it.
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
  if (descriptor < 0)
    throw error(errc::unavailable, "the file cannot be opened; is it there, and may this process read it?", {.path = file});
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
  if (size > max_file_size) throw error(errc::too_large, "a configuration has at most 1 MiB", {.path = file});
  text.resize(size);
  return text;
}

}  // namespace HOLDFAST_NAMESPACE::config
