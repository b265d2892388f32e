#include "sequence/source.hpp"

#include <string>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::sequence {

void settings_check::check() const {
  std::string reasons;
  for (const auto& reason : store_->unsafe_settings())
    reasons.append(reasons.empty() ? "" : "; ").append(reason);
  if (!reasons.empty()) {
    const std::string message =
        "the store of the sequences can forget numbers that it granted, and grant them again: " +
        reasons;
    if (!allow_unsafe_)
      throw error(errc::unsupported_type,
                  message + "; or allow it (.allow_unsafe, --allow-unsafe)");
    log_->write(log_level::warning, message);
  }
}

source::source(std::shared_ptr<block_store> blocks, const sequence_environment& environment,
               sequence_store_options store_options)
    : options(std::move(store_options)),
      store(std::move(blocks)),
      clock(environment.clock ? environment.clock : system_clock()),
      log(std::make_shared<const logger>(environment.log, log_limiter::options{.clock = clock})),
      metrics(isolate(environment.metrics)),
      settings(std::make_shared<settings_check>(store, log, environment.allow_unsafe)),
      refills({.store = store, .log = log, .before_first = [check = settings] { check->run(); }}) {}

std::shared_ptr<source> make_source(std::shared_ptr<block_store> blocks,
                                    const sequence_environment& environment,
                                    sequence_store_options store_options) {
  return make_process_bound<source>(std::move(blocks), environment, std::move(store_options));
}

}  // namespace HOLDFAST_NAMESPACE::detail::sequence
