#include "serve/api/question_gate.hpp"

#include "serve/api/server_refusal.hpp"

#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve {

question_gate::turn question_gate::enter(const std::string& database) {
  std::unique_lock lock(mutex_);
  auto& line = lines_[database];
  if (line.busy && line.waiting < max_waiting) {
    ++line.waiting;
    (void)changed_.wait_for(lock, longest_wait, [&] { return !line.busy; });
    --line.waiting;
  }
  if (line.busy)
    throw server_refusal(
        errc::unavailable, "busy_database",
        "other questions to this database are being answered; repeat the request later");
  line.busy = true;
  return {*this, database};
}

void question_gate::leave(const std::string& database) noexcept {
  {
    const std::scoped_lock lock(mutex_);
    const auto it = lines_.find(database);
    if (it != lines_.end()) it->second.busy = false;
  }
  changed_.notify_all();
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
