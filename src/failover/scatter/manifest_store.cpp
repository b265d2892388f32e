#include "failover/scatter/manifest_store.hpp"

#include "failover/scatter/manifest.hpp"

#include <algorithm>

namespace HOLDFAST_NAMESPACE::detail::failover {

std::uint64_t manifest_id(const point_core& point, const gather_base& call) noexcept {
  return point.row_id(call) ^ std::hash<std::string>{}(point.manifest_name);
}

std::vector<entry> manifest_rows(const point_core& point, const gather_base& call,
                                 timestamp expire_on, const std::vector<std::string_view>& keys) {
  const auto chunk_size = point.engine.base_store->peer() == peer::java ? manifest_chunk_keys_java
                                                                        : manifest_chunk_keys;
  const auto chunks = std::max<std::size_t>(1, (keys.size() + chunk_size - 1) / chunk_size);
  std::vector<entry> rows;
  rows.reserve(chunks);
  for (std::size_t index = chunks; index-- > 0;) {
    const auto first = index * chunk_size;
    const auto chunk_keys =
        std::span(keys).subspan(first, std::min(chunk_size, keys.size() - first));
    rows.push_back({.name = point.manifest_name,
                    .key = manifest_key(call.key, index),
                    .as_of = call.provenance.as_of,
                    .expire_on = expire_on,
                    .payload = write_manifest(keys.size(), chunks, index, chunk_keys),
                    .payload_class = std::string(manifest_class),
                    .realm = call.realm});
  }
  return rows;
}

namespace {

timestamp version_of(const read_result& read) { return read.row ? read.row->as_of : timestamp{}; }

/// Parses the row of a chunk. If it cannot be used, returns nothing and sets `problem`.
std::optional<manifest_chunk> parse_row(const point_core& point, const read_result& read,
                                        std::optional<timestamp> newest, counter& problem) {
  problem = counter_of(read.status);
  if (!read.row || !read.row->payload) return std::nullopt;
  problem = counter::expired;
  if (point.engine.clock->now() > read.row->expire_on) return std::nullopt;
  problem = counter::older;
  if (newest && read.row->as_of < *newest) return std::nullopt;
  problem = counter::not_allowed;
  if (read.row->payload_class != manifest_class) return std::nullopt;
  problem = counter::undecodable;
  return parse_manifest(*read.row->payload);
}

/// Reads the chunks after the head and appends their keys to the members.
void read_further_chunks(const std::shared_ptr<point_core>& point, const gather_base& call,
                         const manifest_chunk& head, std::optional<timestamp> newest,
                         steady_time deadline, list_members& members) {
  std::vector<std::string> row_keys;
  row_keys.reserve(head.chunks - 1);
  for (std::size_t index = 1; index < head.chunks; ++index)
    row_keys.push_back(manifest_key(call.key, index));
  const auto reads =
      read_rows(*point, point->manifest_name, call.realm, std::move(row_keys), deadline);
  for (std::size_t i = 0; i < reads.size(); ++i) {
    auto problem = counter::not_found;
    auto chunk = parse_row(*point, reads[i], newest, problem);
    // A chunk with another version belongs to another list.
    if (chunk && (chunk->index != i + 1 || chunk->members != head.members ||
                  version_of(reads[i]) != members.as_of)) {
      problem = counter::not_found;
      chunk.reset();
    }
    if (!chunk) {
      point->count(problem);
      continue;
    }
    for (auto& key : chunk->keys) members.keys.push_back(std::move(key));
  }
}

}  // namespace

std::optional<list_members> read_manifest(const std::shared_ptr<point_core>& point,
                                          const gather_base& call, steady_time deadline) {
  auto problem = counter::not_found;
  const auto newest = point->engine.newest_served(manifest_id(*point, call));  // before the read
  auto reads = read_rows(*point, point->manifest_name, call.realm, {call.key}, deadline);
  auto head = parse_row(*point, reads.front(), newest, problem);
  const auto max_slices = point->scatter.max_slices;
  if (head && (head->index != 0 || head->chunks > max_slices || head->members > max_slices)) {
    problem = counter::undecodable;
    head.reset();
  }
  if (!head) {
    point->count(problem);
    if (const auto& row = reads.front().row; row && problem == counter::expired)
      erase_expired(point, *row);
    return std::nullopt;
  }
  list_members members{.as_of = version_of(reads.front()), .keys = std::move(head->keys)};
  if (head->chunks > 1) read_further_chunks(point, call, *head, newest, deadline, members);
  if (members.keys.size() > head->members) {
    point->count(counter::undecodable);
    return std::nullopt;
  }
  members.missing = head->members - members.keys.size();
  return members;
}

}  // namespace HOLDFAST_NAMESPACE::detail::failover
