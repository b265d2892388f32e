#pragma once

/// \file
/// Scans of an outbox for a person: bounded in rows and time, so that no page of a console and no
/// typing mistake keeps a database busy.

#include <holdfast/clock.hpp>
#include <holdfast/outbox.hpp>
#include <holdfast/version.hpp>

#include "serve/api/event_filter.hpp"
#include "serve/api/services.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve {

/// Records of one call of the backend. They have their payloads, so it is not large.
inline constexpr std::size_t scan_page_size = 100;

/// What one question may cost.
/// Thread-safety: none.
class scan_budget {
 public:
  static constexpr std::size_t max_rows = 10'000;
  static constexpr std::chrono::milliseconds max_time{2'000};

  explicit scan_budget(const clock& time, std::chrono::milliseconds duration = max_time)
      : clock_(time), end_(time.steady() + duration) {}
  void spend(std::size_t rows) noexcept { examined_ += rows; }
  [[nodiscard]] std::size_t examined() const noexcept { return examined_; }
  [[nodiscard]] bool is_spent() const noexcept {
    return examined_ >= max_rows || clock_.steady() >= end_;
  }

 private:
  const clock& clock_;
  std::chrono::steady_clock::time_point end_;
  std::size_t examined_ = 0;
};

/// Calls `visit` for each record until it returns false, or the budget is spent. Returns true if
/// all records were visited.
bool scan_within(const outbox_service& service, scan_what selection, scan_budget& budget,
                 const std::function<bool(const outbox_record&)>& visit);

/// A page of records that match a filter.
struct filtered_page {
  std::vector<outbox_record> records{};
  /// Pass it as `after` to continue. Empty: there are no more.
  std::string next{};
  std::size_t examined = 0;
};
/// Returns at most `limit` records. With fewer and a `next`, the budget was spent. `after` is
/// `<position>~<id>`: the page of the backend, and the last record of it that was returned. Throws
/// errc::invalid_argument if `after` is not from a page.
[[nodiscard]] filtered_page scan_filtered(const outbox_service& service, scan_what selection,
                                          const event_filter& filter, std::string_view after,
                                          std::size_t limit, const clock& time);

/// Time of the store. Claims with the name of an owner who holds no lock: such a claim is refused,
/// changes nothing, and reports the time.
[[nodiscard]] timestamp store_time(const outbox_service& service);

}  // namespace HOLDFAST_NAMESPACE::detail::serve
