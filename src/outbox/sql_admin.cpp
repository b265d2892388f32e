#include <holdfast/error.hpp>

#include "outbox/checks.hpp"
#include "outbox/entry.hpp"
#include "outbox/sql_backend.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace HOLDFAST_NAMESPACE::outboxes {

namespace {

/// Until a ticket is looked at again whose key somebody publishes for in an open transaction.
constexpr std::chrono::milliseconds held_up{100};

}  // namespace

std::vector<bool> sql_backend::replay(std::size_t lane, std::span<const std::string> ids) {
  auto result = in_transaction([&](join::transaction& in) {
    const auto number = static_cast<std::int64_t>(lane);
    json_rows wanted;
    for (const auto& id : ids) wanted.row().add(id);
    auto rows = lock_rows(in, lane, wanted);
    std::vector<std::string> keys;
    for (const auto& [id, one] : rows) {
      if (one.place == place::parked) keys.push_back(one.key);
    }
    // They come behind what their key has now: as if they were published again.
    lock_keys(in, std::vector<std::string_view>(keys.begin(), keys.end()));
    const auto now = look_at(in, lane);
    std::vector<bool> done;
    std::vector<sql_row> in_place;
    for (const auto& id : ids) {
      const auto found = rows.find(id);
      const bool was = found != rows.end() && (found->second.place == place::parked || found->second.place == place::blocking);
      done.push_back(was);
      if (!was) continue;
      auto row = std::move(found->second);
      rows.erase(found);
      if (row.place == place::parked && !row.key.empty()) {
        json_rows old;
        old.row().add(row.seq);
        const auto seq = old.text();
        tell(in, say_.erase_events, {std::string_view(seq)});
        tell(in, say_.add_again,
             {number, std::string_view(row.id), std::string_view(row.key), std::string_view(row.key), now.now, now.now, row.created,
              row.bytes, row.replays + 1, row.number != 0 ? row.number : row.seq});
        continue;
      }
      row.place = place::queued;
      row.due = row.at = now.now;
      row.token = row.run = row.deliveries = row.attempts = 0;
      ++row.replays;
      row.last_error.clear();
      in_place.push_back(std::move(row));
    }
    place_rows(in, in_place);
    return done;
  });
  wake_.signal(lane);
  return result;
}

std::vector<bool> sql_backend::discard(std::size_t lane, std::span<const std::string> ids) {
  auto result = in_transaction([&](join::transaction& in) {
    json_rows wanted;
    for (const auto& id : ids) wanted.row().add(id);
    auto rows = lock_rows(in, lane, wanted);
    std::vector<bool> done;
    json_rows gone;
    json_rows gone_ids;
    std::map<std::string, promotion, std::less<>> freed;
    tally_sheet counts;
    for (const auto& id : ids) {
      const auto found = rows.find(id);
      const bool was = found != rows.end() && (found->second.place == place::parked || found->second.place == place::blocking);
      done.push_back(was);
      if (!was) continue;
      const auto& row = found->second;
      if (row.place == place::blocking) freed.emplace(row.key, promotion{});
      gone.row().add(row.seq);
      gone_ids.row().add(row.id);
      --counts.events;
      counts.bytes -= row.bytes;
      rows.erase(found);
    }
    if (!gone.empty()) {
      const auto seqs = gone.text();
      const auto entries = gone_ids.text();
      tell(in, say_.erase_events, {std::string_view(seqs)});
      tell(in, say_.erase_entries, {std::string_view(entries)});
      advance(in, lane, freed);
      write_tally(in, lane, counts);
    }
    return done;
  });
  wake_.signal(lane);
  return result;
}

void sql_backend::pause(std::size_t lane, bool paused) {
  run(
      [&](join::transaction& in) {
        auto row = look_at(in, lane, true);
        row.paused = paused;
        write_lane(in, lane, row);
        if (!paused && !say_.notify.text.empty()) {
          const auto name = std::to_string(lane);
          (void)ask(in, say_.notify, {std::string_view(channel_), std::string_view(name)});
        }
      },
      when_in_doubt::repeat);
  if (!paused) wake_.published(lane);
}

scheduled sql_backend::schedule(std::size_t lane, std::string_view ticket, std::optional<timestamp> at, std::chrono::milliseconds delay,
                                const event& becomes, const publish_terms& terms) {
  const auto body = entry_body(becomes);
  auto result = in_transaction([&](join::transaction& in) {
    const auto number = static_cast<std::int64_t>(lane);
    const auto now = look_at(in, lane);
    const auto expires = at ? std::chrono::floor<std::chrono::milliseconds>(*at).time_since_epoch().count() : now.now + delay.count();
    const auto before = ask(in, say_.ticket, {number, ticket});
    scheduled made{.expires_at = timestamp(std::chrono::milliseconds(expires))};
    if (before.empty()) {
      check_quota(in, lane, 1, body.size(), terms, now.now);
      tell(in, say_.add_ticket, {number, ticket, expires, std::string_view(becomes.key), std::string_view(body)});
      write_tally(in, lane, {.tickets = 1});
    } else {
      made.before = timestamp(std::chrono::milliseconds(number_in(before, 0, 0)));
      tell(in, say_.set_ticket, {expires, std::string_view(becomes.key), std::string_view(body), number, ticket});
    }
    if (!say_.notify.text.empty()) {
      const auto name = std::to_string(lane);
      (void)ask(in, say_.notify, {std::string_view(channel_), std::string_view(name)});
    }
    return made;
  });
  wake_.published(lane);
  return result;
}

