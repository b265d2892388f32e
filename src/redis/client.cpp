// The client: sends the requests of a call in rounds. A round groups the waiting requests by node,
// one exchange for each, and ends when a request must be sent again. A call of one command to one
// node that answers is a single round with a single exchange.

#include <holdfast/key/redis.hpp>
#include <holdfast/redis.hpp>

#include "base/backoff.hpp"
#include "base/duration_limit.hpp"
#include "base/fork_detector.hpp"
#include "base/local_host.hpp"
#include "net/address.hpp"
#include "net/tls.hpp"
#include "redis/counters.hpp"
#include "redis/exchange.hpp"
#include "redis/master_locator.hpp"
#include "redis/node_pool.hpp"
#include "redis/pipeline.hpp"
#include "redis/probe.hpp"
#include "redis/settings.hpp"
#include "redis/topology.hpp"

#include <algorithm>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::redis {

namespace {

constexpr std::size_t standalone_attempts = 2;
/// With several addresses. A search for the master may have to wait for the pause after the last
/// one.
constexpr std::size_t several_addresses_attempts = 4;
/// Time that a silent node gets to answer a question before the next one is asked as well.
constexpr auto next_node_delay = std::chrono::milliseconds(250);
/// Silence of a master before the Sentinels are asked whether it still is the master.
constexpr auto silent_master_delay = std::chrono::seconds(1);

/// Counts a call while it runs.
class call_timer {
 public:
  call_timer(counters& counted, std::size_t commands) : counters_(counted) {
    ++counters_.calls;
    counters_.commands += commands;
    counters_.in_flight += 1;
  }
  call_timer(const call_timer&) = delete;
  call_timer& operator=(const call_timer&) = delete;
  ~call_timer() {
    counters_.in_flight += -1;
    counters_.add_latency(steady::now() - start_);
  }
  [[nodiscard]] steady::time_point start() const noexcept { return start_; }

 private:
  counters& counters_;
  steady::time_point start_ = steady::now();
};

void refuse_connection_changes(std::span<const command> commands) {
  const auto refused = std::ranges::find_if(commands, &command::changes_connection);
  if (refused == commands.end()) return;
  throw error(errc::invalid_argument, refused->refusal(),
              {.path = "commands[" + std::to_string(refused - commands.begin()) + "]"});
}

}  // namespace

/// What the copies of a client share.
/// Thread-safety: every function may be called from any thread.
class client_state {
 public:
  explicit client_state(settings configured);
  /// Deletes the state. In a child after fork it only closes the child's copies of idle sockets:
  /// threads that the child does not have may hold locks, and the server is connected to the
  /// parent.
  static void destroy(client_state* shared) noexcept;

  [[nodiscard]] std::vector<reply> run(std::span<const command> commands,
                                       const call_options& options);
  [[nodiscard]] std::vector<node> nodes();
  [[nodiscard]] std::string node_of(std::string_view key);
  [[nodiscard]] const settings& configured() const noexcept { return settings_; }
  [[nodiscard]] numbers count() const noexcept { return counters_.read(); }

 private:
  void warn_of_plaintext() const;
  void check_process() const;
  void send_waiting(pipeline& requests, exchange_group& exchanges, steady::time_point deadline);
  [[nodiscard]] const std::string* node_for(const request& sent, const slot_map* map,
                                            const std::string*& any_master);
  void finish(exchange& finished);
  void wait_for_replies(exchange_group& exchanges, steady::time_point wake,
                        steady::time_point deadline);
  [[nodiscard]] steady::time_point begin_round(pipeline& requests,
                                               std::chrono::milliseconds timeout,
                                               steady::time_point deadline);
  void count_outcome(const pipeline_counts& counts, std::span<const reply> replies) noexcept;
  void ask_nodes(node_pools& pools, std::span<const command> question,
                 std::span<const std::string> nodes, steady::time_point deadline,
                 const answer_handler& handler);
  void mark_unresponsive(const std::string& node);
  [[nodiscard]] std::size_t attempts() const noexcept;
  void make_topology();
  void make_locator();

