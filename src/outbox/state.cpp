#include "outbox/state.hpp"

#include <holdfast/error.hpp>

#include "base/hex.hpp"
#include "outbox/checks.hpp"

#include <openssl/sha.h>

#include <array>
#include <string>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::outbox {

namespace {

std::string sha256_hex(std::string_view bytes) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest.data());
  return to_hex(digest);
}

}  // namespace

outbox_state::outbox_state(std::shared_ptr<outbox_backend> store, outbox_options checked_options,
                           log_sink sink, std::shared_ptr<metrics_sink> metrics_target)
    : shared_backend(std::move(store)),
      options(std::move(checked_options)),
      metrics(isolate(std::move(metrics_target))),
      log(std::move(sink)) {
  if (!shared_backend) throw error(errc::invalid_argument, "the outbox has no backend");
  check_options(options);
  if (lanes() != options.lanes) {
    throw error(errc::invalid_argument,
                "the outbox has " + std::to_string(lanes()) + " lanes, not " +
                    std::to_string(options.lanes) +
                    ": the number of lanes is fixed when an outbox is created");
  }
  shared_backend->check_supported(options.safe);
  const auto counter = [&](std::string_view name, std::string_view help) {
    return metrics->counter(name, {}, help);
  };
  published = counter("holdfast_outbox_published_total", "Events that were added");
  duplicates = counter("holdfast_outbox_duplicates_total", "Events that were published again");
  refused = counter("holdfast_outbox_refused_total", "Events that were refused");
  in_doubt =
      counter("holdfast_outbox_publish_in_doubt_total", "Events whose publishing is in doubt");
  claimed = counter("holdfast_outbox_claimed_total", "Events that were claimed");
  acked = counter("holdfast_outbox_acked_total", "Events that were delivered and removed");
  retried = counter("holdfast_outbox_retried_total", "Events to be retried");
  parked = counter("holdfast_outbox_parked_total", "Events that were parked");
  stale = counter("holdfast_outbox_stale_total",
                  "Settlements that were refused because the lease was lost");
  fired = counter("holdfast_outbox_fired_total", "Tickets that became events");
}

outbox_backend& outbox_state::backend() const {
  first_use_.run([this] { require(options.safe); });
  return *shared_backend;
}

void outbox_state::require(const durability& required) const {
  shared_backend->require(required);
  if (const auto caution = shared_backend->caution(required); !caution.empty())
    log.write_limited("outbox-durability", log_level::warning, caution);
}

publish_terms outbox_state::terms(const durability& durability) const {
  return {.durability = durability,
          .quota = options.quota,
          .dedup_window = options.dedup_window,
          .dedup_limit = options.dedup_limit};
}

std::size_t outbox_state::lane_of(std::string_view key_or_id) const noexcept {
  return detail::outbox::lane_of(key_or_id, lanes());
}

std::size_t outbox_state::lane_of(const event& event) const noexcept {
  return lane_of(event.key.empty() ? event.id : event.key);
}

void outbox_state::check_lane(std::size_t lane) const {
  if (lane < lanes()) return;
  throw error(errc::invalid_argument, "there is no lane " + std::to_string(lane) +
                                          ": the outbox has " + std::to_string(lanes()) + " lanes");
}

joining_outbox_backend& outbox_state::joining_backend() const {
  if (auto* joining = dynamic_cast<joining_outbox_backend*>(shared_backend.get())) {
    (void)backend();
    return *joining;
  }
  throw error(errc::unsupported_type,
              "this outbox is not in an SQL database, so it cannot join your transaction; on Redis "
              "use outbox::commit");
}

std::optional<outbox_record> outbox_state::find(std::string_view id) const {
  check_id(id);
  // Most likely it is an event without a key: its lane depends on the id.
  const auto first = lane_of(id);
  for (std::size_t i = 0; i < lanes(); ++i) {
    if (auto record = backend().find((first + i) & (lanes() - 1), id)) return record;
  }
  return std::nullopt;
}

void outbox_state::prepare(std::span<event> events) const {
  for (std::size_t i = 0; i < events.size(); ++i) {
    try {
      check_event(events[i], options);
    } catch (const error& problem) {
      if (events.size() == 1) throw;
      // Of many events, the caller must know which.
      throw error(problem.code(), problem.message(), {.path = "[" + std::to_string(i) + "]"});
    }
    if (events[i].id.empty()) events[i].id = new_event_id();
  }
  std::size_t moved = 0;
  try {
    for (; moved < events.size(); ++moved) move_payload(events[moved]);
  } catch (...) {
    drop_payloads(events.first(moved));
    throw;
  }
}

// Each publishing has a payload of its own name: an id that is published again must not replace the
// payload of the first event.
void outbox_state::move_payload(event& event) const {
  if (event.payload.size() <= options.inline_limit) return;
  event.payload_sha256 = sha256_hex(event.payload);
  event.payload_size = event.payload.size();
  event.payload_ref = options.claim_check->put(event.id + '.' + new_event_id(), event.payload);
  if (event.payload_ref.empty())
    throw error(errc::invalid_argument, "the claim check returned an empty reference");
  event.payload.clear();
}

void outbox_state::load_payload(event& event) const {
  if (event.payload_ref.empty()) return;
  if (!options.claim_check) {
    throw error(errc::invalid_argument,
                "the payload of event " + event.id +
                    " is not in the outbox: set outbox_options::claim_check");
  }
  event.payload = options.claim_check->get(event.payload_ref);
  if (event.payload.size() != event.payload_size ||
      sha256_hex(event.payload) != event.payload_sha256) {
    throw error(errc::tampered,
                "the payload of event " + event.id + " is not the one that was published");
  }
}

void outbox_state::drop_payload(const event& event) const noexcept {
  if (event.payload_ref.empty() || !options.claim_check) return;
  try {
    options.claim_check->drop(event.payload_ref);
  } catch (const std::exception& problem) {
    log.write_limited("outbox-drop", log_level::warning,
                      "the claim check did not drop a payload that is not needed any more",
                      {{"reference", event.payload_ref}, {"error", problem.what()}});
  }
}

void outbox_state::drop_payloads(std::span<const event> events) const noexcept {
  for (const auto& event : events) drop_payload(event);
}

void outbox_state::drop_unused_payloads(std::size_t lane, std::span<const event> events,
                                        std::span<const receipt> receipts) const noexcept {
  for (std::size_t i = 0; i < events.size(); ++i) {
    const auto status = receipts[i].status;
    if (events[i].payload_ref.empty()) continue;
    if (status != publish_status::duplicate && status != publish_status::refused) continue;
    try {
      // A request that was sent twice is a duplicate of itself.
      const auto record = backend().find(lane, events[i].id);
      if (record && record->details.event.payload_ref == events[i].payload_ref) continue;
      drop_payload(events[i]);
    } catch (const std::exception& problem) {
      log.write_limited("outbox-drop", log_level::warning,
                        "a payload that may not be needed stays in the claim check",
                        {{"reference", events[i].payload_ref}, {"error", problem.what()}});
      return;  // the store does not answer: it is not asked for every event
    }
  }
}

void check_batch_size(std::string_view name, std::size_t size) {
  if (size != 0 && size <= max_events_per_call) return;
  throw error(errc::invalid_argument,
              std::string(name) + " is " + std::to_string(size) + "; it must be from 1 to 1000");
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
