#include "failover/insight/look.hpp"

#include "failover/read.hpp"

namespace HOLDFAST_NAMESPACE::detail::failover {

namespace {

/// A store that hangs keeps this many threads, and not more.
constexpr int most_looks = 4;

read_result read_for_look(holdfast::store& store, place location, std::string_view key) {
  std::exception_ptr problem;
  return find_row(store, location, key, problem);
}

}  // namespace

bool look_at_row(const point_core& point, const call_base& call,
                 std::function<void(const read_result&)> judge) {
  auto& engine = point.engine;
  const place location(point.effective_name, call.realm);
  if (!engine.reads_block) {
    judge(read_for_look(*engine.front_store, location, call.key));
    return true;
  }
  auto remembered = recall(engine, location, call.key);
  if (remembered.current || remembered.entry) {
    const auto status = remembered.entry ? read_status::row : read_status::no_row;
    judge({.status = status, .row = std::move(remembered.entry)});
    return true;
  }
  if (!engine.guard.answers()) return false;
  if (engine.running_looks.fetch_add(1, std::memory_order_relaxed) >= most_looks) {
    engine.running_looks.fetch_sub(1, std::memory_order_relaxed);
    return false;
  }
  const auto core = engine.shared_from_this();
  // Gives the slot back when the look has ended, or is dropped.
  const std::shared_ptr<void> slot(
      nullptr, [core](void*) { core->running_looks.fetch_sub(1, std::memory_order_relaxed); });
  // Below the queue, which may have the answer of this call already. The engine owns the point.
  const auto work = [core, slot, judge = std::move(judge), &name = point.effective_name,
                     realm = call.realm, key = call.key] {
    judge(read_for_look(*core->base_store, place(name, realm), key));
  };
  return engine.start_upkeep(std::make_shared<store_work>(), work,
                             engine.clock->steady() + engine.options.storage.read_deadline);
}

}  // namespace HOLDFAST_NAMESPACE::detail::failover
