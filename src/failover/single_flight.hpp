#pragma once

#include <holdfast/failover/core.hpp>
#include <holdfast/store.hpp>

#include <array>
#include <condition_variable>
#include <mutex>
#include <unordered_map>

namespace HOLDFAST_NAMESPACE::detail::failover {

/// The result of a shared call: a live answer as bytes, or an error and the entry that was served.
struct shared_result {
  holdfast::provenance provenance{};
  bool live = false;
  bool has_bytes = false;                      ///< live: followers can decode the answer
  std::shared_ptr<const std::string> bytes{};  ///< null: the answer is empty
  std::exception_ptr error{};
  cause_code code = cause_code::failed;
  std::optional<entry> served{};  ///< not live: the stored entry that the leader served

  void set_live(const call_base& call) {
    live = true;
    provenance = call.provenance;
    has_bytes = call.shares_bytes;
    bytes = call.shared_bytes;
  }
};

/// A call that several callers wait for.
struct shared_call {
  std::mutex mutex{};
  std::condition_variable finished{};
  std::optional<shared_result> result{};
};

/// The running shared calls, by id.
/// Thread-safety: every function may be called from any thread.
class single_flight {
 public:
  struct membership {
    std::shared_ptr<shared_call> call{};
    bool leader = false;  ///< this caller runs the call and must `finish` it
  };
  [[nodiscard]] membership join(const std::string& id);
  /// The call is taking too long: the next caller that joins starts another call.
  void give_up(const std::string& id, const std::shared_ptr<shared_call>& call);
  /// Wakes all followers. A caller that joins later starts another call.
  void finish(const std::string& id, const std::shared_ptr<shared_call>& call,
              shared_result result);

 private:
  static constexpr std::size_t shard_count = 16;
  struct shard {
    std::mutex mutex{};
    std::unordered_map<std::string, std::shared_ptr<shared_call>> running{};
  };
  shard& shard_of(const std::string& id) {
    return shards_[std::hash<std::string>{}(id) % shard_count];
  }
  std::array<shard, shard_count> shards_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail::failover
