#include "store/write_behind/queue_state.hpp"

#include "base/duration_limit.hpp"
#include "store/checks.hpp"

#include <algorithm>
#include <string>
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
  refuse_if(options.quarantine_after == 0, "quarantine_after",
            "quarantine_after must be at least 1");
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

queue_state::queue_state(std::shared_ptr<holdfast::store> store_below,
                         write_behind_options unchecked_options,
                         std::shared_ptr<const queue_rules> rules_to_use)
    : next(std::move(store_below)),
      options(checked(next, std::move(unchecked_options))),
      rules(std::move(rules_to_use)),
      log(options.log, {.clock = options.clock}),
      given_up_log(options.log, {.clock = options.clock}),
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
  // The store fails, it does not answer, or it fails for single operations.
  const auto stalled = [&](const std::optional<time>& since) {
    return since && now - *since >= options.stalled_after;
  };
  result.stalled =
      stalled(retry.failing_since()) || stalled(writing_since) || stalled(pending.failing_since());
  return result;
}

void queue_state::report_given_up(const entry& value, const error& reason,
                                  given_up cause) const noexcept {
  const auto message = [cause] {
    switch (cause) {
      case given_up::refused:
        return "the store refused an entry permanently; it is not stored";
      case given_up::quarantined:
        return "an operation keeps failing for an unknown reason while others are written; it is "
               "given up";
      case given_up::dropped:
        return "the queue is full; the oldest operations are dropped";
    }
    return "";
  }();
  try {
    const auto id = cause == given_up::dropped ? std::string("dropped")
                                               : value.realm + "/" + value.name + "/" + value.key;
    const auto level = cause == given_up::dropped ? log_level::warning : log_level::error;
    given_up_log.write_limited(id, level, message,
                               {{.name = "name", .value = value.name},
                                {.name = "key", .value = value.key},
                                {.name = "problem", .value = reason.what()}});
    if (options.on_failed) options.on_failed(value, reason);
  } catch (...) {  // NOLINT(bugprone-empty-catch)
    // An exception of the listener must not disturb the writer.
  }
}

}  // namespace HOLDFAST_NAMESPACE::detail::store
