#include "serve/server.hpp"

#include <holdfast/error.hpp>

#include "base/deadline.hpp"
#include "net/tls.hpp"
#include "serve/access_log.hpp"
#include "serve/api/endpoint_table.hpp"
#include "serve/api/endpoints.hpp"
#include "serve/api/server_endpoints.hpp"
#include "serve/certificate_metrics.hpp"
#include "serve/http_metrics.hpp"
#include "serve/open_services.hpp"
#include "serve/readiness.hpp"
#include "serve/readiness_metrics.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <ranges>
#include <thread>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

using steady = std::chrono::steady_clock;

/// Until the endpoints exist. What one of them takes must get 503, and not 413, which a client does
/// not repeat.
constexpr std::uint64_t body_at_start = std::uint64_t{16} << 20U;
/// Long polls, streams and the queue of the workers wait; more connections cannot.
constexpr std::size_t waiting_beside_the_queue = 4096;
constexpr std::size_t most_loops = 4;
/// The transport closes connections before the workers and parts have used up the time.
constexpr std::chrono::milliseconds time_to_close{500};

/// Keys that `reload` applies.
bool is_reloaded(std::string_view key) {
  return key.starts_with("serve.tls.") || key.starts_with("serve.clients.") ||
         key.starts_with("gateway.routes.") || key == "serve.names" || key == "serve.label";
}

/// The keys that differ and are not applied.
std::vector<std::string> keys_for_restart(const std::vector<config::effective_value>& before,
                                          const std::vector<config::effective_value>& after) {
  std::vector<std::string> keys;
  const auto add_missing = [&](const auto& these, const auto& others) {
    for (const auto& value : these) {
      const bool same = std::ranges::any_of(others, [&](const config::effective_value& other) {
        return other.key == value.key && other.value == value.value;
      });
      if (!same && !is_reloaded(value.key) && std::ranges::find(keys, value.key) == keys.end())
        keys.push_back(value.key);
    }
  };
  add_missing(after, before);
  add_missing(before, after);
  return keys;
}

/// The values of `before`, with those of `after` for the keys that `reload` applies. What was not
/// applied stays as it was, and is named after the next reload, too.
std::vector<config::effective_value> with_reloaded(
    const std::vector<config::effective_value>& before,
    const std::vector<config::effective_value>& after) {
  std::vector<config::effective_value> merged;
  std::size_t end_of_reloaded = 0;
  for (const auto& value : before) {
    const auto it = std::ranges::find(after, value.key, &config::effective_value::key);
    if (!is_reloaded(value.key)) merged.push_back(value);
    else if (it != after.end()) merged.push_back(*it);
    if (is_reloaded(value.key)) end_of_reloaded = merged.size();
  }
  for (const auto& value : after) {
    const bool is_new =
        std::ranges::find(before, value.key, &config::effective_value::key) == before.end();
    if (is_new && is_reloaded(value.key))
      merged.insert(merged.begin() + static_cast<std::ptrdiff_t>(end_of_reloaded++), value);
  }
  return merged;
}

std::shared_ptr<const net::tls_server_context> make_tls(const net::tls_server_options& options) {
  if (options.certificate.empty()) return nullptr;
  return std::make_shared<const net::tls_server_context>(options);
}

}  // namespace

struct server::state {
  config::server_config config{};
  std::mutex effective_mutex{};  // of config.effective, which a worker reads
  std::vector<std::unique_ptr<server_part>> parts{};
  opened_services opened{};
  readiness ready{};
  endpoint_table table{};
  std::shared_ptr<const net::tls_server_context> tls{};
  std::unique_ptr<access_log> log_file{};
  std::unique_ptr<http_metrics> counters{};
  std::unique_ptr<readiness_metrics> readiness_gauges{};
  std::unique_ptr<api_dispatcher> dispatcher{};
  /// Null until everything is open.
  std::atomic<api_dispatcher*> target = nullptr;
  std::unique_ptr<http_server> transport{};
  bool stopped = false;

  void listen(bool use_inherited);
  void open(const log_sink& log);
  void dispatch(const server_request& request, responder answer);
  [[nodiscard]] std::vector<std::string> problems_of_parts() const;
  void check_tokens() const;
  [[nodiscard]] std::size_t worker_count() const;
  [[nodiscard]] std::string metrics_text();
  std::vector<std::string> finish(steady::time_point deadline);
};

