#include "sequence/core.hpp"

#include <algorithm>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail {

error exhausted(std::string_view name) {
  return {errc::out_of_range,
          "the sequence '" + std::string(name) + "' is exhausted: its last id was given out; raise its limit, or begin another sequence"};
}

sequence_core::sequence_core(std::shared_ptr<const sequence_config> config, std::shared_ptr<source_core> source,
                             std::shared_ptr<sequence_window> window, std::shared_ptr<const sequence_instruments> numbers, bool hot)
    : config_(std::move(config)),
      source_(std::move(source)),
      window_(std::move(window)),
      numbers_(std::move(numbers)),
      // A sequence that cycles gives its ids out in another order than its tickets: never by the hot path.
      lease_(*window_, hot && !config_->options.cycle),
      sizing_(config_->options.blocks),
      left_(static_cast<std::uint64_t>(config_->range.limit())) {
  window_->offset = config_->range.offset();
  window_->step = static_cast<std::uint64_t>(config_->range.increment());
}

sequence_core::answer sequence_core::settle(std::uint64_t mine, std::uint64_t& count, std::optional<time_point> deadline, bool partial,
                                            std::int64_t& first) {
  std::unique_lock lock(mutex_);
  const std::uint64_t failures_before = failures_;
  bool late = false;
  bool stalled = false;
  const auto give_up = [&] { lease_.give_up(mine, count); };
  for (;;) {
    if (closed_) {
      give_up();
      throw error(errc::unavailable, "the sequence is closed");
    }
    if (poison_) {
      give_up();
      throw error(*poison_);
    }
    switch (lease_.look(mine, count)) {
      case lease::verdict::owned:
        first = config_->range.id(lease_.ordinal(mine));
        prefetch(mine, count);
        return answer::owned;
      case lease::verdict::redraw:
        ++redraws_;
        numbers_->redraws->add();
        return answer::redraw;
      case lease::verdict::beyond:
        if (partial && lease_.look(mine, 1) == lease::verdict::owned) {
          const std::uint64_t whole = std::exchange(count, lease_.high() - mine);
          lease_.give_up(mine + count, whole - count);
          continue;
        }
        break;
    }
    if (const auto ready = std::exchange(next_, std::nullopt)) {
      install(*ready);
      continue;
    }
    // What happened before this call began is no answer to it.
    if (failure_ && failures_ != failures_before && !failure_->transient()) {
      give_up();
      throw error(*failure_);
    }
    if (late) {
      give_up();
      if (!deadline) return answer::later;
      // Nobody waits for that many any more; whoever else does asks again.
      if (count > 1 && !partial) at_least_ = 0;
      throw out_of_time();
    }
    try {
      request(count > 1 && !partial ? count : 0);
    } catch (...) {
      give_up();
      throw;
    }
    if (!deadline) {
      late = true;
      continue;
    }
    if (!std::exchange(stalled, true)) {
      ++stalls_;
      numbers_->stalls->add();
    }
    late = changed_.wait_until(lock, *deadline) == std::cv_status::timeout;
  }
}

error sequence_core::out_of_time() const {
  const std::string begin = "no block for the sequence '" + config_->name + "' came in time";
  if (!failure_) return {errc::timeout, begin + "; the store is slow or the time too short", {.transient = true}};
  return {errc::timeout, begin + ": " + failure_->what(), {.backend_code = failure_->backend_code(), .transient = true}};
}

/// Past the soft end: the first to come here asks for the next block, and the rest of this one is quiet again.
void sequence_core::prefetch(std::uint64_t mine, std::uint64_t count) {
  if (!lease_.past_soft(mine, count)) return;
  try {
    request(0);
  } catch (...) {
    return;  // these ids are good all the same, and the next to come here asks again
  }
  lease_.publish(0);
}

void sequence_core::request(std::uint64_t at_least) {
  at_least_ = std::max(at_least_, static_cast<std::int64_t>(at_least));
  if (requested_ || next_) return;
  source_->refills.ask(shared_from_this());
  requested_ = true;  // after what may throw: else nobody would ask again
}

