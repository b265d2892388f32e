#include "store/write_behind/queue_state.hpp"

#include "base/backoff.hpp"
#include "base/duration_limit.hpp"
#include "store/checks.hpp"

#include <algorithm>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::store {

namespace {

write_behind_options checked(const std::shared_ptr<holdfast::store>& next,
                             write_behind_options options) {
  const auto refuse_if = [](bool invalid, const char* option, const char* message) {
    if (invalid) throw error(errc::invalid_argument, message, {.path = option});
  };
  refuse_if(!next, "next", "write-behind needs a store to write to");
  refuse_if(options.max_entries == 0, "max_entries", "max_entries must be at least 1");
  refuse_if(options.max_bytes < 4096, "max_bytes", "max_bytes must be at least 4096");
  refuse_if(options.batch_entries == 0, "batch_entries", "batch_entries must be at least 1");
  refuse_if(options.retry_first.count() <= 0, "retry_first", "retry_first must be positive");
  refuse_if(options.retry_longest < options.retry_first, "retry_longest",
            "retry_longest must not be shorter than retry_first");
  refuse_if(options.refresh_after.count() < 0, "refresh_after",
            "refresh_after must not be negative");
  check_max_skew(options.max_skew);
  if (!options.clock) options.clock = system_clock();
  for (auto* const duration :
       {&options.block_for, &options.refresh_after, &options.retry_first, &options.retry_longest,
        &options.stalled_after, &options.scan_flush}) {
    *duration = limit_duration(*duration);
  }
  options.batch_entries =
      std::min(options.batch_entries, std::max<std::size_t>(1, options.max_entries / 2));
  return options;
}

}  // namespace

retry_pause::retry_pause(const write_behind_options& options)
    : first_(options.retry_first),
      longest_(options.retry_longest),
      random_(options.jitter_seed != 0
                  ? static_cast<std::minstd_rand::result_type>(options.jitter_seed)
                  : std::random_device{}()) {}

void retry_pause::add_failure(time now) {
  not_before_ = now + with_jitter(doubled_pause(first_, failures_, longest_), random_);
  ++failures_;
  if (!failing_since_) failing_since_ = now;
}

void retry_pause::reset() noexcept {
  failures_ = 0;
  failing_since_.reset();
  not_before_ = time::min();
}

queue_state::queue_state(std::shared_ptr<holdfast::store> store_below,
                         write_behind_options unchecked_options,
                         std::shared_ptr<const queue_rules> rules_to_use)
    : next(std::move(store_below)),
      options(checked(next, std::move(unchecked_options))),
      rules(std::move(rules_to_use)),
      log(options.log, {.clock = options.clock}),
      pending(options, *rules),
      retry(options) {}

timestamp queue_state::horizon() const noexcept {
  return skew_horizon(options.clock->now(), options.max_skew);
}

void queue_state::check_open() const {
  if (closed)
    throw error(errc::unavailable, "the write-behind store is closed; it accepts no more writes");
}

write_behind_numbers queue_state::numbers() const {
  const auto now = steady_now();
  auto result = pending.numbers(now);
  const auto failing_since = retry.failing_since();
  result.stalled = failing_since && now - *failing_since >= options.stalled_after;
  return result;
}

}  // namespace HOLDFAST_NAMESPACE::detail::store