/// Until the databases are open.
void server::state::dispatch(const server_request& request, responder answer) {
  if (auto* const ready_target = target.load(std::memory_order_acquire)) {
    ready_target->dispatch(request, std::move(answer));
    return;
  }
  auto refusal = problem_response(503, "the server is starting");
  refusal.fields.add("Retry-After", "1");
  answer.answer(std::move(refusal));
}

void server::state::listen(bool use_inherited) {
  const auto processors = std::max<std::size_t>(1, std::thread::hardware_concurrency());
  tls = make_tls(config.tls);
  if (tls) show_certificate(*opened.shared.metrics, "api", *tls);
  server_options options{
      .listen = config.listen,
      .use_inherited = use_inherited,
      .tls = tls.get(),
      .loops = config.loops != 0 ? config.loops : std::min(most_loops, processors),
      .head_timeout = config.head_timeout,
      .idle_timeout = config.idle_timeout,
      .max_connections = config.connections,
      .max_connections_per_address = config.connections_per_address,
      .max_waiting = config.queue + waiting_beside_the_queue,
      .max_body = [this](std::string_view method, std::string_view path) -> std::uint64_t {
        const auto* const ready_target = target.load(std::memory_order_acquire);
        return ready_target != nullptr ? ready_target->max_body(method, path) : body_at_start;
      }};
  transport = std::make_unique<http_server>(
      std::move(options), [this](const server_request& request, responder answer) {
        dispatch(request, std::move(answer));
      });
}

std::vector<std::string> server::state::problems_of_parts() const {
  std::vector<std::string> problems;
  for (const auto& part : parts) {
    if (auto problem = part->problem()) problems.push_back(*std::move(problem));
  }
  return problems;
}

/// A server that other machines reach, and that admits none of them, is a mistake.
void server::state::check_tokens() const {
  if (std::ranges::all_of(transport->addresses(), config::is_local_address)) return;
  for (const auto& part : parts) {
    if (part->has_token() == false)
      throw error(errc::invalid_argument,
                  "other machines can reach this server, but there is no token; make one with: "
                  "holdfast serve token add" +
                      config::state_arguments(config));
  }
}

/// Each database that hangs holds as many workers as call_limit lets it.
std::size_t server::state::worker_count() const {
  if (config.workers != 0) return config.workers;
  const auto databases =
      config.stores.size() + config.outboxes.size() + (config.sequences ? 1U : 0U);
  return call_limit::default_most * (databases + 1);
}

std::string server::state::metrics_text() {
  counters->update(transport->counts(), dispatcher->counts(),
                   log_file ? log_file->dropped() : std::uint64_t{0});
  readiness_gauges->update(ready.missing());
  if (opened.shared.engine) opened.shared.engine->report();
  return opened.shared.metrics->text();
}

void server::state::open(const log_sink& log) {
  auto& shared = opened.shared;
  open_services(config, opened);
  for (const auto& part : parts) part->attach(shared);
  check_tokens();
  add_server_endpoints(
      table, {.hung_loops = [this] { return transport->hung_loops(std::chrono::seconds(1)); },
              .missing = [this] { return ready.missing(); },
              .metrics = [this] { return metrics_text(); },
              .configuration =
                  [this] {
                    const std::scoped_lock lock(effective_mutex);
                    return config.effective;
                  },
              .file = config.file});
  add_endpoints(table, shared);
  authenticator* identity = nullptr;
  for (const auto& part : parts) {
    part->add_endpoints(table, shared);
    if (identity == nullptr) identity = part->identity();
  }
  if (identity == nullptr) throw error(errc::internal, "no part identifies callers");
  if (!config.access_log.empty())
    log_file = std::make_unique<access_log>(config.access_log, shared.clock);
  counters = std::make_unique<http_metrics>(shared.metrics);
  readiness_gauges = std::make_unique<readiness_metrics>(shared.metrics);
  dispatcher = std::make_unique<api_dispatcher>(
      table, *identity,
      dispatcher_options{.threads = worker_count(),
                         .queue = config.queue,
                         .on_answer =
                             [this](const answered_request& request) {
                               counters->add(request);
                               if (log_file) log_file->add(request);
                             },
                         .log = log});
  dispatcher->set_hosts(host_names(transport->addresses(), config.names));
  for (const auto& part : parts) part->start(transport->addresses());
  ready.start(shared, [this] { return problems_of_parts(); });
  target.store(dispatcher.get(), std::memory_order_release);
}

