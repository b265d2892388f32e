#pragma once

#include <holdfast/store.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

namespace holdfast::cli {

/// Calls `use` for every entry of a name, at most so many, page by page. Returns how many rows could not be read.
template <class F>
std::size_t each_entry(store& of, const std::string& name, std::uint64_t most, F use) {
  std::size_t unreadable = 0;
  std::string after;
  for (std::uint64_t seen = 0; seen < most;) {
    const auto page = of.find_all(name, static_cast<std::size_t>(std::min<std::uint64_t>(500, most - seen)), after);
    for (const entry& each : page.entries) use(each);
    seen += page.entries.size();
    unreadable += page.unreadable;
    if (!page.next) break;
    after = *page.next;
  }
  return unreadable;
}

}  // namespace holdfast::cli
