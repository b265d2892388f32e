#include "serve/api/call_limit.hpp"

#include "serve/api/server_refusal.hpp"

namespace HOLDFAST_NAMESPACE::detail::serve {

call_limit::running_call::~running_call() {
  const std::scoped_lock lock(limit_.mutex_);
  limit_.starts_.erase(start_);
}

call_limit::running_call call_limit::begin(time_point now) {
  const std::scoped_lock lock(mutex_);
  if (starts_.size() >= most_ && now - starts_.front() > slow_)
    throw server_refusal(errc::unavailable, refusal_.reason, refusal_.message);
  return {*this, starts_.insert(starts_.end(), now)};
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
