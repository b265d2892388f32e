#pragma once

/// \file
/// An outbox on Redis or Redis Cluster.

#include <holdfast/outbox/backend.hpp>
#include <holdfast/outbox/options.hpp>
#include <holdfast/redis.hpp>

#include "outbox/redis_lane.hpp"
#include "outbox/redis_scripts.hpp"

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::outboxes {

/// Thread-safety: every function may be called from any thread.
class HOLDFAST_API redis_backend final : public outbox_backend {
 public:
  /// Looks at the servers, and notes what the outbox is like where that is not noted yet. Throws errc::invalid_argument for another number of
  /// lanes or another layout than noted, for servers that evict, and for a Cluster that puts keys into other slots than we do.
  /// `time`: see redis_scripts.
  redis_backend(std::shared_ptr<const redis::client> client, const outbox_options& options, std::string_view time = server_time);

  [[nodiscard]] std::size_t lanes() const noexcept override { return lanes_.size(); }
  [[nodiscard]] std::string key_prefix(std::size_t lane) const override { return at(lane).prefix; }
  void require(const durability& how) override;
  [[nodiscard]] std::vector<receipt> publish(std::size_t lane, std::span<const event> events, const publish_terms& terms) override;
  [[nodiscard]] claimed claim(const claim_request& request) override;
  [[nodiscard]] std::vector<bool> extend(std::size_t lane, fence token, std::span<const settlement> events,
                                         std::chrono::milliseconds lease) override;
  [[nodiscard]] settled settle(std::size_t lane, fence token, std::span<const settlement> what, const std::optional<run_request>& next,
                               const publish_terms& terms) override;
  std::size_t park_followers(std::size_t lane, std::string_view key, std::size_t most) override;
  [[nodiscard]] std::vector<bool> replay(std::size_t lane, std::span<const std::string> ids) override;
  [[nodiscard]] std::vector<bool> discard(std::size_t lane, std::span<const std::string> ids) override;
  void pause(std::size_t lane, bool paused) override;
  [[nodiscard]] scheduled schedule(std::size_t lane, std::string_view ticket, std::optional<timestamp> at, std::chrono::milliseconds delay,
                                   const event& becomes, const publish_terms& terms) override;
  [[nodiscard]] cancel_status cancel(std::size_t lane, std::string_view ticket) override;
  [[nodiscard]] drained drain(std::size_t lane, std::size_t most, const publish_terms& terms) override;
  [[nodiscard]] lock_grant lock(std::size_t lane, std::string_view owner, std::chrono::milliseconds ttl) override;
  [[nodiscard]] lock_grant renew(std::size_t lane, std::string_view owner, std::chrono::milliseconds ttl) override;
  bool unlock(std::size_t lane, std::string_view owner) override;
  [[nodiscard]] committed commit(std::size_t lane, const commit_request& request, const publish_terms& terms) override;
  [[nodiscard]] outbox_stats stats(std::size_t lane) override;
  [[nodiscard]] std::optional<outbox_record> find(std::size_t lane, std::string_view id) override;
  [[nodiscard]] scan_page scan(std::size_t lane, scan_what what, std::string_view after, std::size_t most) override;
  [[nodiscard]] check_report check(std::size_t lane, bool repair) override;
  bool wait(std::size_t lane, std::chrono::milliseconds longest) override;
  void wake(std::size_t lane) override;
  [[nodiscard]] std::optional<error> health() noexcept override { return client_->health(); }

 private:
  struct found_entry {
    std::string id{}, text{};
  };

  [[nodiscard]] const redis_lane& at(std::size_t lane) const;
  /// The script on the keys of a lane.
  [[nodiscard]] redis::command on(const redis_lane& lane, const redis::script& what) const;
  /// Runs it, and waits for replicas or disks if that is asked for; then an answer that is not safe enough is an error in doubt.
  [[nodiscard]] redis::reply run_safely(redis::command what, const durability& how) const;
  [[nodiscard]] bool repair_one(const redis_lane& lane, bool repair, std::string_view what, std::string_view name, std::string_view key);
  [[nodiscard]] claimed read_claimed(std::size_t lane, std::vector<redis::reply> parts, std::size_t from) const;
  /// `claims`: their claims as they are kept, too.
  [[nodiscard]] std::vector<outbox_record> look_at(std::size_t lane, const std::vector<found_entry>& entries,
                                                   std::vector<std::string>* claims = nullptr);
  void note_layout(std::string_view prefix);
  void check_slots() const;

  std::shared_ptr<const redis::client> client_;
  std::vector<redis_lane> lanes_;
  redis_scripts scripts_;
  bool allow_eviction_;
  std::mutex mutex_{};
  std::vector<durability> verified_{};
};

}  // namespace HOLDFAST_NAMESPACE::outboxes
