// The ways of a pipeline to its nodes, at the same time, and the question where the slots are.

#include "redis/client_state.hpp"

#include <algorithm>
#include <thread>
#include <utility>

namespace HOLDFAST_NAMESPACE::redis {

namespace {

/// How soon one that waits for a connection sees that it is its turn, while others are under way.
constexpr auto glance = std::chrono::milliseconds(2);
/// How long one node is waited for before another is asked beside it.
constexpr auto next_node_delay = std::chrono::milliseconds(250);

}  // namespace

/// A connection is there, or may be made: it goes.
void client::state::depart(trip& t, carrier& with, steady::time_point deadline) {
  try {
    static_cast<void>(t.seat->has_connection());  // one that is dead goes, and is replaced
    t.over = std::make_unique<node_pool::lease>(t.seat->take(deadline));
    t.seat.reset();
  } catch (const error& failed) {
    refuse(t, failed);
    return;
  }
  t.what = std::make_unique<flight>(*t.of, t.node, (*t.over)->scripts());
  for (const auto index : t.chains) t.what->add(index);
  t.way = {.over = &**t.over, .what = t.what.get()};
  with.add(t.way);
}

/// Others are asked first for a while.
void client::state::suspect(const std::string& node) {
  if (topology_) topology_->suspect(node);
}

/// Nothing was sent.
void client::state::refuse(trip& t, const error& why) {
  t.ended = true;
  t.seat.reset();
  suspect(t.node);
  log_.write_limited("redis.connect", log_level::warning, why.what());
  for (const auto index : t.chains) t.of->interrupted(index, {}, false, why, t.node);
}

/// It has all its replies, or will get no more. The connection goes back at once: others wait for it.
void client::state::arrive(trip& t) {
  t.ended = true;
  const auto over = std::move(t.over);  // until it has landed: which scripts the server knows is kept there
  const bool connected = (*over)->ready();
  if (connected) counters_.whole_scripts += t.what->whole_scripts();
  // Outside a Cluster nothing else says that the master is elsewhere by now, behind the same name: only a new connection can find it.
  if (connected && !topology_ && t.what->met_replica()) {
    (*over)->set_broken();
    pool_of(t.node)->close_idle();
  }
  if (!t.way.problem) {
    t.what->land(nullptr);
    return;
  }
  suspect(t.node);
  log_.write_limited(connected ? "redis.lost" : "redis.connect", log_level::warning, t.way.problem->what());
  t.what->land(&*t.way.problem);
}

/// Ends those that are done; false when there were none.
bool client::state::end_done(std::list<trip>& trips) {
  bool any = false;
  for (auto& each : trips) {
    if (each.ended || !each.way.done) continue;
    arrive(each);
    any = true;
  }
  return any;
}

/// Waits until something has happened to one of them, until then at the latest, and ends those that are done.
void client::state::travel(std::list<trip>& trips, carrier& with, steady::time_point deadline, steady::time_point wake) {
  if (end_done(trips)) return;
  const auto waits = [](const trip& t) { return t.seat && !t.ended; };
  const auto waiting = std::count_if(trips.begin(), trips.end(), waits);
  if (with.open() > 0) {
    with.step(waiting == 0 ? wake : std::min(wake, steady::now() + glance));
  } else if (waiting == 1) {
    static_cast<void>(std::find_if(trips.begin(), trips.end(), waits)->seat->wait(std::min(deadline, wake)));
  } else if (waiting > 1) {
    std::this_thread::sleep_until(std::min({deadline, wake, steady::now() + glance}));
  }
  const bool late = steady::now() >= deadline;
  for (auto& each : trips) {
    if (!waits(each)) continue;
    if (each.seat->called()) depart(each, with, deadline);
    else if (late) refuse(each, each.seat->busy());
  }
  end_done(trips);
}

/// Those whose connections are there go first; making one may take time, and a busy node is waited for beside the others.
void client::state::begin(delivery& what, std::vector<batch> batches, std::list<trip>& trips, carrier& with, steady::time_point deadline) {
  std::list<trip> added(batches.size());
  std::size_t i = 0;
  for (auto& each : added) {
    each.of = &what;
    each.node = *batches[i].node;
    each.chains = std::move(batches[i].chains);
    each.seat = std::make_unique<node_pool::ticket>(pool_of(each.node));
    ++i;
  }
  trips.splice(trips.end(), added);
  for (const bool made : {true, false}) {
    for (auto& each : trips) {
      if (each.seat && !each.ended && each.seat->called() && each.seat->has_connection() == made) depart(each, with, deadline);
    }
  }
}

/// One after the other, but a silent one is not waited for: the next is asked beside it.
void client::state::ask_slots(std::span<const std::string> nodes, steady::time_point deadline, const topology::listener& take) {
  const command question = command("CLUSTER").arg("SLOTS").idempotent();
  std::list<delivery> questions;
  std::list<trip> trips;
  carrier with(nodes.size(), deadline);
  // As a dialer does it.
  const auto share = (deadline - steady::now()) / static_cast<steady::duration::rep>(2 * nodes.size() + 1);
  const auto apart = std::clamp<steady::duration>(share, steady::duration::zero(), next_node_delay);
  std::size_t asked = 0;
  auto next_at = steady::now();
  while ((asked < nodes.size() || !trips.empty()) && steady::now() < deadline) {
    if (asked < nodes.size() && (trips.empty() || steady::now() >= next_at)) {
      auto& about = questions.emplace_back(std::span(&question, 1), delivery_rules{.attempts = 1, .fixed_node = nodes[asked]});
      begin(about, {{.node = &nodes[asked], .chains = {0}}}, trips, with, deadline);
      ++asked;
      next_at = steady::now() + apart;
    }
    const auto ended = [](const trip& t) { return t.ended; };
    if (std::none_of(trips.begin(), trips.end(), ended)) travel(trips, with, deadline, asked < nodes.size() ? next_at : deadline);
    for (auto each = trips.begin(); each != trips.end();) {
      if (!each->ended) {
        ++each;
        continue;
      }
      static_cast<void>(each->of->end_round());
      const std::string node = std::move(each->node);
      const auto replies = each->of->take();
      each = trips.erase(each);
      if (!take(node, replies.front())) continue;
      for (const auto& overtaken : trips) suspect(overtaken.node);  // others are asked before it the next time
      return;
    }
  }
}

}  // namespace HOLDFAST_NAMESPACE::redis
