#pragma once

/// \file
/// The consistency check of a lane (`holdfast outbox fsck`).
///
/// It reads every structure of the lane once, page by page, and compares them in the memory of this
/// process. What looks inconsistent is sent to repair.lua in batches, which confirms and repairs
/// it. No command takes longer than about a millisecond of the server, however many events there
/// are.

#include <holdfast/outbox/operations.hpp>
#include <holdfast/redis.hpp>
#include <holdfast/version.hpp>

#include "outbox/redis/lane.hpp"
#include "outbox/redis/records.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::outbox {

struct lane_check_options {
  std::size_t lane = 0;
  /// Number of lanes of the outbox
  std::size_t lanes = 1;
  bool repair = false;
};

/// One check. Use it once, from one thread.
class redis_lane_checker {
 public:
  /// The arguments must outlive the checker.
  redis_lane_checker(const redis::client& client, const redis_lane& lane,
                     const redis::script& repair_script, lane_check_options options);

  [[nodiscard]] check_report run();

 private:
  /// What the structures of the lane say about an ordering key.
  struct key_view {
    std::string head{};
    std::optional<std::int64_t> first_follower{};  // its sequence
    /// An event of the key has no place, or is pending without being the head
    bool has_stray = false;
    /// The parked event that may have blocked the key: the last one before the first follower
    std::string blocking{};
    std::int64_t blocking_sequence = -1;
  };
  using keys_by_name = std::unordered_map<std::string, key_view>;
  /// What the structures of the lane say about an id.
  struct event_view {
    std::optional<double> due{};        // in PENDING
    std::optional<double> parked_at{};  // in PARKED
    std::string claim_text{};
    /// Members of FOLLOWERS with this id; usually at most one
    std::vector<std::size_t> followers{};
    bool has_claim = false;
    bool has_error = false;
    bool has_entry = false;
    /// The entry could be read, and its key belongs to this lane
    bool is_readable = false;
    /// Node of the event's key; null: it has none
    keys_by_name::value_type* key = nullptr;
    /// Node of a key whose head it is, according to HEADS
    const keys_by_name::value_type* head_of = nullptr;
  };
  struct follower_view {
    std::string member{};
    std::optional<follower_member> parsed{};
    bool has_score_zero = true;
  };
  /// An inconsistency, as repair.lua gets it.
  struct finding {
    std::string_view kind{};
    std::array<std::string, 4> arguments{};
    std::uint64_t* counter = nullptr;
  };
  /// A finding about an event of a key, which is sent in the order of sequences.
  struct stray_event {
    std::string key{};
    std::int64_t sequence = 0;
    finding problem{};
  };

  void check_types();
  void read_structures();
  void read_entries();
  void read_entry(const std::string& id, event_view& view, const std::string& text);
  void check_event(const std::string& id, event_view& view, std::int64_t sequence);
  void check_claim(const std::string& id, const event_view& view, const std::string& key);
  void check_followers_of(const std::string& id, const event_view& view, const std::string& key,
                          std::int64_t sequence);
  void report_stray_events();
  void check_ids_without_entry();
  void check_keys();
  [[nodiscard]] bool is_head_suspect(const keys_by_name::value_type& key) const;
  void check_tickets();
  void check_remembered();
  void check_meta();

  void report(finding problem);
  void send_findings();
  template <class Visit>
  void visit_pages(std::string_view scan_command, redis_lane::key structure, Visit visit) const;

  const redis::client& client_;
  const redis_lane& lane_;
  const redis::script& repair_script_;
  const lane_check_options options_;
  std::unordered_map<std::string, event_view> events_{};
  keys_by_name keys_{};
  std::vector<follower_view> followers_{};
  std::vector<stray_event> stray_events_{};
  std::vector<finding> findings_{};
  std::string seq_before_{}, acked_before_{};
  std::uint64_t bytes_ = 0;
  std::int64_t largest_sequence_ = 0;
  std::int64_t largest_token_ = 0;
  double latest_due_ = 0;
  check_report report_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
