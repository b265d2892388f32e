#pragma once

/// \file
/// Sums the counters of a point over instances. The counters of an instance begin at 0 when it
/// starts again, and an instance that has gone reports no more; the totals never decrease.

#include <holdfast/breaker.hpp>
#include <holdfast/failover/status.hpp>
#include <holdfast/version.hpp>

#include "serve/live/snapshot.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve {

/// The counters that rates are made from.
struct call_counts {
  std::uint64_t started = 0;
  std::uint64_t ended = 0;     ///< live, fresh, stale, substituted or failed
  std::uint64_t stale = 0;     ///< stale or substituted
  std::uint64_t unserved = 0;  ///< failed
};
[[nodiscard]] call_counts counts_of(const point_numbers& numbers) noexcept;

struct reported_point {
  std::string name{};
  breaker_state breaker = breaker_state::closed;
  std::uint64_t running = 0;
  call_counts counts{};
};

/// Thread-safety: none.
class point_totals {
 public:
  /// At most so many pairs of instance and point are followed; others are ignored. It is enough for
  /// 200 instances with 1,000 points, in 20 MB.
  static constexpr std::size_t max_sources = 200'000;
  /// Rates are those of this time. Instances report every 10 seconds, so a shorter window would
  /// miss reports.
  static constexpr std::chrono::seconds window{15};

  /// Takes what an instance counts now.
  void add(std::string_view instance, const std::vector<reported_point>& points);
  /// The last report of an instance still holds: most turns have no new one.
  void repeat(std::string_view instance);
  /// Ends a turn: returns all points with their rates, sorted by name. Forgets points that no
  /// instance reported for an hour.
  [[nodiscard]] std::vector<point_sample> finish(std::chrono::steady_clock::time_point now);

 private:
  struct timed_counts {
    std::chrono::steady_clock::time_point moment{};
    call_counts counts{};
  };
  struct instance_entry {
    std::uint64_t report = 0;  // number of its last report
    std::uint64_t turn = 0;    // in which the report held
  };
  /// What one instance reported last about a point.
  struct source_entry {
    const instance_entry* instance = nullptr;
    std::uint64_t report = 0;  // of the instance, that had the point last
    std::uint64_t turn = 0;
    breaker_state breaker = breaker_state::closed;
    std::uint64_t running = 0;
    call_counts counts{};
  };
  struct point_entry {
    call_counts total{};
    std::deque<timed_counts> past{};
    std::chrono::steady_clock::time_point reported{};
    std::vector<source_entry> sources{};  // by the address of the instance
  };

  /// Returns null if there are too many sources.
  source_entry* find_or_add(point_entry& point, const instance_entry& instance,
                            const call_counts& counts);
  /// Sums what the instances count now. Forgets those that reported long ago.
  [[nodiscard]] point_sample sum_sources(point_entry& point);

  std::map<std::string, instance_entry, std::less<>> instances_{};  // their addresses stay
  std::map<std::string, point_entry, std::less<>> points_{};
  std::size_t source_count_ = 0;
  std::uint64_t turn_ = 1;
};

}  // namespace HOLDFAST_NAMESPACE::detail::serve
