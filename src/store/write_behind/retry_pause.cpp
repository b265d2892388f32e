#include "store/write_behind/retry_pause.hpp"

#include "base/backoff.hpp"

namespace HOLDFAST_NAMESPACE::detail::store {

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

}  // namespace HOLDFAST_NAMESPACE::detail::store
