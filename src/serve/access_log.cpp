#include "serve/access_log.hpp"

#include <holdfast/error.hpp>

#include "base/thread.hpp"
#include "serve/api/json_writer.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

int open_log(const std::string& file) {
  const int descriptor =
      file == "-" ? ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)
                  : ::open(file.c_str(),
                           O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0640);
  if (descriptor < 0)
    throw error(errc::unavailable,
                "the access log cannot be opened: " + std::generic_category().message(errno),
                {.path = file});
  return descriptor;
}

std::string line_of_request(const answered_request& request, timestamp now) {
  json_writer out;
  out.begin_object().member("at", now);
  if (!request.reference.empty()) out.member("request", request.reference);
  out.member("method", request.method).member("path", request.path);
  out.member("status", request.status).member("micros", std::int64_t{request.duration.count()});
  out.member("received", request.content_bytes).member("sent", request.answer_bytes);
  if (!request.caller.empty()) out.member("caller", request.caller);
  if (!request.outcome.empty())
    out.member("route", request.endpoint).member("outcome", request.outcome);
  return out.member("address", request.address).end_object().take() + '\n';
}

}  // namespace

access_log::access_log(std::string file, std::shared_ptr<const holdfast::clock> clock)
    : file_(std::move(file)), clock_(std::move(clock)), descriptor_(open_log(file_)) {
  try {
    thread_ = start_quiet_thread("hf-access-log", [this] { run(); });
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

access_log::~access_log() {
  {
    std::unique_lock lock(mutex_);
    stopping_ = true;
    wake_.notify_all();
    (void)wake_.wait_for(lock, std::chrono::seconds(1), [this] { return ended_; });
  }
  if (thread_.joinable()) thread_.join();
  ::close(descriptor_);
}

void access_log::add(const answered_request& request) noexcept {
  if (request.endpoint == "/healthz" || request.endpoint == "/readyz") return;
  try {
    const auto line = line_of_request(request, clock_->now());
    const std::scoped_lock lock(mutex_);
    if (waiting_.size() + line.size() > max_waiting) {
      ++dropped_;
      return;
    }
    if (waiting_.empty()) wake_.notify_all();
    waiting_ += line;
  } catch (const std::exception&) {
    ++dropped_;
  }
}

void access_log::reopen() {
  const int descriptor = open_log(file_);
  const std::scoped_lock lock(file_mutex_);
  ::close(std::exchange(descriptor_, descriptor));
}

void access_log::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    if (waiting_.empty()) break;
    const auto lines = std::exchange(waiting_, {});
    lock.unlock();
    write_all(lines);
    lock.lock();
  }
  ended_ = true;
  wake_.notify_all();
}

void access_log::write_all(const std::string& lines) noexcept {
  const std::scoped_lock file_lock(file_mutex_);
  std::string_view rest = lines;
  while (!rest.empty()) {
    // A reader that does not read must not keep the process from ending.
    pollfd polled{descriptor_, POLLOUT, 0};
    const int ready = ::poll(&polled, 1, 100);
    if (ready == 0) {
      const std::scoped_lock lock(mutex_);
      if (stopping_) break;
      continue;
    }
    // At most what a pipe that is writable takes without blocking.
    const auto count = ::write(descriptor_, rest.data(), std::min<std::size_t>(rest.size(), 4096));
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count <= 0) break;
    rest.remove_prefix(static_cast<std::size_t>(count));
  }
  dropped_ += static_cast<std::uint64_t>(std::ranges::count(rest, '\n'));
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
