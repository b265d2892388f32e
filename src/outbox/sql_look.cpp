#include <holdfast/error.hpp>

#include "outbox/checks.hpp"
#include "outbox/entry.hpp"
#include "outbox/sql_backend.hpp"

#include <algorithm>
#include <map>

namespace HOLDFAST_NAMESPACE::outboxes {

outbox_stats sql_backend::stats(std::size_t lane) {
  return in_transaction([&](join::transaction& in) {
    const auto number = static_cast<std::int64_t>(lane);
    const auto now = look_at(in, lane);
    fold(in, lane);
    const auto sums = read_tallies(in, lane);
    const auto made_of = [](std::int64_t sum) { return static_cast<std::uint64_t>(std::max<std::int64_t>(0, sum)); };
    const auto found = ask(in, say_.waiting, {number, number, number, number});
    outbox_stats made;
    const auto at = [&](std::size_t column) { return made_of(number_in(found, 0, column)); };
    const auto blocking = at(1);
    const auto keyed = at(3);
    const auto keys = at(4);
    constexpr auto most = static_cast<std::uint64_t>(sql_words::most_counted);
    made.at_least = at(0) > most || blocking > most || keyed > most;
    made.events = made_of(sums.events);
    made.bytes = made_of(sums.bytes);
    made.tickets = made_of(sums.tickets);
    made.parked = std::min(at(0) + blocking, made.events);
    made.remembered = at(2);
    // Of each key one event is in front; where it blocks, none is to be delivered.
    const auto fronts = keys - std::min(keys, blocking);
    const auto left = made.events - made.parked;
    const auto behind = keyed - std::min(keyed, blocking + fronts);
    // Where not all of them were counted, those in front are at least these, and the rest is taken to be behind.
    made.following = keyed > most ? left - std::min(left, fronts) : std::min(behind, left);
    made.pending = left - made.following;
    made.paused = now.paused;
    const auto first = ask(in, say_.overdue, {number, now.now});
    if (!first.empty()) made.overdue = std::chrono::milliseconds(now.now - number_in(first, 0, 0, now.now));
    // Nobody drains: its ticket is late, too.
    const auto ticket = ask(in, say_.first_ticket, {number});
    if (!ticket.empty()) made.overdue = std::max(made.overdue, std::chrono::milliseconds(now.now - number_in(ticket, 0, 0, now.now)));
    made.published = made_of(sums.published);
    made.duplicates = made_of(sums.duplicates);
    made.claims = made_of(sums.claims);
    made.acked = made_of(sums.acked);
    made.retried = made_of(sums.retried);
    made.parkings = made_of(sums.parkings);
    made.stale = made_of(sums.stale);
    made.fired = made_of(sums.fired);
    made.orphans = made_of(sums.orphans);
    return made;
  });
}

outbox_record sql_backend::record_of(std::size_t lane, const sql::rows& from, std::size_t row, const std::string& entry) const {
  const auto what = read_row(from, row);
  const auto now = say_.dialect == sql::dialect_id::sqlite ? clock_ms() : number_in(from, row, 19);
  outbox_record made;
  std::string problem;
  if (!entry.empty()) {
    auto content = read_or_explain(entry, what.id, what.key);
    made.what.event = std::move(content.what);
    problem = std::move(content.problem);
  }
  made.what.event.id = what.id;
  made.what.lane = lane;
  made.what.deliveries = static_cast<std::uint32_t>(what.deliveries);
  made.what.attempts = static_cast<std::uint32_t>(what.attempts);
  made.what.replays = static_cast<std::uint32_t>(what.replays);
  made.what.created_at = timestamp(std::chrono::milliseconds(what.created));
  made.what.sequence = what.number != 0 ? what.number : what.seq;
  made.what.last_error = what.last_error.empty() ? problem : what.last_error;
  made.fence = what.token;
  const auto moment = [](std::int64_t ms) { return timestamp(std::chrono::milliseconds(ms)); };
  if (what.place == place::parked || what.place == place::blocking) {
    made.state = what.place == place::parked ? event_state::parked : event_state::blocking;
    made.until = moment(what.at);
  } else if (!what.first()) {
    made.state = event_state::following;
    made.behind = text_in(from, row, 18);
  } else if (const auto due = what.due.value_or(what.at); due > now) {
    made.state = what.token != 0 ? event_state::claimed : event_state::waiting;
    made.until = moment(due);
  }
  return made;
}

std::optional<outbox_record> sql_backend::find(std::size_t lane, std::string_view id) {
  return in_transaction([&](join::transaction& in) -> std::optional<outbox_record> {
    const auto found = ask(in, say_.find, {static_cast<std::int64_t>(lane), id});
    if (found.empty()) return std::nullopt;
    const std::string one[]{std::string(id)};
    const auto entries = entries_of(in, one);
    return record_of(lane, found, 0, entries.empty() ? std::string() : entries.begin()->second);
  });
}

scan_page sql_backend::scan(std::size_t lane, scan_what what, std::string_view after, std::size_t most) {
  return in_transaction([&](join::transaction& in) {
    const auto number = static_cast<std::int64_t>(lane);
    const auto limit = static_cast<std::int64_t>(most) + 1;  // one more tells whether there is more
    scan_page page;
    if (what == scan_what::tickets) {
      const auto found = ask(in, say_.scan_tickets, {number, after, limit});
      for (std::size_t i = 0; i < std::min(found.size(), most); ++i) {
        outbox_record made;
        auto content = read_ticket(text_in(found, i, 3), text_in(found, i, 2));
        made.what.event = std::move(content.what);
        made.what.last_error = std::move(content.problem);
        made.what.event.id = text_in(found, i, 0);
        made.what.lane = lane;
        made.what.deliveries = 0;
        made.state = event_state::waiting;
        made.until = timestamp(std::chrono::milliseconds(number_in(found, i, 1)));
        page.records.push_back(std::move(made));
      }
      if (found.size() > most) page.after = page.records.back().what.event.id;
      return page;
    }
    const auto found = ask(in, what == scan_what::parked ? say_.scan_parked : say_.scan, {number, after, limit});
    std::vector<std::string> ids;
    for (std::size_t i = 0; i < std::min(found.size(), most); ++i) ids.push_back(text_in(found, i, 1));
    const auto entries = entries_of(in, ids);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const auto entry = entries.find(ids[i]);
      page.records.push_back(record_of(lane, found, i, entry != entries.end() ? entry->second : std::string()));
    }
    if (found.size() > most) page.after = ids.back();
    return page;
  });
}

