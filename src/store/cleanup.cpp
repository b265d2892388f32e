#include <holdfast/store/cleanup.hpp>

#include "store/cleaner.hpp"

#include <utility>

namespace HOLDFAST_NAMESPACE {

class cleanup::impl : public cleaner {
 public:
  using cleaner::cleaner;
};

cleanup::cleanup(const database& on, std::shared_ptr<holdfast::store> what, cleanup_options how) {
  const auto& shared = on.shared();
  if (!what) throw error(errc::invalid_argument, "cleanup: there is no store to clean");
  cleaner_parts parts{
      .what = std::move(what), .on = shared->executor(), .clock = shared->options.clock, .log = shared->log, .metrics = shared->metrics};
  if (shared->pool && how.lease.count() != 0) parts.right = make_sql_lease(shared, how.prefix, "store.cleanup");
  impl_ = std::make_shared<impl>(std::move(parts), std::move(how));
  impl_->start();
}

cleanup::cleanup(cleanup&&) noexcept = default;

cleanup& cleanup::operator=(cleanup&& other) noexcept {
  if (this == &other) return *this;
  if (impl_) impl_->abandon();
  impl_ = std::move(other.impl_);
  return *this;
}

cleanup::~cleanup() {
  if (impl_) impl_->abandon();
}

cleanup_report cleanup::run_now() { return impl_->run_now(); }
cleanup_state cleanup::state() const { return impl_->state(); }
bool cleanup::close(std::chrono::steady_clock::time_point deadline) { return impl_->close(deadline); }

}  // namespace HOLDFAST_NAMESPACE
