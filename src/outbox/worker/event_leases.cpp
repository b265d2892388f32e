#include "outbox/worker/event_leases.hpp"

#include <holdfast/error.hpp>

#include <algorithm>
#include <map>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::outbox {

namespace {

bool has_key(const event_batch& batch, const std::string& key) {
  return std::ranges::any_of(batch.events,
                             [&](const claimed_event& event) { return event.event.key == key; });
}

}  // namespace

std::vector<std::shared_ptr<event_batch>> event_leases::split(
    claimed claim, std::size_t lane, steady_time claimed_at,
    std::chrono::milliseconds lease) const {
  const std::size_t batch_size = context_.sizing.batch_size();
  std::vector<std::shared_ptr<event_batch>> batches;
  // The batch that is being filled, for each route with batches of its own; null: for the others.
  std::map<const handler_route*, std::shared_ptr<event_batch>> open_batches;
  std::shared_ptr<event_batch> last;
  for (auto& event : claim.events) {
    const std::string& key = event.event.key;
    const bool same_key = last && !key.empty() && key == last->events.back().event.key;
    if (!same_key) {
      const auto* route = routes_.find(event.event.type);
      if (route != nullptr && !route->has_own_batches()) route = nullptr;
      const std::size_t size_limit = std::max(batch_size, route != nullptr ? route->most : 1);
      auto& open = open_batches[route];
      if (!open || open->events.size() >= size_limit) {
        open = std::make_shared<event_batch>();
        open->lane = lane;
        open->token = claim.fence;
        open->claimed_at = claimed_at;
        open->store_time = claim.now;
        open->lease_end = claimed_at + lease;
        open->renew_at = claimed_at + context_.time_to_renewal(lease);
        batches.push_back(open);
      }
      last = open;
    }
    if (event.deliveries == 1) {
      const auto lag = std::chrono::duration<double>(claim.now - event.created_at).count();
      context_.metrics.lag_seconds->observe(std::max(lag, 0.0));
    }
    last->events.push_back(std::move(event));
  }
  for (const auto& batch : batches) {
    batch->lost.assign(batch->events.size(), false);
    for (const auto& left_out : claim.left_out) {
      if (has_key(*batch, left_out.second)) batch->left_out.push_back(left_out);
    }
  }
  return batches;
}

std::vector<std::shared_ptr<event_batch>> event_leases::add(claimed claim, std::size_t lane,
                                                            steady_time claimed_at,
                                                            std::chrono::milliseconds lease) {
  auto batches = split(std::move(claim), lane, claimed_at, lease);
  const std::scoped_lock lock(context_.mutex);
  for (const auto& batch : batches) {
    in_flight_ += batch->events.size();
    batches_.push_back(batch);
  }
  context_.metrics.in_flight->set(static_cast<double>(in_flight_));
  return batches;
}

void event_leases::remove(const std::shared_ptr<event_batch>& batch) {
  {
    const std::scoped_lock lock(context_.mutex);
    batches_.remove(batch);
    in_flight_ -= batch->events.size();
    context_.metrics.in_flight->set(static_cast<double>(in_flight_));
  }
  context_.changed.notify_all();
}

void event_leases::renew(steady_time now) {
  // Batches of one claim have the same token, so one call extends all of them.
  std::map<std::pair<std::size_t, holdfast::fence>, std::vector<std::shared_ptr<event_batch>>> due;
  {
    const std::scoped_lock lock(context_.mutex);
    for (const auto& batch : batches_) {
      const std::scoped_lock batch_lock(batch->mutex);
      if (now >= batch->renew_at) due[{batch->lane, batch->token}].push_back(batch);
    }
  }
  for (const auto& [lane_and_token, batches] : due) extend(batches, now);
}

