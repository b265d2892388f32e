// Claims and settlements on Redis.

#include "outbox/entry.hpp"
#include "outbox/redis/backend.hpp"
#include "outbox/redis/wire.hpp"

#include <algorithm>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::outbox {
namespace {

claim_status read_claim_status(std::string_view text) {
  if (text == "some") return claim_status::some;
  if (text == "paused") return claim_status::paused;
  if (text == "fenced") return claim_status::fenced;
  return claim_status::empty;
}

/// Removes a number and the colon after it from the front of the text.
std::uint32_t take_count(std::string_view& text) {
  const auto colon = std::min(text.find(':'), text.size());
  const auto count = static_cast<std::uint32_t>(read_number(text.substr(0, colon)));
  text.remove_prefix(std::min(colon + 1, text.size()));
  return count;
}

/// An event in the reply of a claim: its entry, `deliveries:attempts:replays:` with id and key
/// after it, and its last error.
claimed_event read_claimed_event(std::size_t lane, const std::string& entry,
                                 std::string_view progress, std::string last_error) {
  claimed_event result{.lane = lane};
  result.deliveries = take_count(progress);
  result.attempts = take_count(progress);
  result.replays = take_count(progress);
  const auto id = progress.substr(0, id_length);
  const auto key = progress.substr(id.size());
  // An entry that cannot be read must not fail the whole claim. The outbox parks an event without a
  // type, with its last error as the reason.
  auto content = read_or_explain(entry, id, key);
  result.event = std::move(content.event);
  result.created_at = timestamp(std::chrono::milliseconds(content.created_ms));
  result.sequence = content.sequence;
  result.last_error = content.problem.empty() ? std::move(last_error) : std::move(content.problem);
  return result;
}

/// The reply of a claim, which begins at parts[first]; see hand_out.lua.
claimed read_claimed(std::size_t lane, redis::reply::list parts, std::size_t first) {
  claimed result{.status = read_claim_status(parts.at(first).text()),
                 .lane = lane,
                 .fence = read_number(parts.at(first + 1)),
                 .next = read_duration(parts.at(first + 2)),
                 .now = read_timestamp(parts.at(first + 3).text())};
  for (auto i = first + 4; i + 2 < parts.size(); i += 3) {
    result.events.push_back(read_claimed_event(lane, parts[i].text(), parts[i + 1].text(),
                                               std::move(parts[i + 2]).text()));
  }
  return result;
}

/// As in settle.lua.
std::string_view code_of(settlement::kind kind) {
  switch (kind) {
    case settlement::kind::ack:
      return "a";
    case settlement::kind::retry:
      return "r";
    case settlement::kind::park:
      return "p";
    case settlement::kind::release:
      return "l";
  }
  return "a";
}

void add_settlement(redis::command& command, const settlement& settlement) {
  command.arg(code_of(settlement.action)).arg(settlement.id).arg(settlement.key);
  if (settlement.action != settlement::kind::retry && settlement.action != settlement::kind::park)
    return;
  command.arg(settlement.delay.count())
      .arg(settlement.counts ? 1 : 0)
      .arg(settlement.error)
      .arg(to_string(settlement.policy));
}

}  // namespace

claimed redis_backend::claim(const claim_request& request) {
  auto command = command_for(request.lane, scripts_.claim);
  command.arg(request.most).arg(request.run).arg(request.bytes);
  command.arg(request.lease.count()).arg(request.owner);
  return read_claimed(request.lane, client().call(command).elements(), 0);
}

std::vector<bool> redis_backend::extend(std::size_t lane, fence token,
                                        std::span<const settlement> events,
                                        std::chrono::milliseconds lease) {
  auto command = command_for(lane, scripts_.extend);
  command.arg(token).arg(lease.count());
  for (const auto& event : events) command.arg(event.id).arg(event.key);
  command.idempotent();
  return read_flags(client().call(command));
}

settled redis_backend::settle(std::size_t lane, fence token,
                              std::span<const settlement> settlements,
                              const std::optional<run_request>& next, const publish_terms& terms) {
  auto command = command_for(lane, scripts_.settle);
  const auto run = next.value_or(run_request{.run = 1});
  command.arg(token).arg(terms.dedup_window.count()).arg(terms.dedup_limit).arg(next ? 1 : 0);
  command.arg(run.run).arg(run.bytes).arg(run.lease.count()).arg(run.owner);
  for (const auto& settlement : settlements) add_settlement(command, settlement);
  auto parts = client().call(command).elements();
  settled result{.done = read_flags(parts.at(0))};
  const auto key_count = static_cast<std::size_t>(parts.at(1).integer());
  for (std::size_t i = 0; i < key_count; ++i) result.keys_to_park.push_back(parts.at(2 + i).text());
  result.next = read_claimed(lane, std::move(parts), 2 + key_count);
  return result;
}

std::size_t redis_backend::park_followers(std::size_t lane, std::string_view key,
                                          std::size_t most) {
  auto command = command_for(lane, scripts_.park_followers);
  command.arg(key).arg(most).idempotent();
  return static_cast<std::size_t>(client().call(command).integer());
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
