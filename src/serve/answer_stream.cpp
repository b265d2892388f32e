#include "serve/answer_stream.hpp"

#include "serve/loop_worker.hpp"

#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve {

stream_queue::append_result stream_queue::append(std::string_view piece) {
  const std::scoped_lock lock(mutex_);
  if (status_ != status::open || closed_) return append_result::refused;
  if (text_.size() + piece.size() > options.max_queued) {
    status_ = status::cut;
    too_slow_ = true;
    closed_ = true;
    std::string().swap(text_);
    woken_ = true;
    return append_result::cut_and_wake_loop;
  }
  text_.append(piece);
  return std::exchange(woken_, true) ? append_result::appended : append_result::wake_loop;
}

bool stream_queue::end(std::string_view last_piece) {
  const std::scoped_lock lock(mutex_);
  if (status_ != status::open || closed_) return false;
  text_.append(last_piece);
  status_ = status::ended;
  return !std::exchange(woken_, true);
}

bool stream_queue::cut() noexcept {
  const std::scoped_lock lock(mutex_);
  if (status_ != status::open || closed_) return false;
  status_ = status::cut;
  return !std::exchange(woken_, true);
}

stream_queue::content stream_queue::take_content() {
  content taken;
  {
    const std::scoped_lock lock(mutex_);
    woken_ = false;
    taken = {.text = std::exchange(text_, {}), .status = status_};
  }
  if (options.on_progress && !taken.text.empty()) options.on_progress();
  return taken;
}

bool stream_queue::has_content() const {
  const std::scoped_lock lock(mutex_);
  return !text_.empty() || status_ != status::open;
}

bool stream_queue::is_cut() const {
  const std::scoped_lock lock(mutex_);
  return status_ == status::cut;
}

void stream_queue::end_by_server() { (void)end(options.last_piece); }

answer_stream::answer_stream(std::shared_ptr<loop_worker> worker, std::uint64_t connection,
                             std::shared_ptr<stream_queue> queue) noexcept
    : worker_(std::move(worker)), connection_(connection), queue_(std::move(queue)) {}

answer_stream& answer_stream::operator=(answer_stream&& other) noexcept {
  if (this == &other) return *this;
  abandon();
  worker_ = std::move(other.worker_);
  connection_ = other.connection_;
  queue_ = std::move(other.queue_);
  return *this;
}

answer_stream::~answer_stream() { abandon(); }

void answer_stream::abandon() noexcept {
  if (!queue_) return;
  try {
    if (queue_->cut()) wake();
  } catch (...) {  // NOLINT(bugprone-empty-catch)
    // No memory: the connection stays until the client closes it.
  }
}

bool answer_stream::write(std::string_view piece) {
  if (!is_open()) return false;
  switch (queue_->append(piece)) {
    case stream_queue::append_result::refused:
      return false;
    case stream_queue::append_result::appended:
      break;
    case stream_queue::append_result::wake_loop:
      wake();
      break;
    case stream_queue::append_result::cut_and_wake_loop:
      wake();
      return false;
  }
  return is_open();
}

void answer_stream::close(std::string_view last_piece) {
  if (queue_ && queue_->end(last_piece)) wake();
}

void answer_stream::wake() {
  if (!worker_->continue_stream(connection_)) queue_->mark_closed();
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
