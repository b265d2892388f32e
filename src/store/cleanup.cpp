#include <holdfast/store/cleanup.hpp>

#include "store/cleaner.hpp"

#include <array>
#include <utility>

namespace HOLDFAST_NAMESPACE {

std::string_view to_string(cleanup_result result) noexcept {
  static constexpr std::array<std::string_view, 7> names{
      "cleaned", "limited", "held_elsewhere", "running", "lost", "stopped", "failed"};
  const auto index = static_cast<std::size_t>(result);
  return index < names.size() ? names[index] : "unknown";
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
bool cleanup::close(std::chrono::steady_clock::time_point deadline) {
  return impl_->close(deadline);
}

}  // namespace HOLDFAST_NAMESPACE
