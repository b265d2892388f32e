#pragma once

#include <holdfast/store.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

namespace holdfast::cli {

/// Calls `visit` for at most `limit` entries of a name, page by page. Returns the number of rows
/// that could not be read.
template <class Visit>
std::size_t for_each_entry(store& source, const std::string& name, std::uint64_t limit,
                           Visit visit) {
  constexpr std::uint64_t page_size = 500;
  std::size_t unreadable = 0;
  std::string after;
  for (std::uint64_t count = 0; count < limit;) {
    const auto page =
        source.find_all(name, static_cast<std::size_t>(std::min(page_size, limit - count)), after);
    for (const entry& e : page.entries) visit(e);
    count += page.entries.size();
    unreadable += page.unreadable;
    if (!page.next) break;
    after = *page.next;
  }
  return unreadable;
}

}  // namespace holdfast::cli