void event_leases::extend(const std::vector<std::shared_ptr<event_batch>>& batches,
                          steady_time now) {
  std::vector<settlement> request;
  std::vector<lease_reference> leases;
  for (const auto& batch : batches) {
    const std::scoped_lock lock(batch->mutex);
    std::string_view key;  // the events of a run share one lease
    for (std::size_t i = batch->settled; i < batch->events.size(); ++i) {
      const auto& event = batch->events[i].event;
      if (batch->lost[i] || (!event.key.empty() && event.key == key)) continue;
      key = event.key;
      request.push_back({.id = event.id, .key = event.key});
      leases.push_back({.batch = batch.get(), .index = i});
    }
  }
  if (request.empty()) return;
  const auto lease = context_.options.lease;
  std::vector<bool> extended;
  try {
    const auto& first = *batches.front();
    extended = context_.outbox.backend()->extend(first.lane, first.token, request, lease);
  } catch (const error& problem) {
    context_.metrics.errors.add();
    context_.set_problem(problem);
    for (const auto& batch : batches) {
      const std::scoped_lock lock(batch->mutex);
      batch->renew_at = now + lease / 10;
    }
    // The call may have taken long. Meanwhile other leases may have ended, and the next call may
    // take as long.
    expire(context_.now());
    return;
  }
  for (const auto& batch : batches) {
    const std::scoped_lock lock(batch->mutex);
    batch->lease_end = now + lease;
    batch->renew_at = now + lease / 3;
  }
  std::vector<lease_reference> lost;
  for (std::size_t i = 0; i < leases.size(); ++i) {
    if (!extended[i]) lost.push_back(leases[i]);
  }
  mark_lost(lost);
}

void event_leases::mark_lost(const std::vector<lease_reference>& leases) {
  std::uint64_t lost = 0;
  // Stop is requested without a lock: callbacks of handlers may do anything.
  std::vector<std::stop_source> handlers;
  for (const auto& [batch, index] : leases) {
    const std::scoped_lock lock(batch->mutex);
    // It was settled while the request was on its way.
    if (batch->settling || index < batch->settled) continue;
    const std::string& key = batch->events[index].event.key;
    for (std::size_t i = index; i < batch->events.size(); ++i) {
      const bool same_run = i == index || (!key.empty() && batch->events[i].event.key == key);
      if (!same_run) break;
      batch->lost[i] = true;
      ++lost;
      const bool is_handled = i >= batch->current && i < batch->current + batch->current_count;
      if (is_handled) handlers.push_back(batch->stop_source);
    }
  }
  for (auto& handler : handlers) handler.request_stop();
  if (lost == 0) return;
  context_.metrics.fenced.add(lost);
  context_.log.write_limited("outbox.lease", log_level::warning,
                             "leases were lost: their events may be delivered to another worker",
                             {{"events", std::to_string(lost)}});
}

void event_leases::expire(steady_time lease_ends_by) {
  std::vector<std::stop_source> handlers;
  {
    const std::scoped_lock lock(context_.mutex);
    for (const auto& batch : batches_) {
      const std::scoped_lock batch_lock(batch->mutex);
      if (batch->lease_end > lease_ends_by) continue;
      batch->lost.assign(batch->events.size(), true);
      handlers.push_back(batch->stop_source);
    }
  }
  for (auto& handler : handlers) handler.request_stop();
}

std::vector<std::shared_ptr<event_batch>> event_leases::batches() const {
  const std::scoped_lock lock(context_.mutex);
  return {batches_.begin(), batches_.end()};
}

bool event_leases::suspend(const event_batch& batch) {
  const std::size_t limit = context_.sizing.in_flight_limit();
  const std::scoped_lock lock(context_.mutex);
  if (suspended_ >= limit) return false;
  suspended_ += batch.events.size();
  return true;
}

void event_leases::resume(const event_batch& batch) {
  const std::scoped_lock lock(context_.mutex);
  suspended_ -= batch.events.size();
}

std::size_t event_leases::in_flight() const {
  const std::scoped_lock lock(context_.mutex);
  return in_flight_;
}

std::size_t event_leases::active() const {
  const std::scoped_lock lock(context_.mutex);
  return in_flight_ - suspended_;
}

std::size_t event_leases::batch_count() const {
  const std::scoped_lock lock(context_.mutex);
  return batches_.size();
}

void event_leases::wait_for_room(std::chrono::milliseconds longest) {
  std::unique_lock lock(context_.mutex);
  context_.changed.wait_for(lock, longest, [this] {
    return context_.stopping || (in_flight_ - suspended_) * 2 <= context_.sizing.in_flight_limit();
  });
}

void event_leases::wait_for_progress(std::chrono::milliseconds longest) {
  std::unique_lock lock(context_.mutex);
  const std::size_t before = in_flight_;
  context_.changed.wait_for(
      lock, longest, [&] { return context_.stopping || in_flight_ < before || in_flight_ == 0; });
}

bool event_leases::wait_until_empty(steady_time deadline) {
  std::unique_lock lock(context_.mutex);
  return context_.changed.wait_until(lock, deadline, [this] { return batches_.empty(); });
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
