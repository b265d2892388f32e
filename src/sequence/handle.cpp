#include "sequence/handle.hpp"

#include <algorithm>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::sequence {

handle::handle(std::shared_ptr<sequence::sequence_state> state, std::int64_t max_ids)
    : state_(std::move(state)), max_ids_(static_cast<std::uint64_t>(max_ids)) {
  state_->add_handle();
}

handle::~handle() { state_->remove_handle(); }

std::int64_t handle::refill() {
  auto& tickets = state_->window();
  // The block size changes with the rate, and the fair share of it with the number of handles.
  const std::uint64_t count = std::min(max_ids_, state_->handle_share());
  drawn_ids ids{.count = count};
  if (const auto drawn = tickets.draw(count); drawn.is_id) {
    ids.first = tickets.id(drawn.ticket);
  } else {
    const draw_request request{
        .count = count, .deadline = state_->default_deadline(), .partial = true};
    // With a deadline it returns ids or throws.
    // NOLINTNEXTLINE(bugprone-unchecked-optional-access)
    ids = state_->draw_slowly(drawn.ticket, request).value();
  }
  const auto first = static_cast<std::uint64_t>(ids.first);
  window_->step = static_cast<std::uint64_t>(state_->config().range.increment());
  window_->end = first + ids.count * window_->step;
  window_->next = first + window_->step;
  return ids.first;
}

}  // namespace HOLDFAST_NAMESPACE::detail::sequence
