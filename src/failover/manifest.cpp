#include "failover/manifest.hpp"

#include "failover/scatter.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace HOLDFAST_NAMESPACE {

namespace {

constexpr std::string_view magic = "holdfast-manifest/1";

/// The text up to the separator, which is taken away with it.
std::string_view next(std::string_view& text, char separator) {
  const auto end = std::min(text.find(separator), text.size());
  const auto part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

std::optional<std::size_t> number(std::string_view text) {
  std::size_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::string write_manifest(std::size_t members, std::size_t chunks, std::size_t index, std::span<const std::string_view> keys) {
  std::string text(magic);
  for (const auto each : {members, chunks, index}) text.append(" ").append(std::to_string(each));
  std::size_t size = text.size();
  for (const auto each : keys) size += each.size() + 1;
  text.reserve(size);
  for (const auto each : keys) text.append("\n").append(each);
  return text;
}

std::optional<manifest_chunk> parse_manifest(std::string_view text) {
  auto header = next(text, '\n');
  if (next(header, ' ') != magic) return std::nullopt;
  const auto members = number(next(header, ' '));
  const auto chunks = number(next(header, ' '));
  const auto index = number(header);
  if (!members || !chunks || !index || *index >= *chunks) return std::nullopt;
  manifest_chunk chunk{.members = *members, .chunks = *chunks, .index = *index};
  while (!text.empty()) {
    const auto key = next(text, '\n');
    if (key.empty() || chunk.keys.size() == chunk.members) return std::nullopt;
    chunk.keys.emplace_back(key);
  }
  // The only one has all; of several, each has some.
  if (chunk.chunks == 1 ? chunk.keys.size() != chunk.members : chunk.keys.empty() || chunk.chunks > chunk.members) return std::nullopt;
  return chunk;
}

std::string manifest_key(std::string_view call_key, std::size_t index) {
  std::string key(call_key);
  if (index != 0) key.append("#").append(std::to_string(index));
  return key;
}

namespace detail {

std::vector<entry> manifest_rows(const point_core& point, const gather_base& all, timestamp expire_on,
                                 const std::vector<std::string_view>& keys) {
  const auto per_chunk = point.engine.through->peer() == peer::java ? manifest_chunk_keys_java : manifest_chunk_keys;
  const auto chunks = std::max<std::size_t>(1, (keys.size() + per_chunk - 1) / per_chunk);
  std::vector<entry> rows;
  rows.reserve(chunks);
  // The head last: where it is, the others are, too.
  for (std::size_t index = chunks; index-- > 0;) {
    const auto first = index * per_chunk;
    const auto some = std::span(keys).subspan(first, std::min(per_chunk, keys.size() - first));
    rows.push_back({.name = point.manifest_name,
                    .key = manifest_key(all.key, index),
                    .as_of = all.from.as_of,
                    .expire_on = expire_on,
                    .payload = write_manifest(keys.size(), chunks, index, some),
                    .payload_class = std::string(manifest_class),
                    .realm = all.realm});
  }
  return rows;
}

namespace {

timestamp moment_of(const reading& row) { return row.what ? row.what->as_of : timestamp{}; }

/// A row of a manifest that may be believed; else why not.
std::optional<manifest_chunk> believed(const point_core& point, const reading& row, std::optional<timestamp> newest, tally& why) {
  why = tally::not_found;
  if (row.how == found::failed) why = tally::read_failed;
  if (row.how == found::late) why = tally::read_late;
  if (row.how != found::answer || !row.what || !row.what->payload) return std::nullopt;
  why = tally::expired;
  if (point.engine.clock->now() > row.what->expire_on) return std::nullopt;
  why = tally::older;
  if (newest && row.what->as_of < *newest) return std::nullopt;
  why = tally::not_allowed;
  if (row.what->payload_class != manifest_class) return std::nullopt;
  why = tally::undecodable;
  return parse_manifest(*row.what->payload);
}

}  // namespace

std::optional<membership> read_manifest(const std::shared_ptr<point_core>& point, const gather_base& all,
                                        std::chrono::steady_clock::time_point deadline) {
  auto why = tally::not_found;
  const auto newest = point->engine.newest(manifest_id(*point, all));  // before it is read
  auto heads = read_rows(*point, point->manifest_name, all.realm, {all.key}, deadline);
  auto head = believed(*point, heads.front(), newest, why);
  if (head && (head->index != 0 || head->chunks > point->scatter.max_slices || head->members > point->scatter.max_slices)) {
    why = tally::undecodable;
    head.reset();
  }
  if (!head) {
    point->count(why);
    if (const auto& old = heads.front().what; old && why == tally::expired) drop(point, *old);
    return std::nullopt;
  }
  membership all_of_them{.as_of = moment_of(heads.front()), .keys = std::move(head->keys)};
  if (head->chunks > 1) {
    std::vector<std::string> keys;
    keys.reserve(head->chunks - 1);
    for (std::size_t index = 1; index < head->chunks; ++index) keys.push_back(manifest_key(all.key, index));
    const auto rows = read_rows(*point, point->manifest_name, all.realm, std::move(keys), deadline);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      auto chunk = believed(*point, rows[i], newest, why);
      // Of another version, it belongs to another list.
      if (chunk && (chunk->index != i + 1 || chunk->members != head->members || moment_of(rows[i]) != all_of_them.as_of)) {
        why = tally::not_found;
        chunk.reset();
      }
      if (!chunk) {
        point->count(why);
        continue;
      }
      for (auto& each : chunk->keys) all_of_them.keys.push_back(std::move(each));
    }
  }
  if (all_of_them.keys.size() > head->members) {
    point->count(tally::undecodable);
    return std::nullopt;
  }
  all_of_them.lost = head->members - all_of_them.keys.size();
  return all_of_them;
}

}  // namespace detail
}  // namespace HOLDFAST_NAMESPACE
