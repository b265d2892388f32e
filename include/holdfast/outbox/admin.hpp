#pragma once

/// \file
/// Administration of an outbox: what an operator does, and what publishers and workers do not.

#include <holdfast/error.hpp>
#include <holdfast/outbox/operations.hpp>
#include <holdfast/outbox/recurring.hpp>
#include <holdfast/version.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE {

namespace detail::outbox {
struct outbox_state;
}  // namespace detail::outbox

/// The administration of an outbox; returned by `outbox::admin`. Copies share the outbox.
///
///     const auto admin = outbox.admin();
///     std::vector<std::string> ids;
///     for (const auto& record : admin.scan(holdfast::scan_what::parked).records)
///       ids.push_back(record.details.event.id);
///     admin.replay(ids);
///
/// Thread-safety and errors: as class `outbox`.
class HOLDFAST_API outbox_admin {
 public:
  // ---- parked events, pause ----

  /// Makes parked events due again. Returns how many of these ids were parked.
  std::size_t replay(std::span<const std::string> ids) const;
  /// Deletes parked events. Returns how many of these ids were parked.
  std::size_t discard(std::span<const std::string> ids) const;
  /// Stops the delivery to all workers until `resume`. Publishing continues.
  void pause() const;
  void resume() const;

  // ---- inspect ----

  /// Returns the sum over all lanes.
  [[nodiscard]] outbox_stats stats() const;
  [[nodiscard]] outbox_stats stats(std::size_t lane) const;
  /// Returns one sentence that says why an event is not delivered yet.
  [[nodiscard]] std::string explain(std::string_view id) const;
  /// Returns a page of records, lane by lane. Pass `after` of a page to get the next one; the last
  /// page has an empty `after`.
  [[nodiscard]] scan_page scan(scan_what selection = scan_what::all, std::string_view after = {},
                               std::size_t most = 100) const;
  /// Returns all recurring events, by name.
  [[nodiscard]] std::vector<recurrence> recurring() const;
  /// Compares the data structures of the store with each other, and repairs them if requested.
  check_report check(bool repair = false) const;
  /// Returns why the store is not available, or nothing if it is.
  [[nodiscard]] std::optional<error> health() const noexcept;

 private:
  friend class outbox;
  explicit outbox_admin(std::shared_ptr<const detail::outbox::outbox_state> state) noexcept
      : state_(std::move(state)) {}

  std::shared_ptr<const detail::outbox::outbox_state> state_;
};

}  // namespace HOLDFAST_NAMESPACE
