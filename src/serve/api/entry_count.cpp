#include "serve/api/entry_count.hpp"

#include <holdfast/error.hpp>
#include <holdfast/store/compose.hpp>
#include <holdfast/store/tenants.hpp>

#include <algorithm>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

/// Payloads are read with the entries, and one may have 1 MiB.
constexpr std::size_t page_rows = 100;
/// The deadline is checked between so many names.
constexpr std::size_t page_names = 100;

void add_entry(entry_count& count, const entry& row, timestamp now) {
  ++count.entries;
  if (row.payload) count.bytes += row.payload->size();
  else ++count.tombstones;
  count.oldest = count.oldest ? std::min(*count.oldest, row.as_of) : row.as_of;
  count.newest = count.newest ? std::max(*count.newest, row.as_of) : row.as_of;
  if (row.expire_on < now) ++count.expired;
  else count.next_expiry = std::min(count.next_expiry.value_or(row.expire_on), row.expire_on);
}

entry_count count_name(store& counted, const std::string& realm, const std::string& name,
                       timestamp now, std::size_t max_rows, question_limits& limits) {
  entry_count count{.name = name};
  std::string after;
  for (std::size_t rows = 0;;) {
    if (rows >= max_rows || limits.is_late()) {
      count.at_least = true;
      return count;
    }
    const auto page =
        counted.find_all(place(name, realm), std::min(page_rows, max_rows - rows), after);
    for (const auto& row : page.entries) add_entry(count, row, now);
    count.unreadable += page.unreadable;
    const auto read = page.entries.size() + page.unreadable;
    rows += read;
    limits.rows -= std::min(limits.rows, read);
    if (!page.next) return count;
    after = *page.next;
  }
}

}  // namespace

store_count count_entries(store& counted, const std::string& realm, timestamp now,
                          std::size_t limit, const std::string& after, question_limits& limits) {
  auto* const listing = find_name_listing(counted);
  if (listing == nullptr)
    throw error(errc::unsupported_type, "this kind of store does not list its names");
  std::vector<std::string> names;
  store_count result;
  for (std::string last = after; names.size() < limit && !limits.is_late();) {
    const auto requested = std::min(page_names, limit - names.size());
    auto page = listing->names(realm, requested, last);
    const bool is_last = page.size() < requested;
    if (!page.empty()) last = page.back();
    std::ranges::move(page, std::back_inserter(names));
    if (is_last) break;
  }
  result.at_least =
      !names.empty() && (limits.is_late() || !listing->names(realm, 1, names.back()).empty());
  const tenant_scope scope(realm.empty() ? std::nullopt : std::optional(realm));
  result.names.reserve(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto share = limits.rows / (names.size() - i);
    result.names.push_back(count_name(counted, realm, names[i], now, share, limits));
  }
  return result;
}

void write_count(json_writer& out, const entry_count& count) {
  const auto time = [&](std::string_view name, const std::optional<timestamp>& value) {
    out.key(name);
    if (value) out.time(*value);
    else out.null();
  };
  out.member("name", count.name)
      .member("entries", count.entries)
      .member("atLeast", count.at_least)
      .member("tombstones", count.tombstones)
      .member("expired", count.expired)
      .member("unreadable", count.unreadable)
      .member("bytes", count.bytes);
  time("oldest", count.oldest);
  time("newest", count.newest);
  time("nextExpiry", count.next_expiry);
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
