#include "sequence/sequence_state.hpp"

#include "base/deadline.hpp"
#include "base/duration_limit.hpp"
#include "sequence/definition.hpp"

#include <algorithm>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::sequence {

sequence_state::sequence_state(sequence_config config, std::shared_ptr<sequence::source> source)
    : config_(std::move(config)),
      source_(std::move(source)),
      metrics_(*source_->metrics, config_.name),
      // A sequence that cycles does not give out ids in the order of its tickets, so it has no fast
      // path.
      lease_(*window_, window_.wiped() && !config_.options.cycle),
      sizing_(config_.options.blocks),
      remaining_(static_cast<std::uint64_t>(config_.range.limit())) {
  window_->offset = config_.range.offset();
  window_->step = static_cast<std::uint64_t>(config_.range.increment());
  update_shared_size();
}

block_store& sequence_state::store() const {
  check_process();
  source_->settings->run();
  return *source_->store;
}

block_store& sequence_state::defined_store() const {
  auto& checked = store();
  const auto stored = checked.definition(config_.name);
  if (const auto own = checked.complete_definition(config_.definition); stored && *stored != own)
    throw definition_mismatch(config_.name, *stored, own);
  return checked;
}

sequence_state::time_point sequence_state::default_deadline() const {
  return moment_after(std::chrono::steady_clock::now(), limit_duration(config_.options.wait));
}

error sequence_state::exhausted_error() const {
  return {errc::out_of_range,
          "the sequence '" + config_.name +
              "' is exhausted: its last id was given out; raise its limit, or begin another "
              "sequence"};
}

error sequence_state::timeout_error() const {
  const std::string message = "no block for the sequence '" + config_.name + "' came in time";
  if (!last_refill_error_)
    return {
        errc::timeout, message + "; the store is slow or the time too short", {.transient = true}};
  return {errc::timeout,
          message + ": " + last_refill_error_->what(),
          {.backend_code = last_refill_error_->backend_code(), .transient = true}};
}

// ---- Drawing ids.

std::optional<drawn_ids> sequence_state::draw(const draw_request& request) {
  const auto drawn = window_->draw(request.count);
  if (drawn.is_id) return drawn_ids{.first = window_->id(drawn.ticket), .count = request.count};
  return draw_slowly(drawn.ticket, request);
}

std::optional<drawn_ids> sequence_state::draw_slowly(std::uint64_t ticket,
                                                     const draw_request& request) {
  check_process();
  for (;;) {
    drawn_ids ids{.count = request.count};
    wait_result result{};
    {
      std::unique_lock lock(mutex_);
      try {
        result = wait_for_lease(lock, ticket, request, ids);
      } catch (...) {
        lease_.put_back(ticket, ids.count);
        throw;
      }
      if (result == wait_result::late) lease_.put_back(ticket, ids.count);
    }
    if (result == wait_result::leased) return ids;
    if (result == wait_result::late) return std::nullopt;
    const auto drawn = window_->draw(request.count);
    if (drawn.is_id) return drawn_ids{.first = window_->id(drawn.ticket), .count = request.count};
    ticket = drawn.ticket;
  }
}

/// Waits until the lease covers the tickets, or has passed them, or the time is up.
sequence_state::wait_result sequence_state::wait_for_lease(std::unique_lock<std::mutex>& lock,
                                                           std::uint64_t ticket,
                                                           const draw_request& request,
                                                           drawn_ids& ids) {
  const std::uint64_t failures_before = refill_failures_;
  const bool needs_all = ids.count > 1 && !request.partial;
  bool late = false;
  bool stalled = false;
  for (;;) {
    throw_if_unusable();
    switch (lease_.position_of(ticket, ids.count)) {
      case id_lease::position::leased:
        ids.first = config_.range.id(lease_.ordinal(ticket));
        prefetch(ticket, ids.count);
        return wait_result::leased;
      case id_lease::position::passed:
        ++redraws_;
        metrics_.redraws->add();
        return wait_result::draw_again;
      case id_lease::position::beyond:
        break;
    }
    if (request.partial && keep_leased_tickets(ticket, ids)) continue;
    if (install_pending()) continue;
    // A failure from before this call does not answer it.
    if (last_refill_error_ && refill_failures_ != failures_before &&
        !last_refill_error_->transient())
      throw error(*last_refill_error_);
    if (late) {
      if (!request.deadline) return wait_result::late;
      // Other callers that still wait for a large block request it again.
      if (needs_all) min_size_ = 0;
      throw timeout_error();
    }
    request_block(needs_all ? ids.count : 0);
    if (!request.deadline) {
      late = true;
      continue;
    }
    if (!std::exchange(stalled, true)) {
      ++stalls_;
      metrics_.stalls->add();
      if (!starved_since_) starved_since_ = source_->clock->steady();
    }
    late = changed_.wait_until(lock, *request.deadline) == std::cv_status::timeout;
  }
}

