#include "key/path_text.hpp"

#include <algorithm>

namespace HOLDFAST_NAMESPACE::detail::key {

namespace {

/// A path, split into its anchor (drive and root) and the rest.
struct split_path {
  std::string drive;
  std::string root;
  std::string_view rest;
};

split_path split_posix(std::string_view text) {
  const auto slashes = std::min(text.find_first_not_of('/'), text.size());
  // POSIX gives exactly two leading slashes a meaning of their own; three or more mean one.
  const std::string root = slashes == 0 ? "" : slashes == 2 ? "//" : "/";
  return {"", root, text.substr(slashes)};
}

constexpr bool is_letter(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/// The length of `\\server\share` at the front of the text, or 0 if server or share is missing. The
/// first two characters are not checked.
std::size_t share_length(std::string_view text) {
  if (text.size() > 2 && text[2] == '\\') return 0;
  const auto server_end = text.find('\\', 2);
  if (server_end == std::string_view::npos) return 0;
  const auto share_end = text.find('\\', server_end + 1);
  return share_end == server_end + 1 ? 0 : std::min(share_end, text.size());
}

/// `text` contains backslashes only.
split_path split_windows(std::string_view text) {
  std::string prefix;
  bool extended_share = false;
  if (text.starts_with(R"(\\?\)")) {  // an extended path: \\?\C:\ or \\?\UNC\server\share
    prefix = text.substr(0, 4);
    text.remove_prefix(4);
    if (text.starts_with("UNC\\")) {
      prefix += "UNC";
      extended_share = true;
      // Leaves `C\server\share`, as long as `\\server\share`. Its first character is not used.
      text.remove_prefix(2);
    }
  }
  if (extended_share || text.starts_with("\\\\")) {
    if (const auto length = share_length(text)) {
      const auto drive = prefix.empty() ? std::string(text.substr(0, length))
                                        : prefix + std::string(text.substr(1, length - 1));
      return {drive, "\\", text.substr(std::min(length + 1, text.size()))};
    }
  }
  std::string drive = prefix;
  if (extended_share) {
    // Without a server and a share, `text` begins with `C\`. Skip both and all slashes after them.
    return {drive, "\\", text.substr(std::min(text.find_first_not_of('\\', 1), text.size()))};
  }
  if (text.size() >= 2 && text[1] == ':' && is_letter(text[0])) {
    drive += text.substr(0, 2);
    text.remove_prefix(2);
  }
  const auto slashes = std::min(text.find_first_not_of('\\'), text.size());
  return {drive, slashes == 0 ? "" : "\\", text.substr(slashes)};
}

}  // namespace

std::string posix_text(std::string_view path, path::flavour flavour) {
  const bool windows = flavour == path::flavour::windows;
  std::string with_backslashes;
  if (windows) {
    with_backslashes = path;
    std::replace(with_backslashes.begin(), with_backslashes.end(), '/', '\\');
    path = with_backslashes;
  }
  const char separator = windows ? '\\' : '/';
  const auto parts = windows ? split_windows(path) : split_posix(path);

  std::string result = parts.drive + parts.root;
  bool first = true;
  for (auto rest = parts.rest; !rest.empty();) {
    const auto end = std::min(rest.find(separator), rest.size());
    const auto part = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (part.empty() || part == ".") continue;
    if (!first) result += separator;
    result += part;
    first = false;
  }
  if (result.empty()) return ".";
  if (windows) std::replace(result.begin(), result.end(), '\\', '/');
  return result;
}

}  // namespace HOLDFAST_NAMESPACE::detail::key
