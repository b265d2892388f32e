#include "sql/database.hpp"

#include "base/schemes.hpp"
#include "base/secret.hpp"
#include "sql/connect.hpp"
#include "sql/within_reach.hpp"

#include <string>
#include <utility>

namespace HOLDFAST_NAMESPACE {

namespace {

/// redis://, rediss://, redis+unix://, redis+cluster://, rediss+cluster://: all that the client reads, and what it then refuses.
bool names_redis(std::string_view url) {
  const auto scheme = url.substr(0, url.find(':'));
  return scheme.starts_with("redis");
}

std::shared_ptr<const redis::client> connect_redis([[maybe_unused]] std::string_view url,
                                                   [[maybe_unused]] const database_options& options) {
#if HOLDFAST_HAS_REDIS
  return std::make_shared<const redis::client>(url, redis::options{.user = options.user,
                                                                   .password = options.password,
                                                                   .password_file = options.password_file,
                                                                   .connect_timeout = options.connect_timeout,
                                                                   .timeout = options.statement_timeout,
                                                                   .connections = options.pool.maximum,
                                                                   .log = options.log,
                                                                   .metrics = options.metrics});
#else
  throw error(errc::invalid_argument, "this build of Holdfast has no Redis; build it with -DHOLDFAST_WITH_REDIS=ON", {.path = "url"});
#endif
}

}  // namespace

sql::dialect_id database::state::ask_dialect() {
  {
    const std::scoped_lock lock(mutex);
    if (dialect) return *dialect;
  }
  const auto lease = pool->reader();
  const auto found = options.resolve_dialect ? options.resolve_dialect(*lease) : lease->dialect();
  const std::scoped_lock lock(mutex);
  dialect = found;
  return found;
}

void database::state::refuse_redis(std::string_view what) const {
  if (!redis) return;
  throw error(errc::invalid_argument,
              std::string(what).append(
                  " cannot live on Redis, which keeps sequences and outboxes; open memory:, sqlite:, postgresql:// or mysql://"),
              {.path = "url"});
}

void database::state::say(std::string_view line) const noexcept { log->write(log_level::warning, line); }

std::shared_ptr<executor> database::state::executor() {
  if (options.executor) return options.executor;
  const std::scoped_lock lock(mutex);
  if (!own_executor) own_executor = make_thread_pool({.log = options.log});
  return own_executor;
}

database::state::state(database_options how) : options(std::move(how)) {
  if (!options.clock) options.clock = system_clock();
  options.connect_timeout = sql::within_reach(options.connect_timeout);
  options.statement_timeout = sql::within_reach(options.statement_timeout);
  log = std::make_shared<const logger>(options.log, log_limiter::options{.clock = options.clock});
  metrics = isolate(options.metrics);
}

database::database(sql::connection_factory connect, database_options options) : state_(std::make_shared<state>(std::move(options))) {
  if (!connect) throw error(errc::invalid_argument, "the connection factory is empty");
  state_->pool = std::make_unique<sql::pool>(std::move(connect), state_->options.pool, state_->log);
}

sql::dialect_id database::dialect() const { return state_->pool ? state_->ask_dialect() : sql::dialect_id::unknown; }

database open(std::string_view url, database_options options) {
  check_scheme(url);
  if (!options.password_file.empty() && is_public_file(options.password_file)) {
    logger(options.log)
        .write(log_level::warning, "every user of this machine may read the password file; run: chmod 600 " + options.password_file);
  }
  if (url == "memory:") {
    auto shared = std::make_shared<database::state>(std::move(options));
    return database(std::move(shared));
  }
  if (names_redis(url)) {
    auto again = [url = std::string(url), options] { return connect_redis(url, options); };
    auto client = again();
    wipe(options.password);  // the client has it
    auto shared = std::make_shared<database::state>(std::move(options));
    shared->redis = std::move(client);
    shared->connect_redis = std::move(again);
    return database(std::move(shared));
  }
  auto connect = sql::connector(url, options);
  wipe(options.password);  // the connector has it
  return {std::move(connect), std::move(options)};
}

}  // namespace HOLDFAST_NAMESPACE
