#pragma once

/// \file
/// What the endpoints work on: the databases of the configuration, and the parts of the server that
/// endpoints share.

#include <holdfast/clock.hpp>
#include <holdfast/database.hpp>
#include <holdfast/failover/engine.hpp>
#include <holdfast/log.hpp>
#include <holdfast/metrics.hpp>
#include <holdfast/outbox.hpp>
#include <holdfast/version.hpp>

#include "serve/api/call_limit.hpp"
#include "serve/api/database_pool.hpp"
#include "serve/api/question_gate.hpp"
#include "serve/auth/audit.hpp"
#include "serve/live/event_sink.hpp"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve {

class identity;
class job_runner;
class served_ages;

/// `[stores.main]` of the configuration.
struct store_service {
  std::string name{};
  /// Without its password.
  std::string url{};
  holdfast::database database;
  std::shared_ptr<holdfast::store> store{};
  store_options options{};
};

/// `[outboxes.orders]` of the configuration.
struct outbox_service {
  std::string name{};
  std::string url{};
  holdfast::database database;
  holdfast::outbox outbox;
  outbox_options options;
  /// For calls of workers that may wait for the database.
  std::shared_ptr<call_limit> calls = std::make_shared<call_limit>();
};

/// `[sequences]` of the configuration.
struct sequence_service {
  std::string url{};
  holdfast::database database;
  std::shared_ptr<holdfast::block_store> blocks{};
  /// Of every sequence.
  sequence_options options{};
};

/// Lives as long as the server. The vectors do not change after the start.
/// Thread-safety: everything in it may be used from any thread.
struct services {
  std::string label{};
  std::vector<store_service> stores{};
  std::vector<outbox_service> outboxes{};
  std::optional<sequence_service> sequences{};
  /// Points, on the first store. Null if there is no store.
  std::shared_ptr<holdfast::engine> engine{};
  /// Decisions of the engine; see api/decision_recorder.hpp. Null if there is no engine.
  std::shared_ptr<decision_log> decisions{};
  /// How old the kept answers are that its points serve. Null if there is no engine.
  std::shared_ptr<served_ages> ages{};
  /// The names in [failover.points], which exist from the start.
  std::vector<std::string> point_names{};
  std::shared_ptr<const holdfast::clock> clock{};
  log_sink log{};
  std::shared_ptr<prometheus_registry> metrics{};
  identity* auth = nullptr;
  audit_log* audit = nullptr;
  event_sink* events = nullptr;
  job_runner* jobs = nullptr;
  /// For endpoints that scan a database.
  std::shared_ptr<question_gate> questions = std::make_shared<question_gate>();
  /// For endpoints that ask several databases. The last member: its questions use the others.
  std::shared_ptr<database_pool> databases = std::make_shared<database_pool>();

  /// Throw errc::not_found, with the names that there are.
  [[nodiscard]] store_service& find_store(std::string_view name);
  [[nodiscard]] outbox_service& find_outbox(std::string_view name);
  [[nodiscard]] sequence_service& find_sequences();
  /// Throws errc::internal if there is none.
  [[nodiscard]] identity& find_identity();
};

}  // namespace HOLDFAST_NAMESPACE::detail::serve
