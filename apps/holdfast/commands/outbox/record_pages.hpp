#pragma once

#include <holdfast/outbox.hpp>

#include <string>
#include <utility>

namespace holdfast::cli {

/// Calls `visit` for each record, page by page, until it returns false.
template <class Visit>
void for_each_record(const outbox& source, scan_what selection, const Visit& visit) {
  std::string after;
  do {
    auto page = source.admin().scan(selection, after, 500);
    for (const auto& record : page.records) {
      if (!visit(record)) return;
    }
    after = std::move(page.after);
  } while (!after.empty());
}

}  // namespace holdfast::cli
