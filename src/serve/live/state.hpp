#pragma once

/// \file
/// The state of everything that the server knows, computed once a second for all clients.
///
///   thread `hf-live`       samples, computes rates, observes incidents, adds to the history, and
///                          publishes the state when it has changed
///   threads `hf-live-ask`  one for each database: ask it, one question at a time. The sampler only
///                          takes the last answers, so a database that hangs does not stop it

#include <holdfast/version.hpp>

#include "serve/api/services.hpp"
#include "serve/live/database_questions.hpp"
#include "serve/live/history.hpp"
#include "serve/live/incidents.hpp"
#include "serve/live/point_expiries.hpp"
#include "serve/live/point_totals.hpp"
#include "serve/live/sequence_ends.hpp"
#include "serve/live/snapshot.hpp"
#include "serve/live/state_metrics.hpp"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve {

struct live_options {
  std::chrono::milliseconds interval{1'000};
  /// Between questions to a database.
  std::chrono::milliseconds question_interval{5'000};
  /// A question that takes longer is shown as unanswered.
  std::chrono::milliseconds answer_limit{2'000};
  /// Between two examinations of the table of a store, whose findings are shown.
  std::chrono::milliseconds examination_interval{60'000};
  /// An outbox whose oldest event is due for longer is overdue.
  std::chrono::milliseconds overdue_after{60'000};
  /// Part of stale answers of a point from which on something is wrong.
  double stale_limit = 0.01;
  /// Called every second on the sampling thread, for `event_hub::end_old_streams`.
  std::function<void()> on_turn{};
  /// Adds the member `jobs` of the state: JSON of an array. Empty: none.
  std::function<std::string()> jobs{};
};

/// Thread-safety: every function may be called from any thread, except `start` and `stop`.
class live_state {
 public:
  /// `shared`, `past` and `incidents` must outlive it.
  live_state(services& shared, history& past, incident_log& incidents, live_options options = {});
  ~live_state();
  live_state(const live_state&) = delete;
  live_state& operator=(const live_state&) = delete;

  /// Begins to ask the databases and to sample.
  void start();
  /// Waits for the current turn.
  void stop();

  /// One turn; `start` does this every second. For tests.
  void sample();
  /// The object of GET /v1/status.
  [[nodiscard]] std::shared_ptr<const std::string> status() const;

 private:
  struct store_question;
  struct outbox_question;
  struct counter_question;
  struct instance_question;
  using finding_counts = std::map<severity, std::uint64_t>;
  using question_list = std::vector<std::function<void()>>;

  void add_questions();
  void add_store_questions(const store_service& service);
  void add_database(const std::string& url, std::function<void()> question);
  [[nodiscard]] snapshot collect();
  void collect_points(snapshot& current);
  void add_expiries(std::vector<point_sample>& points) const;
  [[nodiscard]] std::vector<incident_condition> conditions_of(const snapshot& current) const;
  void run();

  services& shared_;
  history& history_;
  incident_log& incidents_;
  const live_options options_;

  // The answers are shared with questions that may still run after the end.
  std::vector<std::pair<std::string, std::shared_ptr<cached_answer<store_health>>>> stores_{};
  std::vector<std::pair<std::string, std::shared_ptr<cached_answer<outbox_numbers>>>> outboxes_{};
  std::vector<std::shared_ptr<cached_answer<finding_counts>>> findings_{};  // as stores_
  std::shared_ptr<cached_answer<std::vector<named_counter>>> counters_{};
  std::shared_ptr<sequence_ends> ends_{};  // null without sequences
  struct reported_instance {
    instance_sample sample{};  // without its age
    std::chrono::microseconds age{};
    std::chrono::microseconds silent_after{};
    std::vector<reported_point> points{};
    bool is_new = true;
  };
  /// The reports of one database. They are parsed when the database has given new ones.
  struct instance_source {
    std::shared_ptr<cached_answer<std::vector<instance_report>>> answer{};
    std::uint64_t count = 0;  // of the answers when these reports came
    timestamp moment{};
    std::vector<reported_instance> reports{};
  };
  static reported_instance read_report(const instance_report& report,
                                       std::chrono::microseconds tolerance);
  void collect_instances(instance_source& source, snapshot& current);
  std::vector<instance_source> instances_{};
  std::shared_ptr<point_expiries> expiries_{};        // null without an engine
  std::map<std::string, question_list> questions_{};  // by the URL of the database
  std::vector<std::unique_ptr<database_questions>> databases_{};

  // For the sampling thread, under sample_mutex_.
  std::mutex sample_mutex_{};
  point_totals points_{};
  std::optional<state_metrics> metrics_{};  // empty without a registry
  struct counter_past {
    std::int64_t value = 0;
    timestamp moment{};
    double rate = 0;
  };
  std::map<std::string, counter_past> past_counters_{};
  [[nodiscard]] double rate_of(const std::string& name, std::int64_t value, timestamp moment);

  /// Totals of an outbox in the last turn.
  struct past_deliveries {
    std::uint64_t acked = 0;
    std::uint64_t failures = 0;
    bool failing = false;
  };
  std::map<std::string, past_deliveries> past_deliveries_{};
  /// True from a failed delivery until one succeeds, or nothing is pending. Retries wait minutes
  /// for each other: no rate shows them.
  [[nodiscard]] bool is_failing(const std::string& name, const outbox_stats& stats);

  mutable std::mutex mutex_{};
  std::condition_variable changed_{};
  bool stopping_ = false;                        // under mutex_
  std::shared_ptr<const std::string> status_{};  // under mutex_
  std::string published_{};                      // of the sampling thread
  std::jthread thread_{};
};

/// The JSON of a snapshot without its beginning `{"at":...,`, so that two of them can be compared.
[[nodiscard]] std::string status_members(const snapshot& current, std::string_view label,
                                         const std::vector<incident_condition>& conditions,
                                         const std::vector<std::string>& open_incidents,
                                         std::string_view jobs);

/// The numbers of a snapshot for the history.
[[nodiscard]] std::vector<series_value> history_values(const snapshot& current);

}  // namespace HOLDFAST_NAMESPACE::detail::serve