block_request sequence_core::wanted() {
  const std::scoped_lock lock(mutex_);
  if (closed_ || poison_) {
    requested_ = false;
    changed_.notify_all();
    return {.count = 0};
  }
  const auto size = sizing_.next_size(source_->clock->steady(), lease_.drawn(), left_);
  const auto count = std::clamp<std::int64_t>(std::max(size, at_least_), 1, largest_block);
  return {.name = config_->name, .count = count, .limit = config_->range.limit(), .cycle = config_->options.cycle};
}

bool sequence_core::failed(const error& why) noexcept {
  const std::scoped_lock lock(mutex_);
  ++failures_;
  if (why.in_doubt()) ++in_doubt_;
  numbers_->failures->add();
  failure_ = why;
  const bool again = why.transient() && !closed_;
  if (!again) {
    requested_ = false;
    at_least_ = 0;
  }
  changed_.notify_all();
  return again;
}

void sequence_core::granted(block_grant what, std::chrono::microseconds took) noexcept {
  std::optional<low_water_report> low;
  const std::int64_t epoch = epoch_of(what);
  {
    const std::scoped_lock lock(mutex_);
    requested_ = false;
    // Not before: a store that failed is asked again, for as many. Whoever wanted more meanwhile still does.
    if (at_least_ <= static_cast<std::int64_t>(what.block.size())) at_least_ = 0;
    sizing_.arrived(took);
    numbers_->refill_seconds->observe(std::chrono::duration<double>(took).count());
    if (closed_ || std::exchange(discard_, false)) {
      highest_ = std::max(highest_, what.block.last());
    } else if (!what.block.has_next()) {
      left_ = 0;
      refuse(exhausted(config_->name));
    } else if (went_back(what, epoch)) {
      poison_ = error(errc::tampered, "the store granted numbers of the sequence '" + config_->name +
                                          "' that it had granted before: it lost its last state; raise the counter above every id in use, "
                                          "then open the sequence again");
      source_->log->write(log_level::error, poison_->what());
    } else {
      accept(what);
      watch_the_end(what.block.last(), low);
    }
    tell_numbers();
    changed_.notify_all();
  }
  if (!low) return;
  try {
    config_->options.on_low_water(*low);
  } catch (...) {
    source_->log->write(log_level::warning, "a callback for low water threw; it was called from the thread that refills sequences");
  }
}

/// The refill was answered with something that is no block.
void sequence_core::refuse(const error& why) {
  ++failures_;
  failure_ = why;
}

/// The epoch of a grant, as far as it matters; 0: not known. It may ask the store, so it is not called under the lock: what it reads is
/// written by this thread only, the refiller's.
std::int64_t sequence_core::epoch_of(const block_grant& what) const noexcept {
  if (what.epoch != 0 || !what.block.has_next() || (epoch_ != 0 && what.block.first() > highest_)) return what.epoch;
  try {
    const auto now = source_->store->peek(config_->name);
    return now ? now->epoch : 0;
  } catch (...) {
    return 0;  // the next grant asks again
  }
}

/// A lower block means that the store has forgotten what it granted, unless it is known to be of another epoch.
bool sequence_core::went_back(const block_grant& what, std::int64_t epoch) {
  if (epoch != 0 && epoch_ != 0 && epoch != epoch_) {
    // Reset, or begun again. What was prepared belongs to the time before.
    next_.reset();
    highest_ = 0;
  }
  if (epoch != 0) epoch_ = epoch;
  return what.block.first() <= highest_;
}

void sequence_core::accept(const block_grant& what) {
  ++refills_;
  numbers_->refills->add();
  failure_.reset();
  highest_ = what.block.last();
  if (lease_.follows(what.block.first())) {
    lease_.extend(what.block.last(), sizing_.margin(lease_.left() + what.block.size()));
  } else {
    next_ = span{what.block.first(), what.block.last()};
  }
}

void sequence_core::install(span block) {
  if (lease_.touched()) last_before_ = config_->range.id(lease_.ordinal(lease_.reached() - 1));
  lease_.replace(block.first, block.last, sizing_.margin(static_cast<std::uint64_t>(block.last - block.first) + 1));
}

void sequence_core::watch_the_end(std::int64_t last, std::optional<low_water_report>& report) {
  const auto all = static_cast<double>(config_->range.limit());
  left_ = static_cast<std::uint64_t>(config_->range.limit() - last);
  const double fraction = static_cast<double>(left_) / all;
  if (!config_->options.on_low_water || low_water_told_ || fraction > config_->options.low_water) return;
  low_water_told_ = true;
  report = low_water_report{.name = config_->name, .left = left_, .left_fraction = fraction};
}