/// Ends what runs, from the connections down to the databases.
std::vector<std::string> server::state::finish(steady::time_point deadline) {
  std::vector<std::string> remaining;
  const auto add_count = [&](std::size_t count, const char* noun) {
    if (count > 0) remaining.push_back(std::to_string(count) + " " + noun);
  };
  for (const auto& part : parts) part->drain();
  const auto time_left = std::chrono::duration_cast<std::chrono::milliseconds>(
      deadline - steady::now() - time_to_close);
  add_count(transport->stop(std::max(time_left, std::chrono::milliseconds(0))),
            "connections without their answer");
  add_count(dispatcher ? dispatcher->close(deadline) : 0, "requests");
  add_count(opened.shared.databases->close(deadline), "questions to databases");
  if (!ready.stop(steady::now() + std::chrono::milliseconds(50)))
    remaining.emplace_back("a check of a database");
  for (const auto& part : std::views::reverse(parts)) {
    for (auto& text : part->finish(deadline)) remaining.push_back(std::move(text));
  }
  opened.cleanup.reset();
  if (opened.shared.engine) {
    const auto report = opened.shared.engine->close(deadline);
    add_count(report.unsaved, "answers that are not saved");
    add_count(report.still_running.size(), "points with running calls");
  }
  return remaining;
}

server::server(server_setup setup) : state_(std::make_unique<state>()) {
  config::check_config(setup.config);
  auto& shared = state_->opened.shared;
  shared.clock = setup.clock ? setup.clock : system_clock();
  shared.log = setup.log;
  shared.metrics = setup.metrics ? setup.metrics : make_prometheus_registry(series_limits);
  state_->config = std::move(setup.config);
  state_->parts = std::move(setup.parts);
  state_->listen(setup.use_inherited);
  if (setup.on_listening) setup.on_listening();
  state_->open(setup.log);
}

server::~server() {
  if (!state_ || state_->stopped) return;
  try {
    (void)stop(std::chrono::milliseconds(0));
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
    // No memory: the parts end in their destructors.
  }
}

const std::vector<std::string>& server::addresses() const noexcept {
  return state_->transport->addresses();
}

std::vector<std::string> server::missing() const { return state_->ready.missing(); }
bool server::has_started() const { return state_->ready.has_started(); }
services& server::shared() noexcept { return state_->opened.shared; }
void server::begin_drain() noexcept {
  state_->ready.begin_drain();
  state_->transport->begin_drain();
}

std::vector<std::string> server::reload(config::server_config fresh) {
  config::check_config(fresh);
  auto tls = make_tls(fresh.tls);
  for (const auto& part : state_->parts) part->prepare_reload(fresh);
  if (state_->log_file) state_->log_file->reopen();
  const auto changed = keys_for_restart(state_->config.effective, fresh.effective);
  if (tls) {
    show_certificate(*state_->opened.shared.metrics, "api", *tls);
    state_->transport->set_tls(std::move(tls));
  }
  state_->dispatcher->set_hosts(host_names(state_->transport->addresses(), fresh.names));
  {
    const std::scoped_lock lock(state_->effective_mutex);
    state_->config.effective = with_reloaded(state_->config.effective, fresh.effective);
  }
  for (const auto& part : state_->parts) part->reload(fresh);
  return changed;
}

std::vector<std::string> server::stop(std::chrono::milliseconds grace) {
  if (std::exchange(state_->stopped, true)) return {};
  state_->ready.begin_drain();
  auto remaining = state_->finish(steady::now() + grace);
  // A thread that waits for a database still refers to the objects.
  if (!remaining.empty()) {
    // Never destroyed, also not at the end of the process.
    static auto* const abandoned = new std::vector<std::unique_ptr<state>>;
    abandoned->push_back(std::move(state_));
  }
  return remaining;
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
