#include "sql/mysql_library.hpp"

#include <holdfast/error.hpp>

#include <mysql.h>

#include <ctime>
#include <limits>
#include <mutex>

/// libmariadb exports it and declares it in none of its installed headers. `mode` is 0 for what was read; a failed read has the length -1.
extern "C" int ma_pvio_register_callback(my_bool add,
                                         void (*callback)(int mode, MYSQL* handle, const unsigned char* bytes, std::size_t length));

namespace HOLDFAST_NAMESPACE::sql::mysql {

namespace {

struct thread_use {
  thread_use() { mysql_thread_init(); }
  thread_use(const thread_use&) = delete;
  thread_use& operator=(const thread_use&) = delete;
  ~thread_use() { mysql_thread_end(); }
};

thread_local receiver* receiver_of_thread = nullptr;

/// Called for all connections of the process, also those that are not ours.
void on_transfer(int mode, MYSQL* /*handle*/, const unsigned char* bytes, std::size_t length) noexcept {
  constexpr int was_read = 0;
  if (receiver_of_thread == nullptr || mode != was_read || length > std::numeric_limits<std::size_t>::max() / 2) return;
  receiver_of_thread->on_received(std::as_bytes(std::span(bytes, length)));
}

sigset_t only_pipe() noexcept {
  sigset_t made;
  sigemptyset(&made);
  sigaddset(&made, SIGPIPE);
  return made;
}

bool pipe_is_pending() noexcept {
  sigset_t pending;
  sigemptyset(&pending);
  sigpending(&pending);
  return sigismember(&pending, SIGPIPE) == 1;
}

}  // namespace

void use_library() {
  static std::once_flag once;
  std::call_once(once, [] {
    // The initialisation ignores SIGPIPE for the whole process. How a process takes its signals is not ours to decide: put it back.
    struct sigaction before{};
    const bool known = sigaction(SIGPIPE, nullptr, &before) == 0;
    const int failed = mysql_library_init(0, nullptr, nullptr);
    if (known) sigaction(SIGPIPE, &before, nullptr);
    if (failed != 0) throw error(errc::internal, "libmariadb cannot be initialised");
    if (ma_pvio_register_callback(1, &on_transfer) != 0) throw error(errc::internal, "libmariadb does not show what it receives");
  });
  static thread_local const thread_use use;
}

shown_bytes::shown_bytes(receiver& to) noexcept { receiver_of_thread = &to; }

shown_bytes::~shown_bytes() { receiver_of_thread = nullptr; }

quiet_pipe::quiet_pipe(bool wanted) noexcept {
  // One that waits already belongs to the application, which then blocks the signal itself.
  if (!wanted || pipe_is_pending()) return;
  const auto pipe = only_pipe();
  active_ = pthread_sigmask(SIG_BLOCK, &pipe, &before_) == 0;
}

quiet_pipe::~quiet_pipe() {
  if (!active_) return;
  const auto pipe = only_pipe();
  if (pipe_is_pending()) {
    constexpr timespec now{0, 0};
    sigtimedwait(&pipe, nullptr, &now);
  }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace HOLDFAST_NAMESPACE::sql::mysql