std::uint64_t sequence_core::share(std::uint64_t handles) const {
  const std::scoped_lock lock(mutex_);
  if (!lease_.open()) return 1;
  return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(sizing_.size()) / (8 * std::max<std::uint64_t>(1, handles)));
}

std::optional<std::int64_t> sequence_core::position() const {
  const std::scoped_lock lock(mutex_);
  if (!lease_.touched()) return last_before_;
  return config_->range.id(lease_.ordinal(lease_.reached() - 1));
}

void sequence_core::invalidate() {
  const std::scoped_lock lock(mutex_);
  if (lease_.touched()) last_before_ = config_->range.id(lease_.ordinal(lease_.reached() - 1));
  lease_.take_rest();
  lease_.publish(0);
  next_.reset();
  discard_ = requested_;
}

sequence_stats sequence_core::stats() const {
  const std::scoped_lock lock(mutex_);
  const std::uint64_t waiting = next_ ? static_cast<std::uint64_t>(next_->last - next_->first) + 1 : 0;
  return {.ids = lease_.drawn(),
          .refills = refills_,
          .failures = failures_,
          .in_doubt = in_doubt_,
          .stalls = stalls_,
          .redraws = redraws_,
          .at_risk = lease_.left() + waiting,
          .left = left_,
          .block = sizing_.size(),
          .rate = sizing_.rate(),
          .refill_latency = sizing_.latency()};
}

void sequence_core::tell_numbers() {
  const std::uint64_t ids = lease_.drawn();
  numbers_->ids->add(ids - std::min(ids, std::exchange(told_ids_, ids)));
  const std::uint64_t waiting = next_ ? static_cast<std::uint64_t>(next_->last - next_->first) + 1 : 0;
  numbers_->at_risk->set(static_cast<double>(lease_.left() + waiting));
  numbers_->left->set(static_cast<double>(left_));
}

sequence_close_report sequence_core::close(time_point deadline) {
  std::unique_lock lock(mutex_);
  if (std::exchange(closed_, true)) return {};
  if (source_->refills.forget(*this)) requested_ = false;
  changed_.notify_all();
  const std::int64_t rest = lease_.take_rest();
  const std::uint64_t used = lease_.drawn();
  // Unsigned: what comes after the last number there is has no sign.
  const auto after_lease = static_cast<std::uint64_t>(lease_.ordinal(lease_.high()));
  const auto last_of_lease = static_cast<std::int64_t>(after_lease - 1);
  lease_.publish(0);
  sequence_close_report report{.unused = after_lease - static_cast<std::uint64_t>(rest)};
  const auto waiting = std::exchange(next_, std::nullopt);
  if (waiting) report.unused += static_cast<std::uint64_t>(waiting->last - waiting->first) + 1;
  numbers_->ids->add(used - std::min(used, std::exchange(told_ids_, used)));
  numbers_->at_risk->set(0.0);
  if (!config_->options.give_back || report.unused == 0 || poison_) return report;
  // A block that is on its way would make what comes back wrong: wait for it, and give back nothing if it does not come.
  if (!changed_.wait_until(lock, deadline, [this] { return !requested_; })) return report;
  const std::int64_t last_used = (waiting ? waiting->first : rest) - 1;
  const counter_state granted{.last = waiting ? waiting->last : last_of_lease, .epoch = epoch_};
  if (granted.last != highest_) return report;  // it came meanwhile
  lock.unlock();
  try {
    counter_state expected = granted;
    if (expected.epoch == 0) {
      const auto now = source_->store->peek(config_->name);
      if (!now) return report;
      expected.epoch = now->epoch;
    }
    report.given_back = source_->store->give_back(config_->name, last_used, expected);
  } catch (const error& e) {
    source_->log->write_limited("sequence-give-back", log_level::warning, std::string("unused ids were not given back: ") + e.what());
  } catch (...) {
    source_->log->write_limited("sequence-give-back", log_level::warning, "unused ids were not given back: the block store failed");
  }
  return report;
}

}  // namespace HOLDFAST_NAMESPACE::detail
