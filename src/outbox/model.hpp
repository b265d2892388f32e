#pragma once

/// \file
/// The outbox in memory: what every backend does, said as plainly as possible. One mutex; sorted maps where Redis has sorted sets.

#include <holdfast/outbox/memory.hpp>

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace HOLDFAST_NAMESPACE::outboxes {

class model : public outbox_backend {
 public:
  explicit model(memory_outbox_options options);

  [[nodiscard]] std::size_t lanes() const noexcept override { return lanes_.size(); }
  [[nodiscard]] std::string key_prefix(std::size_t lane) const override;
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
  [[nodiscard]] std::optional<error> health() noexcept override { return std::nullopt; }

 private:
  /// Members by score, then by name: a sorted set of Redis.
  class sorted {
   public:
    using order = std::set<std::pair<std::int64_t, std::string>>;
    void put(const std::string& member, std::int64_t score);
    bool erase(std::string_view member);
    [[nodiscard]] std::optional<std::int64_t> score(std::string_view member) const;
    [[nodiscard]] std::optional<std::int64_t> first() const;
    [[nodiscard]] const order& in_order() const noexcept { return order_; }
    [[nodiscard]] std::size_t size() const noexcept { return order_.size(); }

   private:
    order order_{};
    std::map<std::string, std::int64_t, std::less<>> scores_{};
  };
  struct kept {
    event what{};
    std::int64_t created = 0;
    std::int64_t sequence = 0;
    std::uint64_t bytes = 0;
  };
  /// How far the delivery of an event has come. Heads of keys always have one; others once they were claimed.
  struct progress {
    fence token = 0;
    std::uint32_t deliveries = 0, attempts = 0, replays = 0;
    std::int64_t first_failed = 0;
    std::size_t run = 0;  ///< events of the key that the token covers, this one included
    std::string key{};
    /// Whose followers are to be parked, too: that token may say so again when the answer was lost. Until they are, it stays pending, so that
    /// whoever claims next goes on with it.
    fence parked_by = 0;
  };
  struct follower {
    std::int64_t due = 0;
    std::string id{};
  };
  struct ticket {
    event becomes{};
    std::uint64_t bytes = 0;
  };
  struct holder {
    std::string owner{};
    holdfast::fence fence = 0;
    std::int64_t until = 0;
  };
  using datum = std::variant<std::string, std::map<std::string, std::string, std::less<>>>;
  template <class T>
  using by_name = std::map<std::string, T, std::less<>>;

  struct lane_state {
    by_name<kept> entries{};
    sorted pending{};
    by_name<std::string> heads{};                           ///< key -> the event it is at
    by_name<std::map<std::int64_t, follower>> followers{};  ///< key -> those behind, by sequence
    by_name<progress> claims{};
    by_name<std::string> errors{};
    sorted parked{};
    sorted done{};
    sorted expiry_due{};
    by_name<ticket> tickets{};
    std::optional<holder> lock{};
    holdfast::fence last_token = 0, last_fence = 0;
    std::int64_t sequence = 0;
    std::uint64_t bytes = 0;
    bool paused = false, marked = false;
    outbox_stats counts{};
    by_name<datum> data{};
  };
  /// The room left in an answer.
  struct room {
    std::size_t events = 0, bytes = 0;
  };

  lane_state& at(std::size_t lane);
  [[nodiscard]] std::int64_t now_ms() const;
  [[nodiscard]] fence next_token(lane_state& in) const;
  [[nodiscard]] bool remembered(const lane_state& in, const std::string& member, const publish_terms& terms, std::int64_t now) const;
  [[nodiscard]] std::optional<error> over_quota(const lane_state& in, std::size_t events, std::uint64_t bytes, const publish_terms& terms,
                                                std::int64_t now) const;
  /// False: a duplicate.
  bool add(lane_state& in, const event& what, std::int64_t due, const publish_terms& terms, std::int64_t now);
  std::vector<receipt> add_all(lane_state& in, std::span<const event> events, const publish_terms& terms, std::int64_t now);
  void forget(lane_state& in, const std::string& id);
  /// The next event of a key becomes its head; `left` of its run are still covered by the token until `deadline`.
  void advance(lane_state& in, const std::string& key, std::size_t left, fence token, std::int64_t deadline);
  void trim(lane_state& in, const publish_terms& terms, std::int64_t now) const;
  /// False: there is no such entry, and its place was removed.
  bool take(lane_state& in, std::size_t lane, const std::string& id, fence token, std::int64_t now, std::chrono::milliseconds lease,
            std::size_t run, room& left, claimed& into);
  [[nodiscard]] claimed_event describe(const lane_state& in, std::size_t lane, const kept& what, const progress* how) const;
  [[nodiscard]] outbox_record record_of(const lane_state& in, std::size_t lane, const kept& what, std::int64_t now) const;
  [[nodiscard]] bool holds_lock(const lane_state& in, std::string_view owner, std::int64_t now) const;
  /// Parks up to so many of those behind the parked head of a key; how many are left. None: the key is free.
  std::size_t park_behind(lane_state& in, const std::string& key, std::size_t most, std::int64_t now);
  [[nodiscard]] progress* held(lane_state& in, const std::string& id, const std::string& key, fence token, bool whole_run);
  void mark_if_earlier(lane_state& in, std::optional<std::int64_t> before);

  std::shared_ptr<const holdfast::clock> clock_;
  std::mutex mutex_{};
  std::condition_variable changed_{};
  std::vector<lane_state> lanes_;
};

}  // namespace HOLDFAST_NAMESPACE::outboxes
