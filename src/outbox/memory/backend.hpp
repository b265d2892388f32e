#pragma once

/// \file
/// The outbox in memory. It is also the model that the tests compare the other backends with, so it
/// is written for clarity: one mutex, and maps where Redis has hashes and sorted sets. The states
/// of an event are described in docs/outbox-states.md.

#include <holdfast/outbox/memory.hpp>

#include "outbox/memory/lane.hpp"

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>

namespace HOLDFAST_NAMESPACE::detail::outbox {

class memory_backend : public outbox_backend {
 public:
  explicit memory_backend(memory_outbox_options options);

  [[nodiscard]] std::size_t lanes() const noexcept override { return lanes_.size(); }
  [[nodiscard]] std::string key_prefix(std::size_t lane) const override;
  void check_supported(const durability& required) const override;
  void require(const durability& required) override { check_supported(required); }
  [[nodiscard]] std::vector<receipt> publish(std::size_t lane, std::span<const event> events,
                                             const publish_terms& terms) override;
  [[nodiscard]] claimed claim(const claim_request& request) override;
  [[nodiscard]] std::vector<bool> extend(std::size_t lane, fence token,
                                         std::span<const settlement> events,
                                         std::chrono::milliseconds lease) override;
  [[nodiscard]] settled settle(std::size_t lane, fence token,
                               std::span<const settlement> settlements,
                               const std::optional<run_request>& next,
                               const publish_terms& terms) override;
  std::size_t park_followers(std::size_t lane, std::string_view key, std::size_t most) override;
  [[nodiscard]] std::vector<bool> replay(std::size_t lane,
                                         std::span<const std::string> ids) override;
  [[nodiscard]] std::vector<bool> discard(std::size_t lane,
                                          std::span<const std::string> ids) override;
  void pause(std::size_t lane, bool paused) override;
  [[nodiscard]] scheduled schedule(std::size_t lane, std::string_view ticket,
                                   std::optional<timestamp> expires_at,
                                   std::chrono::milliseconds delay, const event& becomes,
                                   const publish_terms& terms) override;
  [[nodiscard]] cancel_status cancel(std::size_t lane, std::string_view ticket) override;
  [[nodiscard]] drained drain(std::size_t lane, std::size_t most,
                              const publish_terms& terms) override;
  [[nodiscard]] recurrence_page read_recurrences(std::size_t lane,
                                                 const recurrence_query& query) override;
  [[nodiscard]] update_status update_recurrence(std::size_t lane, const recurrence_update& update,
                                                const publish_terms& terms) override;
  [[nodiscard]] lock_grant lock(std::size_t lane, std::string_view owner,
                                std::chrono::milliseconds ttl) override;
  [[nodiscard]] lock_grant renew(std::size_t lane, std::string_view owner,
                                 std::chrono::milliseconds ttl) override;
  bool unlock(std::size_t lane, std::string_view owner) override;
  [[nodiscard]] std::vector<std::string> announce(std::string_view worker,
                                                  std::chrono::milliseconds ttl) override;
  [[nodiscard]] committed commit(std::size_t lane, const commit_request& request,
                                 const publish_terms& terms) override;
  [[nodiscard]] outbox_stats stats(std::size_t lane) override;
  [[nodiscard]] std::optional<outbox_record> find(std::size_t lane, std::string_view id) override;
  [[nodiscard]] scan_page scan(std::size_t lane, scan_what kind, std::string_view after,
                               std::size_t most) override;
  [[nodiscard]] check_report check(std::size_t lane, bool repair) override;
  bool wait(std::size_t lane, std::chrono::milliseconds longest) override;
  void wake(std::size_t lane) override;
  [[nodiscard]] std::optional<error> health() noexcept override { return std::nullopt; }

 private:
  /// Throws errc::invalid_argument if the lane does not exist.
  memory_lane& lane_at(std::size_t lane);
  [[nodiscard]] std::int64_t now_ms() const;
  void request_wake(memory_lane& lane);
  /// Wakes a worker if an event is due earlier than the first one before the change.
  void wake_if_earlier(memory_lane& lane, std::optional<std::int64_t> first_before);
  /// Takes ids out of the parked events of a lane, and calls `unparked(lane, id, now)` for those
  /// that were parked. Returns which these are.
  template <class Unparked>
  [[nodiscard]] std::vector<bool> unpark(std::size_t lane, std::span<const std::string> ids,
                                         Unparked unparked);
  /// After a settlement: claims the next run of each of these keys.
  void claim_next_runs(memory_lane& lane, const run_request& request,
                       const std::vector<std::string>& keys, std::int64_t now, claimed& result);
  /// Takes the lock if it is free and `takes_free_lock`; renews it if the owner has it.
  [[nodiscard]] lock_grant update_lock(std::size_t lane, std::string_view owner,
                                       std::chrono::milliseconds ttl, bool takes_free_lock);

  std::shared_ptr<const holdfast::clock> clock_;
  std::mutex mutex_{};
  std::condition_variable wake_requested_{};
  std::vector<memory_lane> lanes_;
  std::map<std::string, std::int64_t, std::less<>> workers_{};  // name to the end of its time
};

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
