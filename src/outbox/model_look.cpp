#include <holdfast/error.hpp>

#include "outbox/model.hpp"

#include <algorithm>
#include <charconv>

namespace HOLDFAST_NAMESPACE::outboxes {
namespace {

using hash = std::map<std::string, std::string, std::less<>>;

bool wants_hash(commit_write::kind what) {
  return what == commit_write::kind::set_field || what == commit_write::kind::erase_field || what == commit_write::kind::add_to_field;
}

std::int64_t number_of(const std::string& text, const std::string& key) {
  std::int64_t number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  // As a number is written, and no other way: no leading zeros.
  if (code != std::errc{} || end != text.data() + text.size() || text.size() > 15 || text != std::to_string(number)) {
    throw error(errc::invalid_argument, "what '" + key + "' holds is not a whole number of at most 15 digits: nothing was written");
  }
  return number;
}

[[noreturn]] void wrong_kind(const std::string& key) {
  throw error(errc::invalid_argument, "the key '" + key + "' holds something else than the commit expects: nothing was written");
}

}  // namespace

committed model::commit(std::size_t lane, const commit_request& request, const publish_terms& terms) {
  require(terms.how);
  const std::scoped_lock lock(mutex_);
  auto& in = at(lane);
  const auto now = now_ms();
  const std::string mark = "e:" + request.once;
  if (!request.once.empty()) {
    if (terms.dedup_window.count() == 0) throw error(errc::invalid_argument, "an effect once needs a dedup_window");
    if (remembered(in, mark, terms, now)) return {.status = commit_status::applied};
    if (request.fence != 0 && held(in, request.once, request.once_key, request.fence, true) == nullptr) {
      return {.status = commit_status::stale};
    }
  }
  const auto value_at = [&](const std::string& key, const std::string& field) -> std::optional<std::string> {
    const auto found = in.data.find(key);
    if (found == in.data.end()) return std::nullopt;
    if (field.empty()) {
      if (const auto* text = std::get_if<std::string>(&found->second)) return *text;
      wrong_kind(key);
    }
    const auto* fields = std::get_if<hash>(&found->second);
    if (fields == nullptr) wrong_kind(key);
    const auto one = fields->find(field);
    if (one == fields->end()) return std::nullopt;
    return one->second;
  };
  for (std::size_t i = 0; i < request.conditions.size(); ++i) {
    const auto& one = request.conditions[i];
    bool holds = false;
    switch (one.what) {
      case commit_condition::kind::exists:
        holds = in.data.contains(one.key);
        break;
      case commit_condition::kind::absent:
        holds = !in.data.contains(one.key);
        break;
      case commit_condition::kind::equals:
        holds = value_at(one.key, one.field) == one.value;
        break;
      case commit_condition::kind::missing:
        holds = !value_at(one.key, one.field);
        break;
    }
    if (!holds) return {.status = commit_status::condition_failed, .failed = i};
  }
  for (const auto& one : request.writes) {
    const auto found = in.data.find(one.key);
    if (found == in.data.end() || one.what == commit_write::kind::erase) continue;
    if (wants_hash(one.what) != std::holds_alternative<hash>(found->second)) wrong_kind(one.key);
    if (one.what == commit_write::kind::add || one.what == commit_write::kind::add_to_field) {
      if (const auto text = value_at(one.key, one.field)) (void)number_of(*text, one.key);
    }
  }
  committed result;
  result.receipts = add_all(in, request.events, terms, now);
  for (const auto& one : result.receipts) {
    if (one.status == publish_status::refused && one.problem) throw error(*one.problem);
  }
  for (const auto& one : request.writes) {
    const auto fields = [&]() -> hash& {
      auto& slot = in.data.try_emplace(one.key, hash{}).first->second;
      return std::get<hash>(slot);
    };
    switch (one.what) {
      case commit_write::kind::set:
        in.data[one.key] = one.value;
        break;
      case commit_write::kind::erase:
        in.data.erase(one.key);
        break;
      case commit_write::kind::set_field:
        fields()[one.field] = one.value;
        break;
      case commit_write::kind::erase_field:
        if (in.data.contains(one.key)) {
          fields().erase(one.field);
          if (fields().empty()) in.data.erase(one.key);
        }
        break;
      case commit_write::kind::add:
        in.data[one.key] = std::to_string(number_of(value_at(one.key, {}).value_or("0"), one.key) + one.number);
        break;
      case commit_write::kind::add_to_field: {
        const auto sum = number_of(value_at(one.key, one.field).value_or("0"), one.key) + one.number;
        fields()[one.field] = std::to_string(sum);
        break;
      }
    }
  }
  if (!request.once.empty()) {
    in.done.put(mark, now);
    trim(in, terms, now);
  }
  changed_.notify_all();
  in.marked = in.marked || !request.events.empty();
  return result;
}

outbox_stats model::stats(std::size_t lane) {
  const std::scoped_lock lock(mutex_);
  auto& in = at(lane);
  outbox_stats result = in.counts;
  result.events = in.entries.size();
  result.pending = in.pending.size();
  for (const auto& [key, behind] : in.followers) result.following += behind.size();
  result.parked = in.parked.size();
  result.tickets = in.tickets.size();
  result.remembered = in.done.size();
  result.bytes = in.bytes;
  result.paused = in.paused;
  const auto now = now_ms();
  for (const auto first : {in.pending.first(), in.expiry_due.first()}) {
    if (first) result.overdue = std::max(result.overdue, std::chrono::milliseconds(now - *first));
  }
  return result;
}

outbox_record model::record_of(const lane_state& in, std::size_t lane, const kept& what, std::int64_t now) const {
  const auto& id = what.what.id;
  const auto found = in.claims.find(id);
  const progress* how = found != in.claims.end() ? &found->second : nullptr;
  outbox_record result{.what = describe(in, lane, what, how), .fence = how != nullptr ? how->token : 0};
  const auto head = in.heads.find(what.what.key);
  if (const auto since = in.parked.score(id)) {
    const bool blocks = !what.what.key.empty() && head != in.heads.end() && head->second == id;
    result.state = blocks ? event_state::blocking : event_state::parked;
    result.until = timestamp(std::chrono::milliseconds(*since));
  } else if (const auto score = in.pending.score(id)) {
    if (*score > now) {
      result.state = result.fence != 0 ? event_state::claimed : event_state::waiting;
      result.until = timestamp(std::chrono::milliseconds(*score));
    }
  } else {
    result.state = event_state::following;
    if (head != in.heads.end()) result.behind = head->second;
  }
  return result;
}

std::optional<outbox_record> model::find(std::size_t lane, std::string_view id) {
  const std::scoped_lock lock(mutex_);
  auto& in = at(lane);
  const auto entry = in.entries.find(id);
  if (entry == in.entries.end()) return std::nullopt;
  return record_of(in, lane, entry->second, now_ms());
}

scan_page model::scan(std::size_t lane, scan_what what, std::string_view after, std::size_t most) {
  const std::scoped_lock lock(mutex_);
  auto& in = at(lane);
  const auto now = now_ms();
  scan_page page;
  if (what == scan_what::tickets) {
    auto one = in.tickets.upper_bound(after);
    for (; one != in.tickets.end() && page.records.size() < most; ++one) {
      outbox_record record;
      record.what.event = one->second.becomes;
      record.what.event.id = one->first;
      record.what.lane = lane;
      record.what.deliveries = 0;
      record.state = event_state::waiting;
      record.until = timestamp(std::chrono::milliseconds(in.expiry_due.score(one->first).value_or(0)));
      page.records.push_back(std::move(record));
      page.after = one->first;
    }
    if (one == in.tickets.end()) page.after.clear();
    return page;
  }
  auto one = in.entries.upper_bound(after);
  for (; one != in.entries.end() && page.records.size() < most; ++one) {
    page.after = one->first;
    if (what == scan_what::parked && !in.parked.score(one->first)) continue;
    page.records.push_back(record_of(in, lane, one->second, now));
  }
  if (one == in.entries.end()) page.after.clear();
  return page;
}

check_report model::check(std::size_t lane, bool /*repair*/) {
  const std::scoped_lock lock(mutex_);
  auto& in = at(lane);
  check_report report{.events = in.entries.size()};
  std::set<std::string> led_to;
  const auto lead = [&](const std::string& id) {
    led_to.insert(id);
    if (!in.entries.contains(id)) ++report.without_entry;
  };
  for (const auto& [score, id] : in.pending.in_order()) lead(id);
  for (const auto& [score, id] : in.parked.in_order()) lead(id);
  for (const auto& [key, behind] : in.followers) {
    if (!in.heads.contains(key)) ++report.without_head;
    for (const auto& [sequence, next] : behind) lead(next.id);
  }
  std::uint64_t bytes = 0;
  for (const auto& [id, what] : in.entries) {
    bytes += what.bytes;
    if (!led_to.contains(id)) ++report.without_place;
  }
  report.bytes_off = static_cast<std::int64_t>(in.bytes) - static_cast<std::int64_t>(bytes);
  return report;
}

}  // namespace HOLDFAST_NAMESPACE::outboxes
