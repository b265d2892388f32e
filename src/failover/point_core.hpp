#pragma once

#include <holdfast/failover/core.hpp>
#include <holdfast/payload.hpp>

#include "base/breaker.hpp"
#include "failover/concurrency_limit.hpp"
#include "failover/counters.hpp"
#include "failover/engine_core.hpp"
#include "failover/insight/drill_run.hpp"
#include "failover/insight/recent_calls.hpp"
#include "failover/instruments.hpp"
#include "failover/retry.hpp"

namespace HOLDFAST_NAMESPACE::detail::failover {

/// The part of a point that observes its calls.
struct point_insight {
  recent_calls recent{};
};

/// A point without its types.
class point_core {
 public:
  point_core(engine_core& owner, std::string point_name, point_options checked_options,
             point_type described_type, holdfast::key::failover_keys point_keys,
             std::string written_class);

  void count(counter index) const noexcept {
    counts.add(index);
    if (meters) meters->add(index);
  }
  /// Logs a warning, at most once a minute for each `id`. Logs the type of the exception only: its
  /// message may contain secrets.
  void warn(const char* id, std::string_view message,
            const std::exception_ptr& thrown = nullptr) const noexcept;

  /// When the value expires. Throws what the expiry policy throws.
  [[nodiscard]] timestamp expire_on(const call_base& call, const encoded_value& value) const;
  /// A tombstone with the version of the call.
  [[nodiscard]] entry tombstone(const call_base& call, const std::string& row_name,
                                const std::string& key) const;
  /// Calls that have not ended, including those without a waiting caller.
  [[nodiscard]] std::uint64_t running() const noexcept {
    return counts.running() + detached_calls.load(std::memory_order_relaxed);
  }
  [[nodiscard]] point_status status() const;
  /// The options with the defaults of the engine filled in.
  [[nodiscard]] point_options resolved() const;
  /// Hash of the row of a call, for engine_core::served.
  [[nodiscard]] std::uint64_t row_id(const call_base& call) const noexcept {
    return failover::row_id(name_hash, call.key, call.realm);
  }
  /// Now, if there are metrics to measure for.
  [[nodiscard]] std::chrono::steady_clock::time_point measure_start() const noexcept {
    return meters ? engine.clock->steady() : std::chrono::steady_clock::time_point{};
  }
  /// Runs the enrich hook. An exception is counted and logged.
  void enrich(call_base& call) const noexcept;

  engine_core& engine;  // every shared pointer to a point owns its engine
  const std::string name;
  const point_options options;
  const point_type type;
  const holdfast::key::failover_keys keys;
  const std::string effective_name;
  const std::string payload_class;
  const std::string manifest_name;  ///< name of the rows of manifests; empty if not listed
  const payload_allowlist allowed;
  const std::uint64_t name_hash;
  const holdfast::exception_policy policy;
  const std::size_t max_payload;
  const scatter_options scatter;
  const std::shared_ptr<holdfast::store> write_store;  ///< the queue, or the store under it
  const bool guarded;                                  ///< has a breaker or a concurrency limit
  const std::chrono::microseconds deadline;            ///< zero: none
  const std::chrono::microseconds soft_expiry;         ///< zero: none
  const bool timed;                                    ///< calls need call_base::started
  const call_mode mode;
  /// Whether answers are written to the queue of the engine.
  [[nodiscard]] bool writes_to_queue() const noexcept {
    return engine.owns_queue && write_store == engine.front_store;
  }
  /// The threads of the calls with a deadline, of the reads of a store that may block, and of the
  /// refreshes, of this point.
  [[nodiscard]] const std::shared_ptr<call_scheduler::group>& call_group() const;
  [[nodiscard]] const std::shared_ptr<call_scheduler::group>& read_group() const;
  [[nodiscard]] const std::shared_ptr<call_scheduler::group>& refresh_group() const;

  mutable counters counts{};
  std::unique_ptr<instruments> meters{};
  std::unique_ptr<point_insight> insight{};  ///< null: the engine records nothing about calls
  mutable point_drill drill{};
  std::unique_ptr<detail::breaker> breaker{};
  std::unique_ptr<retry_plan> retry{};
  mutable concurrency_limit limit;
  mutable std::atomic<std::uint64_t> detached_calls{0};  ///< running calls without a caller
  mutable std::atomic<unsigned> split_checks{0};  ///< live answers checked for split symmetry
  /// How long calls that other callers share take: a decaying mean.
  mutable std::atomic<std::chrono::steady_clock::duration> shared_call_time{};

 private:
  mutable std::once_flag call_group_made_{};
  mutable std::once_flag read_group_made_{};
  mutable std::once_flag refresh_group_made_{};
  mutable std::shared_ptr<call_scheduler::group> call_group_{};
  mutable std::shared_ptr<call_scheduler::group> read_group_{};
  mutable std::shared_ptr<call_scheduler::group> refresh_group_{};
};

/// The name of the rows of manifests; empty if the point is not listed.
[[nodiscard]] std::string manifest_name_of(std::string_view point_name, const point_type& type);

}  // namespace HOLDFAST_NAMESPACE::detail::failover
