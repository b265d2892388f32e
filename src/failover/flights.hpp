#pragma once

#include <holdfast/failover/answer.hpp>
#include <holdfast/store.hpp>
#include <holdfast/version.hpp>

#include <array>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

namespace HOLDFAST_NAMESPACE {

/// How a shared call ended: a live answer as bytes, or an error and what was found in the store.
struct landing {
  provenance from{};
  bool live = false;
  bool usable = false;                         ///< of a live one: its bytes are known, so others can have it
  std::shared_ptr<const std::string> bytes{};  ///< null: the answer is that there is nothing
  std::exception_ptr error{};
  cause_code code = cause_code::failed;
  std::optional<entry> found{};  ///< of a failed one: what its recovery found and believed
};

/// One call that several callers wait for.
struct flight {
  std::mutex mutex{};
  std::condition_variable landed{};
  std::optional<landing> how{};
};

/// The calls that are under way, by their keys.
/// Thread-safety: every function may be called from any thread.
class flights {
 public:
  struct seat {
    std::shared_ptr<flight> on{};
    bool leader = false;  ///< this caller makes the call, and must `land` it
  };
  [[nodiscard]] seat join(const std::string& id);
  /// Ends the flight: those who wait are told; who comes later starts another.
  void land(const std::string& id, const std::shared_ptr<flight>& which, landing how);

 private:
  static constexpr std::size_t shards = 16;
  struct shard {
    std::mutex mutex{};
    std::unordered_map<std::string, std::shared_ptr<flight>> under_way{};
  };
  shard& shard_of(const std::string& id) { return shards_[std::hash<std::string>{}(id) % shards]; }
  std::array<shard, shards> shards_{};
};

}  // namespace HOLDFAST_NAMESPACE
