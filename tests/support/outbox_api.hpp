#pragma once

/// \file
/// The API of outboxes and jobs on a port of this machine, with what it writes to the audit log and
/// to its event stream. The outboxes are `orders` and `mails`, on one database.

#include <holdfast/database.hpp>
#include <holdfast/outbox.hpp>

#include "serve/api/claim_polls.hpp"
#include "serve/api/endpoint_table.hpp"
#include "serve/api/job_endpoints.hpp"
#include "serve/api/job_runner.hpp"
#include "serve/api/outbox_endpoints.hpp"
#include "serve/api/services.hpp"
#include "support/api_server.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::test {

/// Keeps what was recorded.
class kept_audit final : public detail::serve::audit_log {
 public:
  using audit_log::record;
  void record(detail::serve::audit_entry entry) noexcept override {
    const std::scoped_lock lock(mutex_);
    entries_.push_back(std::move(entry));
  }
  [[nodiscard]] std::vector<detail::serve::audit_entry> of(std::string_view action) const {
    const std::scoped_lock lock(mutex_);
    std::vector<detail::serve::audit_entry> result;
    for (const auto& entry : entries_) {
      if (entry.action == action) result.push_back(entry);
    }
    return result;
  }

 private:
  mutable std::mutex mutex_{};
  std::vector<detail::serve::audit_entry> entries_{};
};

/// Keeps the JSON of the events of jobs.
class kept_events final : public detail::serve::event_sink {
 public:
  void publish(std::string_view kind, std::string json) noexcept override {
    const std::scoped_lock lock(mutex_);
    if (kind == "job") jobs_.push_back(std::move(json));
  }
  [[nodiscard]] std::vector<std::string> jobs() const {
    const std::scoped_lock lock(mutex_);
    return jobs_;
  }

 private:
  mutable std::mutex mutex_{};
  std::vector<std::string> jobs_{};
};

struct outbox_api_options {
  std::string url = "memory:";
  std::size_t lanes = 1;
  /// Null: the clock of the machine.
  std::shared_ptr<const holdfast::clock> clock{};
  outbox_quota quota{};
  bool create_schema = false;
};

class outbox_api {
 public:
  explicit outbox_api(const outbox_api_options& options = {})
      : database_(open(options.url, {.clock = options.clock})) {
    shared.clock = options.clock ? options.clock : system_clock();
    shared.audit = &audit;
    shared.events = &events;
    jobs = std::make_unique<detail::serve::job_runner>(detail::serve::job_runner_options{
        .clock = shared.clock, .audit = &audit, .events = &events});
    shared.jobs = jobs.get();
    for (const std::string name : {"orders", "mails"}) {
      outbox_options settings{.prefix = "{api:" + name + "}",
                              .lanes = options.lanes,
                              .quota = options.quota,
                              .create_schema = options.create_schema};
      shared.outboxes.push_back({.name = name,
                                 .url = options.url,
                                 .database = database_,
                                 .outbox = database_.outbox(settings),
                                 .options = settings});
    }
    polls = std::make_unique<detail::serve::claim_polls>(shared);
    detail::serve::add_outbox_endpoints(table_, shared, *polls);
    detail::serve::add_job_endpoints(table_, shared);
    server = std::make_unique<api_server>(table_);
  }
  ~outbox_api() {
    // In the order of the server: the polls are answered before the connections end.
    jobs.reset();
    polls->drain();
  }
  outbox_api(const outbox_api&) = delete;
  outbox_api& operator=(const outbox_api&) = delete;

  [[nodiscard]] const outbox& orders() const { return shared.outboxes.front().outbox; }

  /// Of a caller without limits: `app`, `operator`, `viewer` or `admin`.
  detail::serve::client_response send(std::string_view method, const std::string& path,
                                      std::string_view bearer, const std::string& body = {}) {
    return server->send(method, "/v1/outboxes/orders" + path, bearer, body);
  }
  static nlohmann::json json(const detail::serve::client_response& response) {
    return response.body.empty() ? nlohmann::json() : nlohmann::json::parse(response.body);
  }

 private:
  database database_;
  detail::serve::endpoint_table table_{};

 public:
  kept_audit audit{};
  kept_events events{};
  std::unique_ptr<detail::serve::job_runner> jobs{};
  detail::serve::services shared{};
  std::unique_ptr<detail::serve::claim_polls> polls{};
  std::unique_ptr<api_server> server{};
};

}  // namespace holdfast::test
