#include "outbox/memory/backend.hpp"

#include <holdfast/error.hpp>

#include <bit>

namespace HOLDFAST_NAMESPACE {

std::shared_ptr<outbox_backend> make_memory_outbox(memory_outbox_options options) {
  return std::make_shared<detail::outbox::memory_backend>(std::move(options));
}

}  // namespace HOLDFAST_NAMESPACE

namespace HOLDFAST_NAMESPACE::detail::outbox {

memory_backend::memory_backend(memory_outbox_options options)
    : clock_(options.clock ? std::move(options.clock) : system_clock()), lanes_(options.lanes) {
  if (!std::has_single_bit(options.lanes) || options.lanes > 256) {
    throw error(errc::invalid_argument, "lanes is " + std::to_string(options.lanes) +
                                            "; it must be a power of two up to 256");
  }
  for (std::size_t i = 0; i < lanes_.size(); ++i) lanes_[i].number = i;
}

std::string memory_backend::key_prefix(std::size_t lane) const {
  return "{memory:" + std::to_string(lane) + "}";
}

void memory_backend::check_supported(const durability& required) const {
  if (required.level == durability::kind::memory) return;
  throw error(errc::invalid_argument, "an outbox in memory cannot provide the durability '" +
                                          std::string(to_string(required.level)) +
                                          "'; use a database");
}

memory_lane& memory_backend::lane_at(std::size_t lane) {
  if (lane >= lanes_.size())
    throw error(errc::invalid_argument, "there is no lane " + std::to_string(lane));
  return lanes_[lane];
}

std::int64_t memory_backend::now_ms() const {
  return std::chrono::floor<std::chrono::milliseconds>(clock_->now()).time_since_epoch().count();
}

void memory_backend::request_wake(memory_lane& lane) {
  lane.wake_requested = true;
  wake_requested_.notify_all();
}

void memory_backend::wake_if_earlier(memory_lane& lane, std::optional<std::int64_t> first_before) {
  const auto first = lane.pending.first_score();
  if (first && (!first_before || *first < *first_before)) request_wake(lane);
}

bool memory_backend::wait(std::size_t lane_number, std::chrono::milliseconds longest) {
  std::unique_lock guard(mutex_);
  auto& lane = lane_at(lane_number);
  wake_requested_.wait_for(guard, longest, [&] { return lane.wake_requested; });
  return std::exchange(lane.wake_requested, false);
}

void memory_backend::wake(std::size_t lane) {
  const std::scoped_lock guard(mutex_);
  request_wake(lane_at(lane));
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
