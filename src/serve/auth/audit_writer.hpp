#pragma once

/// \file
/// The audit log in the state database. `record` puts an entry into a queue in memory; a thread of
/// the server writes the queue. The table is append-only for this program; entries are deleted
/// after 400 days.

#include <holdfast/clock.hpp>
#include <holdfast/log.hpp>
#include <holdfast/metrics.hpp>
#include <holdfast/version.hpp>

#include "serve/auth/audit.hpp"
#include "serve/auth/state_database.hpp"
#include "serve/live/event_sink.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve {

inline constexpr auto audit_life = std::chrono::days(400);
/// Entries that wait for the database. Beyond it new entries are lost, logged and counted.
inline constexpr std::size_t audit_queue_size = 10'000;

struct stored_audit_entry {
  /// Grows with time.
  std::string id{};
  audit_entry entry{};
};

/// Which entries are listed. Empty members admit all.
struct audit_filter {
  std::string caller{};
  std::string tenant{};
  std::string action{};
  std::string subject{};
  std::optional<timestamp> begin{};
  /// Exclusive.
  std::optional<timestamp> end{};
  /// The entries before this one, which are older.
  std::string after{};
};

/// Thread-safety: may be called from any thread.
class audit_writer final : public audit_log {
 public:
  struct parts {
    std::shared_ptr<const holdfast::clock> clock{};  ///< never null
    std::shared_ptr<const logger> log{};             ///< never null
    std::shared_ptr<metrics_sink> metrics{};         ///< never null
    /// Called after an entry was queued. Must not wait.
    std::function<void()> on_entry{};
  };
  explicit audit_writer(parts shared);

  void record(audit_entry entry) noexcept override;
  using audit_log::record;

  /// Publishes entries from now on. The sink must outlive the writer; null: nowhere.
  void publish_to(event_sink* events) noexcept { events_ = events; }
  /// Writes what is in the queue. Keeps it if the database fails, and throws its error.
  void write_queue(state_database& database);
  [[nodiscard]] bool is_empty() const;
  /// Entries that were not kept because the queue was full.
  [[nodiscard]] std::uint64_t lost() const;

 private:
  void queue_entry(audit_entry entry);
  [[nodiscard]] std::string next_id(timestamp time);
  void count_loss(std::string_view reason) noexcept;

  const parts shared_;
  const std::string process_;  // a part of the ids
  const std::shared_ptr<metrics::counter> lost_counter_;
  const std::shared_ptr<metrics::counter> failures_;
  std::atomic<event_sink*> events_{nullptr};
  std::mutex writing_{};
  mutable std::mutex mutex_{};
  std::deque<stored_audit_entry> queue_{};
  std::uint32_t number_ = 0;
  std::uint64_t lost_ = 0;
};

/// The newest first. Throws errors of the database.
[[nodiscard]] std::vector<stored_audit_entry> list_audit(state_session& session,
                                                         const audit_filter& filter,
                                                         std::size_t limit);
/// Deletes entries that are older than audit_life.
void forget_old_audit(state_session& session, timestamp now);

/// `{"id":..,"at":..,"caller":..,...}`
[[nodiscard]] std::string to_json(const stored_audit_entry& entry);

}  // namespace HOLDFAST_NAMESPACE::detail::serve
