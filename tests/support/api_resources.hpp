#pragma once

/// \file
/// The API over HTTP, with a store and sequences that a test chooses.

#include "serve/api/endpoints.hpp"
#include "serve/api/services.hpp"
#include "support/api_server.hpp"
#include "support/virtual_clock.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::test {

/// Keeps `action subject count result caller`.
class recorded_audit final : public detail::serve::audit_log {
 public:
  using audit_log::record;
  void record(detail::serve::audit_entry entry) noexcept override {
    const std::scoped_lock lock(mutex_);
    lines_.push_back(entry.action + " " + entry.subject + " " + std::to_string(entry.count) + " " +
                     entry.result + " " + entry.caller);
  }
  [[nodiscard]] std::vector<std::string> lines() {
    const std::scoped_lock lock(mutex_);
    return lines_;
  }

 private:
  std::mutex mutex_{};
  std::vector<std::string> lines_{};
};

class api_resources {
 public:
  std::shared_ptr<virtual_clock> clock = std::make_shared<virtual_clock>();
  /// The endpoints use the clock of this machine, as databases on servers do.
  bool has_real_clock = false;
  recorded_audit audit{};
  detail::serve::services shared{};
  detail::serve::endpoint_table table{};

  void add_store(const std::string& name, const std::string& url, store_options options = {}) {
    const auto db = open(url, {.clock = clock});
    add_store(name, db, db.store(options), options);
  }
  void add_store(const std::string& name, const database& db, std::shared_ptr<store> entries,
                 store_options options = {}) {
    shared.stores.push_back({.name = name,
                             .url = "memory:",
                             .database = db,
                             .store = std::move(entries),
                             .options = std::move(options)});
  }
  void add_sequences(const std::string& url, sequence_options options = {}) {
    const auto db = open(url);
    shared.sequences.emplace(
        detail::serve::sequence_service{.url = url,
                                        .database = db,
                                        .blocks = db.block_store(options.store),
                                        .options = std::move(options)});
  }

  /// Starts the server at the first call.
  api_server& server() {
    if (!server_) {
      shared.clock = has_real_clock ? system_clock() : clock;
      shared.audit = &audit;
      detail::serve::add_endpoints(table, shared);
      server_ = std::make_unique<api_server>(table);
    }
    return *server_;
  }
  detail::serve::client_response send(std::string_view method, std::string_view target,
                                      std::string_view bearer = "admin", std::string_view body = {},
                                      std::vector<std::pair<std::string, std::string>> fields = {},
                                      std::string_view content_type = "application/json") {
    detail::serve::client_request request{.method = method, .target = target, .body = body};
    for (const auto& [name, value] : fields) request.fields.add(name, value);
    return server().send(std::move(request), bearer, content_type);
  }

 private:
  std::unique_ptr<api_server> server_{};
};

/// Whether the answer is a problem with this status, and its text contains `detail`.
[[nodiscard]] inline bool is_problem(const detail::serve::client_response& answer, int status,
                                     std::string_view detail) {
  return answer.status == status &&
         answer.fields.find("Content-Type") == "application/problem+json" &&
         answer.body.find(detail) != std::string::npos;
}

}  // namespace holdfast::test
