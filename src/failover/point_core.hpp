#pragma once

#include <holdfast/failover/core.hpp>
#include <holdfast/payload.hpp>
#include <holdfast/version.hpp>

#include "base/breaker.hpp"
#include "failover/concurrency_limit.hpp"
#include "failover/engine_core.hpp"
#include "failover/instruments.hpp"
#include "failover/retry.hpp"
#include "failover/tallies.hpp"

#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace HOLDFAST_NAMESPACE::detail {

/// What the caller of an owned call and the thread that makes it have in common.
struct rendezvous {
  std::mutex mutex{};
  std::condition_variable ended{};
  enum class state : std::uint8_t {
    running,
    answered,  ///< the value is there and encoded, and being put: only the row is used from here on
    ended,
    left,  ///< by its caller, before there was an answer
    taken  ///< by its caller, while it was being put
  } at = state::running;
  std::exception_ptr error{};
  std::stop_source stop{};
  std::atomic<bool> told{false};  ///< the breaker knows how it ended: from the caller who left, or from the thread that made the call
};

/// A point without its types.
class point_core {
 public:
  point_core(engine_core& of, std::string its_name, point_options given, point_type its_type, key::failover_keys its_keys,
             std::string written_class);

  void count(tally which) const noexcept {
    tallies.add(which);
    if (meters) meters->add(which);
  }
  /// One line for an operator, at most once a minute for each kind; the point is named by its own name.
  void warn(const char* id, std::string_view message, const std::exception_ptr& why = nullptr) const noexcept;

  [[nodiscard]] timestamp expire_on(const call_base& call, const encoded& what) const;
  [[nodiscard]] std::uint64_t running() const noexcept { return tallies.running() + late_running.load(std::memory_order_relaxed); }
  [[nodiscard]] point_status status() const;

  /// A number for the row, for the table of recent ones.
  [[nodiscard]] std::uint64_t id_of(const call_base& call) const noexcept {
    constexpr std::uint64_t odd = 0x9E3779B97F4A7C15U;
    std::uint64_t id = 0;
    if (call.key.size() >= 36) {  // the text of a UUID is a hash already: its ends will do
      std::uint64_t tail = 0;
      std::memcpy(&id, call.key.data(), sizeof id);
      std::memcpy(&tail, call.key.data() + 28, sizeof tail);
      id = (id * odd) ^ (tail << 1U);
      id = (id ^ (id >> 29U)) * odd;
      id ^= id >> 32U;
    } else {
      id = std::hash<std::string>{}(call.key);
    }
    id ^= seed;
    if (!call.realm.empty()) id = (id * odd) ^ std::hash<std::string>{}(call.realm);
    return id;
  }

  engine_core& engine;  // every shared pointer to a point owns its engine
  const std::string name;
  const point_options options;
  const point_type type;
  const key::failover_keys keys;
  const std::string effective_name;
  const std::string payload_class;
  const std::string manifest_name;  ///< of the rows that say what belongs to a list; empty for other points
  const payload_allowlist allowed;
  const std::uint64_t seed;
  const holdfast::exception_policy policy;
  const std::size_t max_payload;
  const scatter_options scatter;
  const std::shared_ptr<store> writes;          ///< in front of the queue, or behind it
  const bool guarded;                           ///< there is a breaker or a limit
  const std::chrono::microseconds deadline;     ///< of a call; zero when it has none
  const std::chrono::microseconds soft_expiry;  ///< zero when it has none
  const bool timed;                             ///< somebody wants to know how long things took
  const way how;

  mutable holdfast::tallies tallies{};
  std::unique_ptr<instruments> meters{};
  std::unique_ptr<holdfast::breaker> breaker{};
  std::unique_ptr<retry_plan> retry{};
  mutable concurrency_limit limit;
  mutable std::atomic<std::uint64_t> late_running{0};  ///< calls whose caller left
  mutable std::atomic<unsigned> split_checks{0};       ///< live answers whose splitting was checked
};

/// What a look into the store gave.
enum class found : std::uint8_t { answer, nothing, failed, late };
struct reading {
  found how = found::nothing;
  std::optional<entry> what{};
};
/// Reads the call's row: here, or on the executor within the read deadline.
[[nodiscard]] reading read(const std::shared_ptr<point_core>& point, const call_base& call);
/// Removes an expired version, wherever that may take long.
void drop(const std::shared_ptr<point_core>& point, const entry& expired) noexcept;

/// What the point varies by, of this caller, as it is added to a raw key. Throws when a dimension has no value.
[[nodiscard]] std::string vary_text(const point_core& point);
/// Why a stored answer may not be served; `live` means that it may, and is in the call. `newest` is the newest that had been served for the
/// key before the row was read.
[[nodiscard]] tally judge(const std::shared_ptr<point_core>& point, call_base& call, const entry& what, timestamp now,
                          std::optional<timestamp> newest) noexcept;
/// Says in the call where its answer comes from.
void serve(const point_core& point, call_base& call, const entry& what, timestamp now, cause why) noexcept;

/// The row of a live value; nothing when it is not to be stored, which is counted. Who puts the row then notes it as recent. Never throws.
[[nodiscard]] std::optional<entry> row_of(const point_core& point, call_base& call) noexcept;
/// A live value that is encoded and not yet put.
struct unput {
  entry row{};
  std::uint64_t id = 0;
  std::chrono::steady_clock::time_point began{};
};
/// Encodes a live value, and says so in the call's provenance; nothing when it is not to be put. Never throws.
[[nodiscard]] std::optional<unput> keep_later(const point_core& point, call_base& call) noexcept;
/// Puts it, and notes it as recent. Does not use the call. Never throws.
void put(const point_core& point, const unput& what) noexcept;
/// Encodes and puts a live value, and says so in the call's provenance. Never throws.
void keep(const point_core& point, call_base& call) noexcept;
/// A kept call: hooks, numbers.
void answered(const point_core& point, call_base& call) noexcept;
/// The same for an upstream that failed, when somebody else has read the row already.
void fail_with(const std::shared_ptr<point_core>& point, call_base& call, std::exception_ptr error, cause_code code, const entry* known,
               std::optional<entry>* believed);
/// Calls the upstream on this thread, again if the point says so. Null when it answered.
[[nodiscard]] std::exception_ptr call_upstream(const std::shared_ptr<point_core>& point, call_base& call, cause_code& code);
/// Tells breaker, limit and meters that the upstream is done with a call.
void told(const point_core& point, call_base& call, call_result how) noexcept;
/// The same for a caller who leaves a call that is still running: the breaker knows, the place stays taken.
void told_late(const point_core& point, const call_base& call) noexcept;
[[nodiscard]] call_result result_of(const point_core& point, const std::exception_ptr& error) noexcept;
/// Serves a stored answer before the upstream is asked, when the point has a soft expiry, and refreshes one that is past it: with `owned`, or
/// a copy of the call. False: ask the upstream.
bool serve_young(const std::shared_ptr<point_core>& point, call_base& call, std::shared_ptr<call_base> owned = nullptr);
/// Calls the upstream on the executor and waits for it until the deadline.
void run_elsewhere(const std::shared_ptr<point_core>& point, const std::shared_ptr<call_base>& call, call_base& mine, landing* how);
[[nodiscard]] std::exception_ptr late_error(const point_core& point);
[[nodiscard]] std::string flight_id(const point_core& point, const call_base& call);

}  // namespace HOLDFAST_NAMESPACE::detail
