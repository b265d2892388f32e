#include <holdfast/redis.hpp>

#include "base/local_host.hpp"
#include "redis/address.hpp"
#include "redis/client_state.hpp"
#include "redis/probe.hpp"

#include <algorithm>
#include <thread>
#include <utility>

namespace HOLDFAST_NAMESPACE::redis {

namespace {

/// Counts a call for as long as it runs.
class running_call {
 public:
  running_call(counters& in, std::size_t commands) : in_(in) {
    ++in_.calls;
    in_.commands += commands;
    in_.in_flight += 1;
  }
  running_call(const running_call&) = delete;
  running_call& operator=(const running_call&) = delete;
  ~running_call() {
    in_.in_flight += -1;
    in_.add_latency(steady::now() - began_);
  }
  [[nodiscard]] steady::time_point began() const noexcept { return began_; }

 private:
  counters& in_;
  steady::time_point began_ = steady::now();
};

constexpr std::size_t standalone_attempts = 2;

void refuse_unsendable(std::span<const command> commands) {
  const auto found = std::find_if(commands.begin(), commands.end(), [](const command& each) { return each.changes_connection(); });
  if (found == commands.end()) return;
  throw error(errc::invalid_argument, found->refusal(), {.path = "commands[" + std::to_string(found - commands.begin()) + "]"});
}

}  // namespace

client::state::state(settings from)
    : settings_(std::move(from)),
      tls_(settings_.tls ? std::make_unique<const tls_context>(settings_.how.tls) : nullptr),
      counters_(settings_.how.metrics),
      log_(settings_.how.log) {
  warn_of_plaintext();
  if (settings_.cluster)
    topology_.emplace(
        settings_,
        [this](std::span<const std::string> nodes, steady::time_point deadline, const topology::listener& take) {
          ask_slots(nodes, deadline, take);
        },
        counters_);
}

void client::state::warn_of_plaintext() const {
  if (settings_.tls) return;
  const auto remote = std::ranges::find_if(settings_.seeds, [](const std::string& seed) { return !is_local_host(host_of(seed)); });
  if (remote == settings_.seeds.end()) return;
  log_.write(log_level::warning, "the connection to Redis at " + *remote +
                                     " is not encrypted: the password and the data can be read and changed on the way; set up TLS on it, "
                                     "and write rediss:// (docs/tls.md)");
}

void client::state::end(state* held) noexcept {
  if (held->process_.inherited()) held->abandon();
  else delete held;
}

// What a thread of the parent was changing when it forked may be half changed, and stays locked for ever: it is left alone.
void client::state::abandon() noexcept {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  for (const auto& [address, pool] : pools_) pool->abandon();
}

void client::state::check_process() const {
  if (process_.inherited())
    throw error(errc::invalid_argument,
                "this Redis client was made before fork, and its connections belong to the parent; make a new one in the child");
}

std::shared_ptr<node_pool> client::state::pool_of(const std::string& node) {
  const std::scoped_lock lock(mutex_);
  auto& found = pools_[node];
  if (!found) found = std::make_shared<node_pool>(node, settings_, tls_.get(), counters_);
  return found;
}

double client::state::jitter() {
  const std::scoped_lock lock(mutex_);
  return std::uniform_real_distribution<double>(0.5, 1.0)(random_);
}

/// Who gets what. A slot that nobody serves fails here, to be tried again.
std::vector<client::state::batch> client::state::split(delivery& what, const slot_map* map) {
  std::vector<batch> batches;
  std::vector<std::size_t> homeless;
  std::optional<std::size_t> anywhere;
  for (const auto index : what.waiting()) {
    const chain& c = what.at(index);
    const std::string* node = nullptr;
    if (!c.target.empty()) {
      node = &c.target;
    } else if (map == nullptr) {
      node = &settings_.seeds.front();
    } else if (c.slot) {
      node = map->master_of(*c.slot);
    } else {
      // Any master that has slots; the same one for the whole pipeline.
      if (!anywhere) {
        const std::scoped_lock lock(mutex_);
        anywhere = random_() % map->nodes().size();
        while (!map->nodes()[*anywhere].master && *anywhere > 0) --*anywhere;
      }
      node = &map->nodes()[*anywhere].address;
    }
    if (node == nullptr) {
      homeless.push_back(index);
      continue;
    }
    const auto found = std::find_if(batches.begin(), batches.end(), [&](const batch& b) { return b.node == node || *b.node == *node; });
    if (found != batches.end()) {
      found->chains.push_back(index);
    } else {
      batches.push_back({.node = node});
      batches.back().chains.reserve(map == nullptr ? what.waiting().size() : what.waiting().size() / 2 + 1);
      batches.back().chains.push_back(index);
    }
  }
  for (const auto index : homeless) {
    what.interrupted(index, {}, false,
                     error(errc::unavailable, "no node of the Cluster serves the slot " + std::to_string(what.at(index).slot.value_or(0)),
                           {.backend_code = "CLUSTERDOWN", .transient = true}),
                     {});
  }
  return batches;
}

/// Nodes that left the Cluster: their connections are closed.
void client::state::close_strangers(const slot_map& map) {
  std::vector<std::shared_ptr<node_pool>> gone;
  const std::scoped_lock lock(mutex_);
  const auto refreshes = counters_.refreshes.read();
  if (std::exchange(refreshes_seen_, refreshes) == refreshes) return;
  for (auto each = pools_.begin(); each != pools_.end();) {
    const auto is_it = [&](const node& n) { return n.address == each->first; };
    const bool known = std::any_of(map.nodes().begin(), map.nodes().end(), is_it) ||
                       std::find(settings_.seeds.begin(), settings_.seeds.end(), each->first) != settings_.seeds.end();
    if (known) {
      ++each;
      continue;
    }
    gone.push_back(std::move(each->second));
    each = pools_.erase(each);
  }
}

/// Sends what is waiting, or begins to.
void client::state::dispatch(delivery& what, std::list<trip>& trips, carrier& with, steady::time_point deadline) {
  std::shared_ptr<const slot_map> map;
  if (topology_) {
    try {
      map = topology_->current(deadline);
      close_strangers(*map);
    } catch (const error& failed) {
      for (const auto index : what.waiting()) what.interrupted(index, {}, false, failed, {});
      return;
    }
  }
  begin(what, split(what, map.get()), trips, with, deadline);
}

std::vector<reply> client::state::run(std::span<const command> commands, const call_options& how) {
  check_process();
  if (commands.empty()) return {};
  refuse_unsendable(commands);
  const running_call timer(counters_, commands.size());
  const auto timeout = how.timeout.count() > 0 ? bounded(how.timeout) : settings_.how.timeout;
  const auto deadline = timer.began() + timeout;
  delivery what(commands, {.cluster = settings_.cluster,
                           .attempts = settings_.cluster ? settings_.how.attempts : standalone_attempts,
                           .fixed_node = how.node,
                           .translate = settings_.how.translate});
  // Each command goes on by itself: what has to be sent again does not wait for the replies of another node.
  std::list<trip> trips;
  carrier with(4, deadline);
  bool to_send = true;
  auto not_before = timer.began();
  for (;;) {
    if (to_send && steady::now() >= not_before) {
      dispatch(what, trips, with, deadline);
      to_send = false;
    } else if (!trips.empty()) {
      travel(trips, with, deadline, to_send ? not_before : deadline);
    } else if (to_send) {
      std::this_thread::sleep_until(not_before);
    }
    trips.remove_if([](const trip& t) { return t.ended; });
    if (to_send || (!what.any_again() && !trips.empty())) continue;

    const auto next = what.end_round();
    if (topology_) {
      for (const auto& each : next.moved) topology_->learn(each.slot, each.address);
      if (next.refresh) topology_->set_stale();
    }
    if (what.waiting().empty()) {
      if (trips.empty()) break;
      continue;
    }
    auto pause = next.pause;
    if (pause.count() > 0) pause = std::chrono::duration_cast<std::chrono::microseconds>(pause * jitter());
    not_before = steady::now() + pause;
    to_send = not_before < deadline;
    if (!to_send)
      what.give_up(error(errc::timeout, "Redis did not answer within " + std::to_string(timeout.count()) + " ms", {.transient = true}));
  }
  auto replies = what.take();
  add_up(what, replies);
  return replies;
}

void client::state::add_up(const delivery& what, const std::vector<reply>& replies) noexcept {
  const auto& c = what.counts();
  counters_.moved += c.moved;
  counters_.asked += c.asked;
  counters_.retried += c.retried;
  counters_.resent += c.resent;
  counters_.in_doubt += c.in_doubt;
  for (const auto& each : replies) {
    if (each.is_error()) ++counters_.errors[static_cast<std::size_t>(each.problem().code())];
  }
}

std::vector<node> client::state::nodes() {
  check_process();
  if (!topology_) return {{.address = settings_.seeds.front(), .slots = slot_map::slots}};
  return topology_->ask_again(steady::now() + settings_.how.timeout)->nodes();
}

client::client(std::string_view url, options how) : state_(new state(read_settings(url, std::move(how))), &state::end) {}

reply client::call(const command& what, const call_options& how) const {
  auto replies = state_->run({&what, 1}, how);
  replies.front().checked();
  return std::move(replies.front());
}

std::vector<reply> client::pipeline(std::span<const command> what, const call_options& how) const { return state_->run(what, how); }

bool client::is_cluster() const noexcept { return state_->configured().cluster; }

std::vector<node> client::nodes() const { return state_->nodes(); }

std::vector<server_report> client::probe() const {
  std::vector<server_report> reports;
  for (const auto& each : nodes()) reports.push_back(probe(each.address));
  return reports;
}

server_report client::probe(const std::string& node) const {
  const auto questions = probe_questions(is_cluster());
  const auto began = steady::now();
  auto replies = pipeline(questions, {.node = node});
  server_report report = read_probe(replies);
  report.address = node;
  report.encrypted = state_->configured().tls;
  std::vector<steady::duration> trips{steady::now() - began};
  for (int i = 0; i < 9; ++i) {
    const auto start = steady::now();
    call(command("PING").idempotent(), {.node = node});
    trips.push_back(steady::now() - start);
  }
  std::nth_element(trips.begin(), trips.begin() + 5, trips.end());
  report.round_trip = std::chrono::duration_cast<std::chrono::microseconds>(trips[5]);
  return report;
}

std::optional<error> client::health() const noexcept {
  try {
    call(command("PING").idempotent());
    return std::nullopt;
  } catch (const error& failed) {
    return failed;
  } catch (const std::exception&) {
    return error(errc::unavailable, "not enough memory to ask Redis how it is");
  }
}

numbers client::count() const noexcept { return state_->count(); }

std::uint64_t numbers::errors_of(errc code) const noexcept { return errors[static_cast<std::size_t>(code)]; }

std::chrono::microseconds numbers::latency_at(double part) const noexcept {
  std::uint64_t all = 0;
  for (const auto each : latency) all += each;
  double left = part * static_cast<double>(all);
  std::size_t bucket = 0;
  for (; bucket + 1 < latency.size(); ++bucket) {
    left -= static_cast<double>(latency[bucket]);
    if (left <= 0) break;
  }
  return std::chrono::microseconds(std::int64_t{1} << bucket);
}

}  // namespace HOLDFAST_NAMESPACE::redis
