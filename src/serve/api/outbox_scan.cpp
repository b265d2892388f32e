#include "serve/api/outbox_scan.hpp"

#include <holdfast/error.hpp>

#include <algorithm>
#include <span>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

/// The records behind the one with this id; all of them, if it is not here any more: a record is
/// rather shown twice than left out.
std::span<outbox_record> records_after(std::vector<outbox_record>& records, std::string_view id) {
  const auto it = std::ranges::find_if(
      records, [&](const outbox_record& record) { return record.details.event.id == id; });
  if (id.empty() || it == records.end()) return records;
  return {it + 1, records.end()};
}

}  // namespace

bool scan_within(const outbox_service& service, scan_what selection, scan_budget& budget,
                 const std::function<bool(const outbox_record&)>& visit) {
  std::string position;
  do {
    auto page = service.outbox.admin().scan(selection, position, scan_page_size);
    budget.spend(std::max<std::size_t>(page.records.size(), 1));
    for (const auto& record : page.records) {
      if (!visit(record)) return false;
    }
    position = std::move(page.after);
  } while (!position.empty() && !budget.is_spent());
  return position.empty();
}

filtered_page scan_filtered(const outbox_service& service, scan_what selection,
                            const event_filter& filter, std::string_view after, std::size_t limit,
                            const clock& time) {
  const auto mark = after.rfind('~');
  if (!after.empty() && mark == std::string_view::npos)
    throw error(errc::invalid_argument, "is not the next of a page; pass it unchanged",
                {.path = "after"});
  std::string position(after.substr(0, after.empty() ? 0 : mark));
  std::string last_id(after.empty() ? std::string_view() : after.substr(mark + 1));
  scan_budget budget(time);
  filtered_page result;
  for (;;) {
    auto page = service.outbox.admin().scan(selection, position, scan_page_size);
    for (auto& record : records_after(page.records, last_id)) {
      budget.spend(1);
      if (!filter.matches(record)) continue;
      if (result.records.size() == limit) {
        // There is one more.
        result.next = position + '~' + result.records.back().details.event.id;
        result.examined = budget.examined();
        return result;
      }
      result.records.push_back(std::move(record));
    }
    last_id.clear();
    result.examined = budget.examined();
    if (page.after.empty()) return result;
    position = std::move(page.after);
    budget.spend(page.records.empty() ? 1 : 0);
    if (budget.is_spent()) {
      result.next = position + '~';
      return result;
    }
  }
}

timestamp store_time(const outbox_service& service) {
  const auto claim =
      service.outbox.claim({.lane = 0, .most = 1, .owner = "clock-" + new_event_id()});
  return claim.now;
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
