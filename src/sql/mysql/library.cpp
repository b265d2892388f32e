#include "sql/mysql/library.hpp"

#include <holdfast/error.hpp>

#include <mysql.h>

#include <ctime>
#include <limits>
#include <mutex>

/// libmariadb exports this function, but none of its installed headers declares it. `mode` is 0 for
/// bytes that were read; the length of a failed read is -1.
extern "C" int ma_pvio_register_callback(my_bool add, void (*callback)(int mode, MYSQL* handle,
                                                                       const unsigned char* bytes,
                                                                       std::size_t length));

namespace HOLDFAST_NAMESPACE::detail::sql::mysql {

namespace {

struct thread_initialisation {
  thread_initialisation() { mysql_thread_init(); }
  thread_initialisation(const thread_initialisation&) = delete;
  thread_initialisation& operator=(const thread_initialisation&) = delete;
  ~thread_initialisation() { mysql_thread_end(); }
};

thread_local receive_observer* observer_of_thread = nullptr;

/// libmariadb calls it for all connections of the process, including those of the application.
void on_transfer(int mode, MYSQL* /*handle*/, const unsigned char* bytes,
                 std::size_t length) noexcept {
  constexpr int was_read = 0;
  const bool failed = length > std::numeric_limits<std::size_t>::max() / 2;
  if (observer_of_thread == nullptr || mode != was_read || failed) return;
  observer_of_thread->on_received(std::as_bytes(std::span(bytes, length)));
}

sigset_t sigpipe_set() noexcept {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGPIPE);
  return set;
}

bool sigpipe_is_pending() noexcept {
  sigset_t pending;
  sigemptyset(&pending);
  sigpending(&pending);
  return sigismember(&pending, SIGPIPE) == 1;
}

}  // namespace

void use_library() {
  static std::once_flag once;
  std::call_once(once, [] {
    // The initialisation ignores SIGPIPE for the whole process. Restore the application's action.
    struct sigaction previous{};
    const bool saved = sigaction(SIGPIPE, nullptr, &previous) == 0;
    const int failed = mysql_library_init(0, nullptr, nullptr);
    if (saved) sigaction(SIGPIPE, &previous, nullptr);
    if (failed != 0) throw error(errc::internal, "libmariadb cannot be initialised");
    if (ma_pvio_register_callback(1, &on_transfer) != 0)
      throw error(errc::internal, "libmariadb does not show what it receives");
  });
  static thread_local const thread_initialisation initialisation;
}

receive_observation::receive_observation(receive_observer& observer) noexcept {
  observer_of_thread = &observer;
}

receive_observation::~receive_observation() { observer_of_thread = nullptr; }

sigpipe_guard::sigpipe_guard(bool needed) noexcept {
  // A pending SIGPIPE belongs to the application, which blocks the signal itself then.
  if (!needed || sigpipe_is_pending()) return;
  const auto set = sigpipe_set();
  active_ = pthread_sigmask(SIG_BLOCK, &set, &previous_mask_) == 0;
}

sigpipe_guard::~sigpipe_guard() {
  if (!active_) return;
  const auto set = sigpipe_set();
  if (sigpipe_is_pending()) {
    constexpr timespec no_wait{0, 0};
    sigtimedwait(&set, nullptr, &no_wait);
  }
  pthread_sigmask(SIG_SETMASK, &previous_mask_, nullptr);
}

}  // namespace HOLDFAST_NAMESPACE::detail::sql::mysql