  const settings settings_;
  const std::unique_ptr<const net::tls_context> tls_;
  const fork_detector fork_detector_{};
  counters counters_;
  const logger log_;
  node_pools pools_;
  std::optional<topology> topology_{};  // of a Cluster
  // With Sentinels, or several addresses:
  std::optional<master_locator> locator_{};
  std::optional<settings> sentinel_settings_{};
  std::optional<node_pools> sentinel_pools_{};
};

client_state::client_state(settings configured)
    : settings_(std::move(configured)),
      tls_(settings_.tls ? std::make_unique<const net::tls_context>(settings_.options.tls)
                         : nullptr),
      counters_(settings_.options.metrics),
      log_(settings_.options.log),
      pools_(settings_, tls_.get(), counters_) {
  warn_of_plaintext();
  if (settings_.cluster) make_topology();
  else if (settings_.role == expected_role::master) make_locator();
}

void client_state::make_topology() {
  const auto query = [this](std::span<const std::string> nodes, steady::time_point deadline,
                            const topology::reply_handler& handler) {
    const command slots = command("CLUSTER").arg("SLOTS").idempotent();
    ask_nodes(pools_, {&slots, 1}, nodes, deadline,
              [&](const std::string& node, std::span<const reply> replies) {
                return handler(node, replies.front()) ? next_question::enough : next_question::ask;
              });
  };
  topology_.emplace(settings_, query, counters_);
}

void client_state::make_locator() {
  if (settings_.master_name.empty()) {
    const auto query = [this](std::span<const std::string> nodes, steady::time_point deadline,
                              const answer_handler& handler) {
      const command ping = command("PING").idempotent();
      ask_nodes(pools_, {&ping, 1}, nodes, deadline, handler);
    };
    locator_.emplace(settings_, query, counters_);
    return;
  }
  sentinel_settings_.emplace(sentinel_settings(settings_));
  sentinel_pools_.emplace(*sentinel_settings_, tls_.get(), counters_);
  const auto query = [this](std::span<const std::string> nodes, steady::time_point deadline,
                            const answer_handler& handler) {
    ask_nodes(*sentinel_pools_, sentinel_questions(settings_.master_name), nodes, deadline,
              handler);
  };
  locator_.emplace(settings_, query, counters_);
}

void client_state::destroy(client_state* shared) noexcept {
  if (!shared->fork_detector_.inherited_by_fork()) {
    delete shared;
    return;
  }
  shared->pools_.abandon();
  if (shared->sentinel_pools_) shared->sentinel_pools_->abandon();
}

void client_state::warn_of_plaintext() const {
  if (settings_.tls) return;
  const auto remote = std::ranges::find_if(settings_.addresses, [](const std::string& address) {
    return !is_local_host(net::host_of(address));
  });
  if (remote == settings_.addresses.end()) return;
  log_.write(log_level::warning,
             "the connection to Redis at " + *remote +
                 " is not encrypted: the password and the data can be read and changed in transit; "
                 "set up TLS on the server and use rediss:// (docs/tls.md)");
}

void client_state::check_process() const {
  if (fork_detector_.inherited_by_fork())
    throw error(errc::invalid_argument,
                "this Redis client was created before fork, and its connections belong to the "
                "parent; create a new one in the child");
}