cancel_status sql_backend::cancel(std::size_t lane, std::string_view ticket) {
  return in_transaction(
      [&](join::transaction& in) {
        if (tell(in, say_.erase_ticket, {static_cast<std::int64_t>(lane), ticket}) > 0) {
          write_tally(in, lane, {.tickets = -1});
          return cancel_status::cancelled;
        }
        const std::string mark = "t:" + std::string(ticket);
        return ask(in, say_.remembered, {std::string_view(mark)}).empty() ? cancel_status::unknown : cancel_status::fired;
      },
      when_in_doubt::give_up);
}

drained sql_backend::drain(std::size_t lane, std::size_t most, const publish_terms& terms) {
  auto result = in_transaction(
      [&](join::transaction& in) {
        const auto number = static_cast<std::int64_t>(lane);
        const auto now = look_at(in, lane);
        drained made;
        const auto found = ask(in, say_.due_tickets, {number, now.now, static_cast<std::int64_t>(most)});
        // A caller may have published for such a key in a transaction that is still open: its ticket comes later. To wait for it here would
        // stop the whole lane.
        std::set<std::int64_t> wanted;
        for (std::size_t i = 0; i < found.size(); ++i) {
          if (const auto key = text_in(found, i, 2); !key.empty()) wanted.insert(stripe_of(key));
        }
        const auto ours = free_stripes(in, wanted);
        std::vector<kept_event> events;
        json_rows fired;
        json_rows marks;
        for (std::size_t i = 0; i < found.size(); ++i) {
          auto key = text_in(found, i, 2);
          if (!key.empty() && !ours.contains(stripe_of(key))) continue;
          const auto name = text_in(found, i, 0);
          auto id = expiry_event_id(name, timestamp(std::chrono::milliseconds(number_in(found, i, 1))));
          // Not read here: one that cannot be read is an event all the same, which a claim meets, and parks with the reason.
          auto entry = kept_entry(id, text_in(found, i, 3));
          events.push_back({.id = std::move(id), .key = std::move(key), .entry = std::move(entry)});
          fired.row().add(name).add(number);
          marks.row().add(number).add("t:" + name).add(now.now);
        }
        if (!events.empty()) {
          tally_sheet counts;
          auto without_quota = terms;
          without_quota.quota = {};
          (void)add(in, lane, events, without_quota, counts);
          const auto tickets = fired.text();
          tell(in, say_.erase_tickets, {std::string_view(tickets)});
          if (terms.dedup_window.count() > 0) {
            const auto remembered = marks.text();
            tell(in, say_.remember, {std::string_view(remembered)});
          }
          made.tickets = events.size();
          counts.fired = static_cast<std::int64_t>(events.size());
          counts.tickets = -counts.fired;
          write_tally(in, lane, counts);
          trim(in, lane, now.now, terms, events.size());
          if (!say_.notify.text.empty()) {
            const auto name = std::to_string(lane);
            (void)ask(in, say_.notify, {std::string_view(channel_), std::string_view(name)});
          }
        }
        const auto first = ask(in, say_.first_ticket, {number});
        if (!first.empty() && std::holds_alternative<std::int64_t>(first.at(0, 0)))
          made.next = std::chrono::milliseconds(std::max<std::int64_t>(number_in(first, 0, 0) - now.now, 0));
        // All that expired have to wait: whoever drains is not to ask again and again.
        made.held_up = events.size() < found.size();
        if (made.held_up && events.empty()) made.next = std::max(made.next.value_or(held_up), held_up);
        return made;
      },
      when_in_doubt::give_up);
  if (result.tickets > 0) wake_.published(lane);
  return result;
}

lock_grant sql_backend::lock(std::size_t lane, std::string_view owner, std::chrono::milliseconds ttl) {
  return in_transaction([&](join::transaction& in) -> lock_grant {
    auto row = look_at(in, lane, true);
    if (!row.owner.empty() && row.until > row.now && row.owner != owner)
      return {.fence = row.fence, .holder = row.owner, .remaining = std::chrono::milliseconds(row.until - row.now)};
    if (!row.held_by(owner)) row.fence = std::max<fence>(row.fence + 1, row.now_us);
    row.owner = owner;
    row.until = row.now + ttl.count();
    write_lane(in, lane, row);
    return {.held = true, .fence = row.fence, .holder = row.owner, .remaining = ttl};
  });
}

lock_grant sql_backend::renew(std::size_t lane, std::string_view owner, std::chrono::milliseconds ttl) {
  return in_transaction([&](join::transaction& in) -> lock_grant {
    auto row = look_at(in, lane, true);
    if (row.held_by(owner)) {
      row.until = row.now + ttl.count();
      write_lane(in, lane, row);
      return {.held = true, .fence = row.fence, .holder = row.owner, .remaining = ttl};
    }
    if (row.owner.empty() || row.until <= row.now) return {};
    return {.fence = row.fence, .holder = row.owner, .remaining = std::chrono::milliseconds(row.until - row.now)};
  });
}

bool sql_backend::unlock(std::size_t lane, std::string_view owner) {
  return in_transaction([&](join::transaction& in) {
    auto row = look_at(in, lane, true);
    if (!row.held_by(owner)) return false;
    row.owner.clear();
    row.until = 0;
    write_lane(in, lane, row);
    return true;
  });
}

committed sql_backend::commit(std::size_t, const commit_request&, const publish_terms&) {
  throw error(errc::unsupported_type,
              "on SQL your data has transactions of its own: publish inside one of them (outbox::publish with a join::transaction)");
}

}  // namespace HOLDFAST_NAMESPACE::outboxes
