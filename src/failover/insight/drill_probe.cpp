#include "failover/insight/drill_probe.hpp"

namespace HOLDFAST_NAMESPACE::detail::failover {

namespace {

thread_local drill_probe* probe_of_this_thread = nullptr;

}  // namespace

drill_probe::drill_probe() noexcept { probe_of_this_thread = this; }

drill_probe::~drill_probe() { probe_of_this_thread = nullptr; }

bool drill_probe::note_active() noexcept {
  if (probe_of_this_thread == nullptr) return false;
  probe_of_this_thread->active_ = true;
  return true;
}

}  // namespace HOLDFAST_NAMESPACE::detail::failover