std::vector<reply> client_state::run(std::span<const command> commands,
                                     const call_options& options) {
  check_process();
  if (commands.empty()) return {};
  refuse_connection_changes(commands);
  const call_timer timer(counters_, commands.size());
  const auto timeout =
      options.timeout.count() > 0 ? limit_duration(options.timeout) : settings_.options.timeout;
  const auto deadline = timer.start() + timeout;
  pipeline requests(commands, {.cluster = settings_.cluster,
                               .attempts = attempts(),
                               .node = options.node,
                               .translate = settings_.options.translate});
  exchange_group exchanges(deadline);
  auto send_at = timer.start();
  do {
    const bool has_waiting = !requests.waiting().empty();
    if (has_waiting && steady::now() >= send_at) send_waiting(requests, exchanges, deadline);
    else if (!exchanges.empty() && locator_ && options.node.empty())
      wait_for_replies(exchanges, has_waiting ? send_at : deadline, deadline);
    else if (!exchanges.empty()) exchanges.wait(has_waiting ? send_at : deadline);
    else std::this_thread::sleep_until(send_at);
    exchanges.remove_finished([this](exchange& finished) { finish(finished); });
    // A request that must be sent again does not wait for the replies of other nodes.
    if (requests.waiting().empty() && (requests.has_retries() || exchanges.empty()))
      send_at = begin_round(requests, timeout, deadline);
  } while (!requests.waiting().empty() || !exchanges.empty());
  auto replies = requests.take_replies();
  count_outcome(requests.counts(), replies);
  return replies;
}

std::size_t client_state::attempts() const noexcept {
  if (settings_.cluster || sentinel_pools_) return settings_.options.attempts;
  return locator_ ? several_addresses_attempts : standalone_attempts;
}

/// Waits as `exchange_group::wait` does. A master that is silent may have been replaced: its
/// replies are then not waited for any longer.
void client_state::wait_for_replies(exchange_group& exchanges, steady::time_point wake,
                                    steady::time_point deadline) {
  const auto ask_at = steady::now() + silent_master_delay;
  exchanges.wait(std::min(wake, ask_at));
  if (!sentinel_pools_ || steady::now() < ask_at) return;
  std::shared_ptr<const std::string> master;
  try {
    // NOLINTNEXTLINE(bugprone-unchecked-optional-access): sentinel_pools_ has it
    master = locator_->current(deadline);
  } catch (const error&) {
    return;  // the replies may still arrive
  }
  exchanges.fail_others(
      *master, error(errc::unavailable, "the Sentinels have made " + *master + " the master",
                     {.transient = true}));
}

/// Starts an exchange for each node that a waiting request goes to.
void client_state::send_waiting(pipeline& requests, exchange_group& exchanges,
                                steady::time_point deadline) {
  const auto waiting = requests.take_waiting();
  std::shared_ptr<const slot_map> map;
  std::shared_ptr<const std::string> master;
  if (topology_ || locator_) {
    try {
      if (topology_) {
        map = topology_->current(deadline);
        pools_.remove_absent(*map);
      } else {
        master = locator_->current(deadline);
        pools_.keep_only(*master);
      }
    } catch (const error& problem) {
      for (request* each : waiting) requests.interrupted(*each, false, problem, {});
      return;
    }
  }
  std::list<exchange> started;
  const std::string* any_master = map      ? nullptr
                                  : master ? master.get()
                                           : &settings_.addresses.front();
  for (request* next : waiting) {
    const std::string* node = node_for(*next, map.get(), any_master);
    if (node == nullptr) {
      requests.interrupted(
          *next, false,
          error(errc::unavailable,
                "no node of the Cluster serves the slot " + std::to_string(next->slot.value_or(0)),
                {.backend_code = "CLUSTERDOWN", .transient = true}),
          {});
      continue;
    }
    auto target = std::ranges::find(started, *node, &exchange::node);
    if (target == started.end()) {
      target = started.emplace(started.end(), requests, pools_.get(*node));
      target->requests().reserve(map ? waiting.size() / 2 + 1 : waiting.size());
    }
    target->requests().add(*next);
  }
  exchanges.start(std::move(started));
}