void sequence_state::throw_if_unusable() const {
  if (closed_) throw error(errc::unavailable, "the sequence is closed");
  if (fatal_error_) throw error(*fatal_error_);
}

/// Keeps the tickets that the lease covers, and puts the others back. Returns false if it covers
/// none.
bool sequence_state::keep_leased_tickets(std::uint64_t ticket, drawn_ids& ids) {
  if (lease_.position_of(ticket, 1) != id_lease::position::leased) return false;
  const std::uint64_t drawn = std::exchange(ids.count, lease_.end() - ticket);
  lease_.put_back(ticket + ids.count, drawn - ids.count);
  return true;
}

bool sequence_state::install_pending() {
  const auto block = std::exchange(pending_, std::nullopt);
  if (!block) return false;
  previous_position_ = current_position();
  lease_.replace(block->first, block->last, sizing_.margin(block->size()));
  end_starvation();
  update_shared_size();
  return true;
}

/// The first caller in the margin requests the next block, and then opens the margin for the fast
/// path.
void sequence_state::prefetch(std::uint64_t ticket, std::uint64_t count) {
  if (!lease_.in_margin(ticket, count)) return;
  try {
    request_block(0);
  } catch (...) {
    return;  // the caller has its ids; the next caller in the margin requests the block
  }
  lease_.publish(0);
}

void sequence_state::request_block(std::uint64_t min_size) {
  min_size_ = std::max(min_size_, static_cast<std::int64_t>(min_size));
  if (request_pending_ || pending_) return;
  source_->refills.request(shared_from_this());
  request_pending_ = true;  // only if the request did not throw
}

// ---- Calls of the refiller.

block_request sequence_state::next_request() {
  const std::scoped_lock lock(mutex_);
  if (closed_ || fatal_error_) {
    request_pending_ = false;
    changed_.notify_all();
    return {.count = 0};
  }
  const auto now = source_->clock->steady();
  const auto starved = starved_ + (starved_since_ ? now - *starved_since_ : starved_.zero());
  const auto size = sizing_.next_size(now, lease_.drawn(), starved, remaining_);
  update_shared_size();
  return {.name = config_.name,
          .count = std::clamp<std::int64_t>(std::max(size, min_size_), 1, largest_block),
          .limit = config_.range.limit(),
          .cycle = config_.options.cycle,
          .definition = config_.definition};
}

bool sequence_state::on_failed(const error& reason) noexcept {
  const std::scoped_lock lock(mutex_);
  ++refill_failures_;
  if (reason.in_doubt()) ++in_doubt_;
  metrics_.failures->add();
  last_refill_error_ = reason;
  const bool retry = reason.transient() && !closed_;
  if (!retry) {
    request_pending_ = false;
    min_size_ = 0;
  }
  changed_.notify_all();
  return retry;
}

void sequence_state::set_floor(std::int64_t ordinal) {
  const std::scoped_lock lock(mutex_);
  floor_ = ordinal == 0 ? 0 : std::max(floor_, ordinal);
}

/// Raises the counter again if the grant is below the floor, and then requests another block. The
/// block of the grant is a gap. Returns true if that was done, or failed.
bool sequence_state::raise_lost_floor(const block_grant& grant) noexcept {
  std::int64_t floor = 0;
  {
    const std::scoped_lock lock(mutex_);
    if (closed_ || config_.options.cycle || !grant.block.has_next() ||
        grant.block.first() > floor_ || (grant.epoch != 0 && epoch_ != 0 && grant.epoch != epoch_))
      return false;
    floor = floor_;
    highest_granted_ = std::max(highest_granted_, grant.block.last());
  }
  std::optional<error> problem;
  try {
    source_->log->write_limited("sequence-floor", log_level::warning,
                                "the store forgot that the sequence '" + config_.name +
                                    "' was raised (ensure_at_least); it is raised again");
    (void)source_->store->ensure_at_least(config_.name, floor);
    const std::scoped_lock lock(mutex_);
    request_pending_ = false;
    request_block(0);
    return true;
  } catch (const error& e) {
    problem = e;
  } catch (...) {
    problem = error(errc::internal, "the counter could not be raised again");
  }
  const std::scoped_lock lock(mutex_);
  request_pending_ = false;
  ++refill_failures_;
  last_refill_error_ = std::move(problem);
  changed_.notify_all();
  return true;
}