check_report sql_backend::check(std::size_t lane, bool repair) {
  return in_transaction([&](join::transaction& in) {
    const auto number = static_cast<std::int64_t>(lane);
    const auto now = look_at(in, lane, repair);
    check_report report;
    tally_sheet counts;
    const auto lost = ask(in, say_.without_entry, {number});
    report.without_entry = lost.size();
    if (repair && !lost.empty()) {
      json_rows gone;
      std::map<std::string, promotion, std::less<>> keys;
      for (std::size_t i = 0; i < lost.size(); ++i) {
        gone.row().add(number_in(lost, i, 0));
        if (auto queue = text_in(lost, i, 2); !queue.empty()) keys.emplace(std::move(queue), promotion{});
      }
      const auto list = gone.text();
      tell(in, say_.erase_events, {std::string_view(list)});
      // What stands in front and has a time keeps it.
    }
    // Entries have no lane of their own: they are looked at with the first one.
    if (lane == 0) {
      const auto loose = ask(in, say_.without_place, {});
      report.without_place = loose.size();
      if (repair && !loose.empty()) {
        std::vector<std::string> ids;
        ids.reserve(loose.size());
        for (std::size_t i = 0; i < loose.size(); ++i) ids.push_back(text_in(loose, i, 0));
        std::map<std::size_t, json_rows> by_lane;
        for (const auto& [id, entry] : entries_of(in, ids)) {
          const auto what = read_or_explain(entry, id, std::nullopt).what;  // one that cannot be read is met by a claim, and parked
          const auto at = lane_of(what.key.empty() ? id : what.key, lanes_);
          auto& rows = by_lane[at];
          rows.row().add(static_cast<std::int64_t>(at)).add(id).add(what.key);
          rows.add(std::int64_t{0}).add(now.now).add(static_cast<std::int64_t>(entry.size()));
        }
        for (const auto& [at, rows] : by_lane) {
          const auto list = rows.text();
          tell(in, say_.add_events, {std::string_view(list)});
        }
      }
    }
    const auto headless = ask(in, say_.without_head, {number});
    report.without_head = headless.size();
    if (repair && !headless.empty()) {
      json_rows rows;
      for (std::size_t i = 0; i < headless.size(); ++i)
        rows.row().add(number_in(headless, i, 0)).add(std::int64_t{0}).add(std::int64_t{0}).add(std::int64_t{0}).add_null();
      const auto list = rows.text();
      tell(in, say_.promote, {std::string_view(list)});
    }
    // What is there and what was counted in one statement: nobody publishes between the two.
    const auto found = ask(in, say_.count, {number, number, number});
    report.events = static_cast<std::uint64_t>(number_in(found, 0, 0));
    report.bytes_off = number_in(found, 0, 4) - number_in(found, 0, 1);
    counts.events = number_in(found, 0, 0) - number_in(found, 0, 3);
    counts.bytes = -report.bytes_off;
    counts.tickets = number_in(found, 0, 2) - number_in(found, 0, 5);
    report.bad_fields = (counts.events != 0 ? 1U : 0U) + (counts.tickets != 0 ? 1U : 0U);
    // Those cannot be counted again. They only grow, so a negative one was written by another program.
    const auto sums = read_tallies(in, lane);
    for (const auto counter :
         {&tally_sheet::published, &tally_sheet::duplicates, &tally_sheet::claims, &tally_sheet::acked, &tally_sheet::retried,
          &tally_sheet::parkings, &tally_sheet::stale, &tally_sheet::fired, &tally_sheet::orphans}) {
      if (sums.*counter >= 0) continue;
      counts.*counter = -(sums.*counter);
      ++report.bad_fields;
    }
    if (repair) write_tally(in, lane, counts);
    return report;
  });
}

}  // namespace HOLDFAST_NAMESPACE::outboxes