/// Returns the node that a request goes to; null if no node serves its slot. `any_master` is the
/// only master; in a Cluster it is the node for all requests without keys, and is chosen when the
/// first one needs it.
const std::string* client_state::node_for(const request& sent, const slot_map* map,
                                          const std::string*& any_master) {
  if (!sent.node.empty()) return &sent.node;
  if (map == nullptr) return any_master;
  if (sent.slot) return map->master_of(*sent.slot);
  if (any_master == nullptr) {
    auto index = thread_random()() % map->nodes().size();
    while (!map->nodes()[index].master && index > 0) --index;
    any_master = &map->nodes()[index].address;
  }
  return any_master;
}

/// Reports the outcome of an exchange to its requests, the topology, the counters and the log.
void client_state::finish(exchange& finished) {
  auto& requests = finished.requests();
  const bool connected = finished.connected();
  if (connected) counters_.whole_scripts += requests.script_texts();
  // Outside a Cluster no redirect says that another server has become the master. The name may lead
  // to it already, but only for new connections.
  if (connected && !topology_ && requests.met_replica()) {
    finished.connection()->discard();
    finished.connection().pool().close_idle();
    if (locator_) locator_->mark_stale(finished.node());
  }
  if (const error* problem = finished.problem()) {
    if (topology_) topology_->mark_unresponsive(finished.node());
    if (locator_) locator_->mark_stale(finished.node());
    log_.write_limited(connected ? "redis.lost" : "redis.connect", log_level::warning,
                       problem->what());
  }
  requests.settle(finished.problem());
}

/// Makes the requests that must be sent again waiting, or settles them if there is no time left.
/// Returns when to send them.
steady::time_point client_state::begin_round(pipeline& requests, std::chrono::milliseconds timeout,
                                             steady::time_point deadline) {
  const auto round = requests.next_round();
  if (topology_) {
    for (const auto& moved : round.moved) topology_->move_slot(moved.slot, moved.address);
    if (round.refresh) topology_->mark_stale();
  }
  auto send_at = steady::now();
  if (requests.waiting().empty()) return send_at;
  if (round.pause.count() > 0) send_at += with_jitter(round.pause, thread_random());
  if (send_at >= deadline)
    requests.give_up(error(errc::timeout,
                           "Redis did not answer within " + std::to_string(timeout.count()) + " ms",
                           {.transient = true}));
  return send_at;
}

void client_state::count_outcome(const pipeline_counts& counts,
                                 std::span<const reply> replies) noexcept {
  counters_.moved += counts.moved;
  counters_.asked += counts.asked;
  counters_.retried += counts.retried;
  counters_.resent += counts.resent;
  counters_.in_doubt += counts.in_doubt;
  for (const auto& answer : replies) {
    if (answer.is_error()) ++counters_.errors[static_cast<std::size_t>(answer.problem().code())];
  }
}

/// Sends a question to one node after the other, until the handler has enough. A silent node is not
/// waited for: after a delay the next one is asked in parallel.
void client_state::ask_nodes(node_pools& pools, std::span<const command> question,
                             std::span<const std::string> nodes, steady::time_point deadline,
                             const answer_handler& handler) {
  // If the time is short, every node gets an equal share of the first half of it.
  const auto share =
      (deadline - steady::now()) / static_cast<steady::duration::rep>(2 * nodes.size() + 1);
  const auto delay = std::clamp<steady::duration>(share, steady::duration::zero(), next_node_delay);
  std::list<pipeline> queries;  // one for each node that was asked
  exchange_group exchanges(deadline);
  auto next_at = steady::now();
  while ((queries.size() < nodes.size() || !exchanges.empty()) && steady::now() < deadline) {
    if (queries.size() < nodes.size() && (exchanges.empty() || steady::now() >= next_at)) {
      const auto& node = nodes[queries.size()];
      auto& query = queries.emplace_back(question, pipeline_rules{.attempts = 1, .node = node});
      std::list<exchange> started;
      started.emplace_back(query, pools.get(node)).requests().add(query.at(0));
      exchanges.start(std::move(started));
      next_at = steady::now() + delay;
    } else {
      exchanges.wait(queries.size() < nodes.size() ? next_at : deadline);
    }
    auto next = next_question::ask;
    exchanges.remove_finished([&](exchange& finished) {
      finish(finished);
      if (next == next_question::enough) return;
      const auto verdict = handler(finished.node(), finished.requests().front().replies);
      if (verdict != next_question::ask) next = verdict;
    });
    if (next == next_question::more) deadline = std::min(deadline, steady::now() + next_node_delay);
    if (next != next_question::enough) continue;
    // Nodes that did not answer before are asked last the next time.
    for (const auto& slower : exchanges.running()) mark_unresponsive(slower.node());
    return;
  }
  for (const auto& silent : exchanges.running()) mark_unresponsive(silent.node());
}

