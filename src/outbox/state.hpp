#pragma once

/// \file
/// The state that the copies of an outbox and its administration share.

#include <holdfast/clock.hpp>
#include <holdfast/log.hpp>
#include <holdfast/metrics.hpp>
#include <holdfast/outbox/backend.hpp>
#include <holdfast/outbox/options.hpp>
#include <holdfast/outbox/sql.hpp>

#include "base/first_use.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::outbox {

/// Thread-safety: every function may be called from any thread.
struct outbox_state {
  /// Throws errc::invalid_argument if the options are invalid or not supported by this kind of
  /// backend. Does not ask the server.
  outbox_state(std::shared_ptr<outbox_backend> store, outbox_options checked_options, log_sink sink,
               std::shared_ptr<metrics_sink> metrics_target);

  /// For what needs no server. Operations use backend().
  const std::shared_ptr<outbox_backend> shared_backend;
  const outbox_options options;
  const std::shared_ptr<isolated_metrics> metrics;
  const logger log;

  std::shared_ptr<metrics::counter> published, duplicates, refused, in_doubt, claimed, acked,
      retried, parked, stale, fired;

  [[nodiscard]] publish_terms terms(const durability& durability) const;
  [[nodiscard]] publish_terms terms() const { return terms(options.safe); }

  /// The backend. Before the first operation, the server must show that it can provide
  /// `options.safe`. Throws as outbox_backend::require.
  [[nodiscard]] outbox_backend& backend() const;
  /// Throws as outbox_backend::require. Logs what the durability does not survive on this store.
  void require(const durability& required) const;
  [[nodiscard]] std::size_t lanes() const noexcept { return shared_backend->lanes(); }
  [[nodiscard]] std::size_t lane_of(std::string_view key_or_id) const noexcept;
  /// The lane of an event that has an id.
  [[nodiscard]] std::size_t lane_of(const event& event) const noexcept;
  /// Throws errc::invalid_argument if there is no such lane.
  void check_lane(std::size_t lane) const;
  /// Throws errc::unsupported_type if the backend cannot join a transaction of the caller.
  [[nodiscard]] joining_outbox_backend& joining_backend() const;

  /// Looks in all lanes: the key of the event is not known.
  [[nodiscard]] std::optional<outbox_record> find(std::string_view id) const;

  /// Validates events before they are published, gives them ids, and moves large payloads to the
  /// claim check. If it throws, no payload stays there.
  void prepare(std::span<event> events) const;
  /// Loads a payload from the claim check. Throws errc::tampered if it is not the published one.
  void load_payload(event& event) const;
  /// Drops a payload from the claim check; a failure is logged.
  void drop_payload(const event& event) const noexcept;
  void drop_payloads(std::span<const event> events) const noexcept;
  /// After events were published in a lane: drops the payloads that no stored event refers to,
  /// those of duplicates and of refused events. Keeps a payload if the backend cannot tell.
  void drop_unused_payloads(std::size_t lane, std::span<const event> events,
                            std::span<const receipt> receipts) const noexcept;

 private:
  void move_payload(event& event) const;

  mutable first_use first_use_{};
};

/// Throws errc::invalid_argument unless `size` is from 1 to max_events_per_call.
void check_batch_size(std::string_view name, std::size_t size);

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
