// holdfast::open: chooses the backend by the URL.

#include "database/database.hpp"

#include "base/duration_limit.hpp"
#include "base/schemes.hpp"
#include "base/secret.hpp"
#include "sql/connect.hpp"

#include <string>
#include <utility>

namespace HOLDFAST_NAMESPACE {

namespace {

/// Returns true for every scheme that begins with `redis`. The client refuses unknown ones.
bool is_redis_url(std::string_view url) {
  const auto scheme = url.substr(0, url.find(':'));
  return scheme.starts_with("redis");
}

std::shared_ptr<const redis::client> connect_redis(
    [[maybe_unused]] std::string_view url, [[maybe_unused]] const database_options& options) {
#if HOLDFAST_HAS_REDIS
  return std::make_shared<const redis::client>(
      url, redis::options{.user = options.user,
                          .password = options.password,
                          .password_file = options.password_file,
                          .connect_timeout = options.connect_timeout,
                          .timeout = options.statement_timeout,
                          .connections = options.pool.maximum,
                          .log = options.log,
                          .metrics = options.metrics});
#else
  throw error(errc::invalid_argument,
              "this build of Holdfast has no Redis; build it with -DHOLDFAST_WITH_REDIS=ON",
              {.path = "url"});
#endif
}

}  // namespace

void database::state::refuse_redis(std::string_view feature) const {
  if (!redis) return;
  throw error(
      errc::invalid_argument,
      std::string(feature).append(" cannot live on Redis, which keeps sequences and outboxes; "
                                  "open memory:, sqlite:, postgresql:// or mysql://"),
      {.path = "url"});
}

std::shared_ptr<executor> database::state::executor() {
  if (options.executor) return options.executor;
  const std::scoped_lock lock(mutex);
  if (!own_executor) own_executor = make_thread_pool({.log = options.log});
  return own_executor;
}

database::state::state(database_options settings) : options(std::move(settings)) {
  if (!options.clock) options.clock = system_clock();
  options.connect_timeout = detail::limit_duration(options.connect_timeout);
  options.statement_timeout = detail::limit_duration(options.statement_timeout);
  log = std::make_shared<const logger>(options.log, log_limiter::options{.clock = options.clock});
  metrics = isolate(options.metrics);
}

void database::state::use_sql(sql::connection_factory connect,
                              std::optional<sql::dialect_id> expected_dialect) {
  // A function of the application determines the dialect.
  if (options.resolve_dialect) expected_dialect.reset();
  sql = std::make_shared<sql::context>(
      std::move(connect), sql::context_options{.pool = options.pool,
                                               .statement_timeout = options.statement_timeout,
                                               .resolve_dialect = options.resolve_dialect,
                                               .expected_dialect = expected_dialect,
                                               .clock = options.clock,
                                               .log = log});
}

database::database(sql::connection_factory connect, database_options options)
    : state_(std::make_shared<state>(std::move(options))) {
  if (!connect) throw error(errc::invalid_argument, "the connection factory is empty");
  state_->use_sql(std::move(connect), {});
}

sql::dialect_id database::dialect() const {
  return state_->sql ? state_->sql->dialect() : sql::dialect_id::unknown;
}

database open(std::string_view url, database_options options) {
  detail::check_scheme(url);
  if (!options.password_file.empty() && detail::is_public_file(options.password_file)) {
    logger(options.log)
        .write(log_level::warning,
               "every user of this machine may read the password file; run: chmod 600 " +
                   options.password_file);
  }
  if (url == "memory:") {
    auto shared = std::make_shared<database::state>(std::move(options));
    return database(std::move(shared));
  }
  if (is_redis_url(url)) {
    auto client = connect_redis(url, options);
    detail::wipe(options.password);  // the client has it
    auto shared = std::make_shared<database::state>(std::move(options));
    shared->redis = std::move(client);
    return database(std::move(shared));
  }
  auto connect = detail::sql::connector(url, {.connect_timeout = options.connect_timeout,
                                              .statement_timeout = options.statement_timeout,
                                              .keepalive = options.pool.keepalive,
                                              .user = options.user,
                                              .password = options.password,
                                              .password_file = options.password_file});
  detail::wipe(options.password);  // the connector has it
  auto shared = std::make_shared<database::state>(std::move(options));
  shared->use_sql(std::move(connect), detail::sql::dialect_of_url(url));
  return database(std::move(shared));
}

}  // namespace HOLDFAST_NAMESPACE