void client_state::mark_unresponsive(const std::string& node) {
  if (topology_) topology_->mark_unresponsive(node);
  if (locator_) locator_->mark_unresponsive(node);
}

std::vector<node> client_state::nodes() {
  check_process();
  if (locator_)
    return {{.address = *locator_->current(steady::now() + settings_.options.timeout),
             .slots = slot_map::slots}};
  if (!topology_) return {{.address = settings_.addresses.front(), .slots = slot_map::slots}};
  return topology_->refresh(steady::now() + settings_.options.timeout)->nodes();
}

std::string client_state::node_of(std::string_view key) {
  const auto map = topology_ ? topology_->last_known() : nullptr;
  const auto* address = map ? map->master_of(key::redis_slot(key)) : nullptr;
  return address != nullptr ? *address : std::string();
}

}  // namespace HOLDFAST_NAMESPACE::detail::redis

namespace HOLDFAST_NAMESPACE::redis {

using detail::redis::steady;

client::client(std::string_view url, options settings)
    : state_(
          new detail::redis::client_state(detail::redis::read_settings(url, std::move(settings))),
          &detail::redis::client_state::destroy) {}

reply client::call(const command& request, const call_options& options) const {
  auto replies = state_->run({&request, 1}, options);
  replies.front().checked();
  return std::move(replies.front());
}

std::vector<reply> client::pipeline(std::span<const command> commands,
                                    const call_options& options) const {
  return state_->run(commands, options);
}

bool client::is_cluster() const noexcept { return state_->configured().cluster; }

std::vector<node> client::nodes() const { return state_->nodes(); }

std::string client::node_of(std::string_view key) const { return state_->node_of(key); }

std::vector<server_report> client::probe() const {
  std::vector<server_report> reports;
  for (const auto& each : nodes()) reports.push_back(probe(each.address));
  return reports;
}

server_report client::probe(const std::string& node) const {
  const auto commands = detail::redis::probe_commands(is_cluster());
  const auto timed = [](const auto& action) {
    const auto start = steady::now();
    action();
    return steady::now() - start;
  };
  server_report report;
  std::vector<steady::duration> round_trips;
  round_trips.push_back(
      timed([&] { report = detail::redis::read_probe(pipeline(commands, {.node = node})); }));
  for (int i = 0; i < 9; ++i)
    round_trips.push_back(timed([&] { call(command("PING").idempotent(), {.node = node}); }));
  const auto median = round_trips.begin() + 5;
  std::nth_element(round_trips.begin(), median, round_trips.end());
  report.round_trip = std::chrono::duration_cast<std::chrono::microseconds>(*median);
  report.address = node;
  report.encrypted = state_->configured().tls;
  return report;
}

std::optional<error> client::health() const noexcept {
  try {
    call(command("PING").idempotent());
    return std::nullopt;
  } catch (const error& problem) {
    return problem;
  } catch (const std::exception&) {
    return error(errc::unavailable, "not enough memory to send a PING to Redis");
  }
}

numbers client::count() const noexcept { return state_->count(); }

}  // namespace HOLDFAST_NAMESPACE::redis