void sequence_state::on_granted(block_grant grant, std::chrono::microseconds latency) noexcept {
  if (raise_lost_floor(grant)) return;
  std::optional<low_water_report> low_water;
  const std::int64_t epoch = epoch_of(grant);
  {
    const std::scoped_lock lock(mutex_);
    request_pending_ = false;
    // A caller that has asked for a larger block meanwhile still needs it.
    if (min_size_ <= static_cast<std::int64_t>(grant.block.size())) min_size_ = 0;
    sizing_.record_latency(latency);
    metrics_.refill_seconds->observe(std::chrono::duration<double>(latency).count());
    if (closed_ || std::exchange(discard_next_grant_, false)) {
      highest_granted_ = std::max(highest_granted_, grant.block.last());
    } else if (!grant.block.has_next()) {
      remaining_ = 0;
      ++refill_failures_;
      last_refill_error_ = exhausted_error();
    } else if (enter_epoch(epoch); repeats_earlier_ids(grant)) {
      fatal_error_ = error(errc::tampered,
                           "the store granted numbers of the sequence '" + config_.name +
                               "' that it had granted before: it lost its last state; raise the "
                               "counter above every id in use, then open the sequence again");
      source_->log->write(log_level::error, fatal_error_->what());
    } else {
      add_block(grant);
      low_water = check_low_water(grant.block.last());
    }
    update_metrics();
    changed_.notify_all();
  }
  if (!low_water) return;
  try {
    config_.options.on_low_water(*low_water);
  } catch (...) {
    source_->log->write(log_level::warning,
                        "the callback on_low_water of a sequence threw an exception");
  }
}

/// The epoch of a grant; 0 if it is unknown or does not matter. May ask the store. Reads only
/// members that the refiller writes, which serves a client from one thread at a time.
std::int64_t sequence_state::epoch_of(const block_grant& grant) const noexcept {
  const bool above_highest = epoch_ != 0 && grant.block.first() > highest_granted_;
  if (grant.epoch != 0 || !grant.block.has_next() || above_highest) return grant.epoch;
  try {
    const auto counter = source_->store->peek(config_.name);
    return counter ? counter->epoch : 0;
  } catch (...) {
    return 0;  // the next grant asks again
  }
}

/// Forgets what was granted in an earlier epoch of the counter. 0: the epoch is unknown.
void sequence_state::enter_epoch(std::int64_t epoch) {
  if (epoch == 0) return;
  if (epoch_ != 0 && epoch != epoch_) {
    // The counter was reset or started again. A pending block belongs to the epoch before.
    pending_.reset();
    highest_granted_ = 0;
    floor_ = 0;
  }
  epoch_ = epoch;
}

/// Whether the store forgot what it granted: the block is below an earlier one of the same epoch.
bool sequence_state::repeats_earlier_ids(const block_grant& grant) const {
  return grant.block.first() <= highest_granted_;
}

void sequence_state::add_block(const block_grant& grant) {
  ++refills_;
  metrics_.refills->add();
  last_refill_error_.reset();
  highest_granted_ = grant.block.last();
  if (lease_.is_continued_by(grant.block.first())) {
    lease_.extend(grant.block.last(), sizing_.margin(lease_.remaining() + grant.block.size()));
    end_starvation();
  } else {
    pending_ = pending_block{.first = grant.block.first(), .last = grant.block.last()};
  }
}

std::optional<low_water_report> sequence_state::check_low_water(std::int64_t last) {
  remaining_ = static_cast<std::uint64_t>(config_.range.limit() - last);
  const double fraction =
      static_cast<double>(remaining_) / static_cast<double>(config_.range.limit());
  if (!config_.options.on_low_water || low_water_reported_ || fraction > config_.options.low_water)
    return std::nullopt;
  low_water_reported_ = true;
  return low_water_report{
      .name = config_.name, .remaining = remaining_, .remaining_fraction = fraction};
}

// ---- State.

void sequence_state::update_shared_size() noexcept {
  // Without a fast path a handle must take the slow path for every id.
  shared_size_.store(lease_.fast_path() ? static_cast<std::uint64_t>(sizing_.size()) : 0,
                     std::memory_order_relaxed);
}

