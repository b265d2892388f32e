#include "serve/live/live_part.hpp"

#include <holdfast/error.hpp>

#include "serve/api/endpoint_table.hpp"
#include "serve/api/json_reader.hpp"
#include "serve/auth/identity.hpp"
#include "serve/live/event_metrics.hpp"
#include "serve/live/live_endpoints.hpp"
#include "serve/live/running_jobs.hpp"

#include <deque>
#include <mutex>
#include <optional>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

/// Passes events on to the hub, and keeps those of the audit log for the timeline of an incident:
/// they are published on threads that must not wait for the state database.
class live_events final : public event_sink {
 public:
  explicit live_events(event_hub& hub) : hub_(hub) {}

  void publish(std::string_view kind, std::string json) noexcept override {
    if (kind == "audit") keep_action(json);
    hub_.publish(kind, std::move(json));
  }
  /// The actions since the last call.
  [[nodiscard]] std::deque<std::string> take_actions() {
    const std::scoped_lock lock(mutex_);
    return std::exchange(actions_, {});
  }

 private:
  static constexpr std::size_t max_actions = 1'000;

  void keep_action(const std::string& json) noexcept try {
    const std::scoped_lock lock(mutex_);
    if (actions_.size() < max_actions) actions_.push_back(json);
  } catch (...) {  // NOLINT(bugprone-empty-catch)
    // No memory: the audit log itself has the entry.
  }

  event_hub& hub_;
  std::mutex mutex_{};
  std::deque<std::string> actions_{};
};

class live_part final : public server_part {
 public:
  void attach(services& shared) override { shared.events = &events_; }

  void add_endpoints(endpoint_table& table, services& shared) override {
    auto* const database = shared.auth == nullptr ? nullptr : &shared.auth->database();
    past_.emplace(database);
    incidents_.emplace(database, &events_);
    if (shared.metrics) metrics_.emplace(*shared.metrics);
    // The part with the jobs may be added later than this one.
    state_.emplace(shared, *past_, *incidents_,
                   live_options{.on_turn = [this] { run_turn(); },
                                .jobs = [&shared] { return running_jobs(shared.jobs); }});
    for (auto& row : live_endpoints({*state_, hub_, *past_, *incidents_, shared}))
      table.add(std::move(row));
  }
  void start(const std::vector<std::string>& /*addresses*/) override {
    if (state_) state_->start();
  }
  void drain() noexcept override { hub_.shut_down(); }
  std::vector<std::string> finish(std::chrono::steady_clock::time_point /*deadline*/) override {
    if (state_) state_->stop();
    if (past_) past_->flush();
    return {};
  }

 private:
  void run_turn() {
    hub_.end_old_streams();
    if (metrics_) metrics_->update(hub_.counts());
    if (!incidents_) return;
    for (const auto& json : events_.take_actions()) {
      try {
        auto entry = json_object::parse(json);
        incidents_->record_action(
            {.time = entry.time("at").value_or(timestamp{}),
             .caller = entry.text("caller").value_or(""),
             .action = entry.text("action").value_or(""),
             .subject = entry.text("subject").value_or(""),
             .count = static_cast<std::uint64_t>(entry.integer("count").value_or(0)),
             .result = entry.text("result").value_or("")});
      } catch (const error&) {  // NOLINT(bugprone-empty-catch)
        // Not an entry of the audit log.
      }
    }
  }

  event_hub hub_{};
  live_events events_{hub_};
  std::optional<event_metrics> metrics_{};  // of the sampling thread
  std::optional<history> past_{};
  std::optional<incident_log> incidents_{};
  std::optional<live_state> state_{};
};

}  // namespace

std::unique_ptr<server_part> make_live_part() { return std::make_unique<live_part>(); }

}  // namespace HOLDFAST_NAMESPACE::detail::serve
