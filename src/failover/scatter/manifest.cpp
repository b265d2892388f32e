#include "failover/scatter/manifest.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::failover {

namespace {

constexpr std::string_view magic = "holdfast-manifest/1";

/// Removes the text up to the separator, and the separator. Returns that text.
std::string_view take_until(std::string_view& text, char separator) {
  const auto end = std::min(text.find(separator), text.size());
  const auto part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

std::optional<std::size_t> parse_number(std::string_view text) {
  std::size_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::string write_manifest(std::size_t members, std::size_t chunks, std::size_t index,
                           std::span<const std::string_view> keys) {
  std::string text(magic);
  for (const auto number : {members, chunks, index})
    text.append(" ").append(std::to_string(number));
  std::size_t size = text.size();
  for (const auto key : keys) size += key.size() + 1;
  text.reserve(size);
  for (const auto key : keys) text.append("\n").append(key);
  return text;
}

std::optional<manifest_chunk> parse_manifest(std::string_view text) {
  auto header = take_until(text, '\n');
  if (take_until(header, ' ') != magic) return std::nullopt;
  const auto members = parse_number(take_until(header, ' '));
  const auto chunks = parse_number(take_until(header, ' '));
  const auto index = parse_number(header);
  if (!members || !chunks || !index || *index >= *chunks) return std::nullopt;
  manifest_chunk chunk{.members = *members, .chunks = *chunks, .index = *index};
  while (!text.empty()) {
    const auto key = take_until(text, '\n');
    if (key.empty() || chunk.keys.size() == chunk.members) return std::nullopt;
    chunk.keys.emplace_back(key);
  }
  // A single chunk has all keys; of several chunks, each has at least one.
  if (chunk.chunks == 1 ? chunk.keys.size() != chunk.members
                        : chunk.keys.empty() || chunk.chunks > chunk.members)
    return std::nullopt;
  return chunk;
}

std::string manifest_key(std::string_view call_key, std::size_t index) {
  std::string key(call_key);
  if (index != 0) key.append("#").append(std::to_string(index));
  return key;
}

}  // namespace HOLDFAST_NAMESPACE::detail::failover
