#pragma once

/// \file
/// The outbox on Redis and Redis Cluster. Every operation is one Lua script on one lane; the
/// scripts keep the states of events that docs/outbox-states.md describes.

#include <holdfast/outbox/backend.hpp>
#include <holdfast/outbox/options.hpp>
#include <holdfast/redis.hpp>

#include "base/first_use.hpp"
#include "outbox/redis/lane.hpp"
#include "outbox/redis/scripts.hpp"

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::outbox {

/// Thread-safety: every function may be called from any thread.
class HOLDFAST_API redis_backend final : public outbox_backend {
 public:
  /// Does not connect. The first operation records layout and number of lanes if the outbox is new,
  /// and throws errc::invalid_argument if the outbox has others, or if a Cluster maps keys to other
  /// slots than Redis does. `time`: see scripts.hpp.
  redis_backend(std::shared_ptr<const redis::client> client, const outbox_options& options,
                std::string_view time = server_time, std::shared_ptr<const logger> log = {});

  [[nodiscard]] std::size_t lanes() const noexcept override { return lane_count_; }
  [[nodiscard]] std::string prefix() override;
  [[nodiscard]] std::string key_prefix(std::size_t lane) const override {
    return lane_at(lane).prefix;
  }
  void check_supported(const durability& required) const override;
  /// Throws errc::invalid_argument also if a server may evict keys.
  void require(const durability& required) override;
  [[nodiscard]] std::string caution(const durability& required) const override;
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
  [[nodiscard]] std::optional<error> health() noexcept override;

 private:
  struct raw_entry {
    std::string id{}, text{};
  };

  /// The client, after slots and layout were checked at the first use.
  [[nodiscard]] const redis::client& client() const;
  /// Throws errc::invalid_argument if the lane does not exist.
  [[nodiscard]] const redis_lane& lane_at(std::size_t lane) const;
  /// A command that runs the script on the keys of the lane.
  [[nodiscard]] redis::command command_for(std::size_t lane, const redis::script& script) const;
  /// The same for a script on recurring events, which have two more keys.
  [[nodiscard]] redis::command recurring_command(std::size_t lane,
                                                 const redis::script& script) const;
  /// Runs the command, then waits for replicas or disks as required. Throws an error in doubt if
  /// they do not confirm in time.
  [[nodiscard]] redis::reply run_durably(redis::command command, const durability& required) const;
  [[nodiscard]] std::vector<bool> run_on_ids(std::size_t lane, const redis::script& script,
                                             std::span<const std::string> ids) const;
  [[nodiscard]] lock_grant update_lock(std::size_t lane, std::string_view owner,
                                       std::chrono::milliseconds ttl, bool takes_free_lock) const;
  /// Reads the state of each of these events.
  [[nodiscard]] std::vector<outbox_record> read_records(
      std::size_t lane, const std::vector<raw_entry>& entries) const;
  [[nodiscard]] scan_page scan_entries(std::size_t lane, std::string_view after,
                                       std::size_t most) const;
  [[nodiscard]] scan_page scan_parked(std::size_t lane, std::string_view after,
                                      std::size_t most) const;
  [[nodiscard]] scan_page scan_tickets(std::size_t lane, std::string_view after,
                                       std::size_t most) const;
  /// Records layout and number of lanes if the outbox is new; otherwise compares them.
  void check_layout() const;
  /// Compares layout and number of lanes of the open outbox; returns how many of them are damaged.
  [[nodiscard]] std::uint64_t check_layout_fields(bool repair) const;
  void check_slots() const;
  /// Chooses the prefix, if the options do not name one.
  void choose_prefix() const;
  [[nodiscard]] bool outbox_exists(std::string_view prefix) const;

  const std::shared_ptr<const redis::client> client_;  // operations use client()
  const std::shared_ptr<const logger> log_;            // may be null
  const std::size_t lane_count_;
  /// The options do not name a prefix. Then the next two are set at the first use.
  const bool chooses_prefix_;
  mutable std::string prefix_;
  mutable std::vector<redis_lane> lanes_{};
  redis_scripts scripts_;
  const bool allow_eviction_;
  mutable first_use first_use_{};
  mutable std::mutex mutex_{};
  /// Requirements that all servers met; guarded by the mutex
  std::vector<durability> verified_{};
  /// `appendfsync` of a server that does not sync before it replies; guarded by the mutex
  std::string lazy_sync_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
