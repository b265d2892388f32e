#include "key/path_text.hpp"

#include <algorithm>

namespace HOLDFAST_NAMESPACE::key {

namespace {

/// The anchor (drive and root) and what comes after it.
struct split_path {
  std::string drive;
  std::string root;
  std::string_view rest;
};

split_path split_posix(std::string_view text) {
  const auto slashes = std::min(text.find_first_not_of('/'), text.size());
  // Exactly two leading slashes are the system's own business and are kept; three or more mean one.
  const std::string root = slashes == 0 ? "" : slashes == 2 ? "//" : "/";
  return {"", root, text.substr(slashes)};
}

constexpr bool is_letter(char c) noexcept { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// `text` has backslashes only.
split_path split_windows(std::string_view text) {
  std::string prefix;
  if (text.starts_with(R"(\\?\)")) {  // an extended path: \\?\C:\ or \\?\UNC\server\share
    prefix = text.substr(0, 4);
    text.remove_prefix(4);
    if (text.starts_with("UNC\\")) {
      prefix += "UNC";
      text.remove_prefix(2);  // leaves `C\server\share`: its first character is stood in for by a slash below
    }
  }
  const bool extended_share = prefix.size() == 7;
  const bool share_like = extended_share || (text.size() >= 2 && text[0] == '\\' && text[1] == '\\');
  if (share_like && !(text.size() > 2 && text[2] == '\\')) {
    const auto server_end = text.find('\\', 2);
    if (server_end != std::string_view::npos) {
      auto share_end = text.find('\\', server_end + 1);
      if (share_end != server_end + 1) {
        share_end = std::min(share_end, text.size());
        const auto drive = prefix.empty() ? std::string(text.substr(0, share_end)) : prefix + std::string(text.substr(1, share_end - 1));
        return {drive, "\\", text.substr(std::min(share_end + 1, text.size()))};
      }
    }
  }
  std::string drive = prefix;
  if (extended_share) {
    // Not a share after all: what is left begins with the slash that the server's name stood behind.
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
  std::string turned;
  if (windows) {
    turned = path;
    std::replace(turned.begin(), turned.end(), '/', '\\');
    path = turned;
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

}  // namespace HOLDFAST_NAMESPACE::key