void sequence_state::end_starvation() {
  if (!starved_since_) return;
  starved_ += source_->clock->steady() - *starved_since_;
  starved_since_.reset();
}

std::uint64_t sequence_state::handle_share() const noexcept {
  const auto handles = std::max<std::uint64_t>(1, handle_count_.load(std::memory_order_relaxed));
  return std::max<std::uint64_t>(1, shared_size_.load(std::memory_order_relaxed) / (8 * handles));
}

std::optional<std::int64_t> sequence_state::position() const {
  check_process();
  const std::scoped_lock lock(mutex_);
  return current_position();
}

std::optional<std::int64_t> sequence_state::current_position() const {
  if (!lease_.has_drawn()) return previous_position_;
  return config_.range.id(lease_.ordinal(lease_.reached() - 1));
}

void sequence_state::invalidate() {
  check_process();
  const std::scoped_lock lock(mutex_);
  previous_position_ = current_position();
  lease_.take_remaining();
  lease_.publish(0);
  pending_.reset();
  discard_next_grant_ = request_pending_;
  end_starvation();
}

/// Ids that are leased and not used.
std::uint64_t sequence_state::unused_id_count() const {
  return lease_.remaining() + (pending_ ? pending_->size() : 0);
}

sequence_stats sequence_state::stats() const {
  check_process();
  const std::scoped_lock lock(mutex_);
  return {.ids = lease_.drawn(),
          .refills = refills_,
          .failures = refill_failures_,
          .in_doubt = in_doubt_,
          .stalls = stalls_,
          .redraws = redraws_,
          .at_risk = unused_id_count(),
          .remaining = remaining_,
          .block = sizing_.size(),
          .rate = sizing_.rate(),
          .refill_latency = sizing_.latency()};
}

void sequence_state::update_metrics() {
  const std::uint64_t ids = lease_.drawn();
  metrics_.ids->add(ids - std::min(ids, std::exchange(reported_ids_, ids)));
  metrics_.at_risk->set(static_cast<double>(unused_id_count()));
  metrics_.remaining->set(static_cast<double>(remaining_));
}

// ---- Closing.

sequence_close_report sequence_state::close(time_point deadline) {
  check_process();
  std::unique_lock lock(mutex_);
  if (std::exchange(closed_, true)) return {};
  if (source_->refills.cancel(*this)) request_pending_ = false;
  changed_.notify_all();
  const std::int64_t first_unused = lease_.take_remaining();
  lease_.publish(0);
  const std::uint64_t ids = lease_.drawn();
  metrics_.ids->add(ids - std::min(ids, std::exchange(reported_ids_, ids)));
  metrics_.at_risk->set(0.0);

  // Unsigned: the ordinal after the last one there is does not fit into 63 bits.
  const auto lease_end = static_cast<std::uint64_t>(lease_.ordinal(lease_.end()));
  sequence_close_report report{.unused = lease_end - static_cast<std::uint64_t>(first_unused)};
  const auto pending = std::exchange(pending_, std::nullopt);
  if (pending) report.unused += pending->size();

  if (!config_.options.give_back || report.unused == 0 || fatal_error_) return report;
  // A block that is being granted would come after the ids to give back, so the store would refuse
  // them. Wait for it.
  if (!changed_.wait_until(lock, deadline, [this] { return !request_pending_; })) return report;
  const std::int64_t last_used = (pending ? pending->first : first_unused) - 1;
  const counter_state granted{
      .last = pending ? pending->last : static_cast<std::int64_t>(lease_end - 1), .epoch = epoch_};
  if (granted.last != highest_granted_) return report;  // another block was granted meanwhile
  lock.unlock();
  report.given_back = return_unused_ids(last_used, granted);
  return report;
}

/// Returns true if the store has accepted the ids. Failures are logged.
bool sequence_state::return_unused_ids(std::int64_t last_used, counter_state granted) {
  try {
    if (granted.epoch == 0) {
      const auto counter = source_->store->peek(config_.name);
      if (!counter) return false;
      granted.epoch = counter->epoch;
    }
    return source_->store->give_back(config_.name, last_used, granted);
  } catch (const error& e) {
    source_->log->write_limited("sequence-give-back", log_level::warning,
                                std::string("unused ids were not given back: ") + e.what());
  } catch (...) {
    source_->log->write_limited("sequence-give-back", log_level::warning,
                                "unused ids were not given back: the block store failed");
  }
  return false;
}

}  // namespace HOLDFAST_NAMESPACE::detail::sequence
