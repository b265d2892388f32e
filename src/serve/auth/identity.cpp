#include "serve/auth/identity.hpp"

#include <holdfast/error.hpp>

#include "base/thread.hpp"
#include "serve/auth/state_tables.hpp"

#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

constexpr auto full_reload_interval = std::chrono::seconds(60);
constexpr auto cleaning_interval = std::chrono::hours(1);
constexpr auto link_life = std::chrono::minutes(10);
constexpr auto first_token_life = std::chrono::hours(24);
constexpr const char* first_token_name = "first-start";

std::string state_url_of(const identity_options& options) {
  return options.state_url.empty() ? default_state_url(true) : options.state_url;
}

std::shared_ptr<const holdfast::clock> clock_of(const identity_options& options) {
  return options.clock ? options.clock : system_clock();
}

}  // namespace

identity::identity(identity_options options)
    : clock_(clock_of(options)),
      log_(std::make_shared<const logger>(options.log, log_limiter::options{.clock = clock_})),
      metrics_(isolate(options.metrics)),
      refresh_interval_(options.refresh_interval),
      https_(options.rules.https),
      database_({.url = state_url_of(options),
                 .password = options.state_password,
                 .clock = clock_,
                 .log = log_,
                 .timeout = options.database_timeout}),
      requests_(std::move(options.rules), tokens_, sessions_, clock_),
      audit_({.clock = clock_,
              .log = log_,
              .metrics = metrics_,
              .on_entry =
                  [this] {
                    {
                      const std::scoped_lock lock(mutex_);
                      audit_waits_ = true;
                    }
                    wake_.notify_all();
                  }}),
      available_(metrics_->gauge("holdfast_serve_state_available", {},
                                 "Whether the state database of the server works: 1 or 0")) {
  database_.add_tables(identity_tables());
  try {
    reload();
  } catch (const error&) {  // NOLINT(bugprone-empty-catch)
    // Logged, and repeated in the background.
  }
  thread_ = start_quiet_thread("hf-state", [this] { run(); });
}

/// Returns false if the audit log could not be written.
bool identity::write_audit() {
  try {
    audit_.write_queue(database_);
    set_problem(write_problem_, std::nullopt);
    return true;
  } catch (const std::exception& failure) {
    set_problem(write_problem_, failure.what());
    return false;
  }
}

/// Work that the next run repeats.
template <class Work>
void identity::attempt(const char* id, Work&& work) {
  try {
    work();
  } catch (const std::exception& failure) {
    log_->write_limited(id, log_level::warning, "the state database refused some housekeeping",
                        {{"work", id}, {"reason", failure.what()}});
  }
}

identity::~identity() { (void)finish(); }

bool identity::finish() {
  {
    const std::scoped_lock lock(mutex_);
    if (std::exchange(stopping_, true)) return audit_.is_empty();
  }
  wake_.notify_all();
  thread_.join();
  (void)write_audit();
  attempt("state.uses", [this] { store_uses(); });
  if (audit_.is_empty()) return true;
  log_->write(log_level::error,
              "entries of the audit log are lost, because the state database does not work");
  return false;
}

void identity::set_problem(std::optional<std::string>& part, std::optional<std::string> problem) {
  const std::scoped_lock lock(mutex_);
  if (problem && part != problem)
    log_->write(log_level::error,
                "the state database does not work: known tokens stay valid until they expire, and "
                "no client can sign in",
                {{"database", database_.shown_url()}, {"reason", *problem}});
  if (!problem && part) log_->write(log_level::info, "the state database works again");
  part = std::move(problem);
  available_->set(read_problem_ || write_problem_ ? 0 : 1);
}

std::optional<std::string> identity::problem() const {
  const std::scoped_lock lock(mutex_);
  return read_problem_ ? read_problem_ : write_problem_;
}

/// Reads the tables, if another process or another thread changed them.
void identity::refresh(bool all) {
  const std::scoped_lock refreshing(refresh_mutex_);
  try {
    database_.check_file();
    std::int64_t change_count = 0;
    {
      auto session = database_.read("state.changes");
      change_count = read_change_count(session);
    }
    // Read before the tables: a change meanwhile is read again.
    if (all || change_count_ != change_count) {
      tokens_.load(database_);
      sessions_.load(database_);
      change_count_ = change_count;
    }
    set_problem(read_problem_, std::nullopt);
  } catch (const error& failure) {
    set_problem(read_problem_, failure.what());
    throw;
  }
}

void identity::reload() { refresh(true); }

void identity::store_uses() {
  tokens_.store_uses(database_);
  sessions_.store_uses(database_);
}

void identity::forget_old_rows() {
  auto session = database_.write("state.clean");
  const auto now = clock_->now();
  forget_old_tokens(session, now);
  session_table::forget_old_sessions(session, now);
  forget_old_audit(session, now);
}

void identity::run() {
  using steady = std::chrono::steady_clock;
  auto next_refresh = steady::now() + refresh_interval_;
  auto next_reload = steady::now() + full_reload_interval;
  auto next_cleaning = steady::now();
  bool writes = true;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      // A database that fails is not tried again for each entry.
      wake_.wait_until(lock, next_refresh, [&] { return stopping_ || (audit_waits_ && writes); });
      if (stopping_) return;
      audit_waits_ = false;
    }
    writes = write_audit();
    const auto now = steady::now();
    if (now < next_refresh) continue;
    const bool all = now >= next_reload;
    if (all) attempt("state.uses", [this] { store_uses(); });
    // Failures are logged as a problem.
    try {
      refresh(all);
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
    }
    if (now >= next_cleaning) attempt("state.clean", [this] { forget_old_rows(); });
    next_refresh = now + refresh_interval_;
    if (all) next_reload = now + full_reload_interval;
    if (now >= next_cleaning) next_cleaning = now + cleaning_interval;
  }
}

std::optional<first_credentials> identity::create_first_credentials(const std::string& base_url) {
  reload();
  if (tokens_.has_usable(clock_->now())) return std::nullopt;
  first_credentials credentials;
  try {
    credentials.token =
        add_token(database_,
                  {.name = first_token_name, .role = role::admin, .lifetime = first_token_life})
            .secret;
  } catch (const error& problem) {
    // Another process starts on the same database, and shows its credentials.
    if (problem.code() != errc::duplicate) throw;
    return std::nullopt;
  }
  reload();
  if (!base_url.empty()) credentials.link = base_url + "/#sign-in=" + make_link_secret();
  audit_.record({.caller = "server",
                 .action = "token.add",
                 .subject = first_token_name,
                 .count = 1,
                 .result = "done"});
  return credentials;
}

std::string identity::make_link_secret() {
  auto secret = random_secret();
  const std::scoped_lock lock(mutex_);
  link_ = sha256(secret);
  link_end_ = clock_->now() + link_life;
  return secret;
}

bool identity::use_sign_in_link(std::string_view secret) {
  const auto digest = sha256(secret);
  const std::scoped_lock lock(mutex_);
  if (!link_ || clock_->now() >= link_end_ || !equal_in_constant_time(*link_, digest)) return false;
  link_.reset();
  return true;
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
