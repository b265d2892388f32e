#include "http/fields.hpp"

#include <holdfast/error.hpp>

#include <array>
#include <charconv>

namespace HOLDFAST_NAMESPACE::detail::http {

std::optional<std::string> fields::join(std::string_view name) const {
  std::optional<std::string> joined;
  for_each(name, [&](std::string_view value) {
    if (!joined) {
      joined.emplace(value);
      return;
    }
    joined->append(", ").append(value);
  });
  return joined;
}

void field_block::add(std::string_view name, std::string_view value) {
  if (!is_token(name))
    throw error(errc::invalid_argument, "a field needs a name of letters, digits and hyphens");
  if (!is_field_value(value) || trim(value).size() != value.size())
    throw error(errc::invalid_argument,
                "the value of the field " + std::string(name) +
                    " has a control character, or a space at an end; remove it");
  text_.append(name).append(": ").append(value).append("\r\n");
}

void field_block::add(std::string_view name, std::uint64_t number) {
  std::array<char, 20> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  add(name, std::string_view(digits.data(), static_cast<std::size_t>(end - digits.data())));
}

std::optional<std::string_view> field_block::find(std::string_view name) const noexcept {
  std::string_view rest = text_;
  while (!rest.empty()) {
    const auto line = rest.substr(0, rest.find('\r'));
    const auto colon = line.find(':');
    if (equals_ignoring_case(line.substr(0, colon), name)) return line.substr(colon + 2);
    rest.remove_prefix(line.size() + 2);
  }
  return std::nullopt;
}

defect read_field_line(std::string_view line, std::size_t offset, fields& target) {
  if (line.empty() || is_whitespace(line.front())) return defect::folded_line;
  std::size_t colon = 0;
  while (colon < line.size() && is_token_character(line[colon])) ++colon;
  if (colon == 0 || colon == line.size() || line[colon] != ':') return defect::field_name;
  const auto value = trim(line.substr(colon + 1));
  if (!is_field_value(value)) return defect::field_value;
  target.add(offset, colon, offset + static_cast<std::size_t>(value.data() - line.data()),
             value.size());
  return defect::none;
}

bool is_look_alike(std::string_view name) noexcept {
  if (name.find('_') == std::string_view::npos) return false;
  constexpr std::array<std::string_view, 5> framing = {"content-length", "transfer-encoding",
                                                       "host", "connection", "expect"};
  while (!name.empty() && name.front() == '_') name.remove_prefix(1);
  while (!name.empty() && name.back() == '_') name.remove_suffix(1);
  for (const auto known_name : framing) {
    if (name.size() != known_name.size()) continue;
    bool same = true;
    for (std::size_t i = 0; i < name.size() && same; ++i)
      same = to_lower(name[i] == '_' ? '-' : name[i]) == known_name[i];
    if (same) return true;
  }
  return false;
}

}  // namespace HOLDFAST_NAMESPACE::detail::http
