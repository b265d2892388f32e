#include "commands/outbox/program_guard.hpp"

#include <holdfast/error.hpp>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <set>
#include <system_error>

namespace holdfast::cli {

namespace {

/// One message of the pipe. It is smaller than PIPE_BUF, so messages do not mix.
struct program_notice {
  pid_t program = 0;
  int running = 0;
};

[[noreturn]] void watch_programs(int notices) {
  ::setsid();
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE}) {
    struct sigaction ignore{};
    ignore.sa_handler = SIG_IGN;
    ::sigaction(number, &ignore, nullptr);
  }
  ::prctl(PR_SET_NAME, "holdfast-guard");
  // It must not keep pipes, files or connections of the worker open.
  ::dup2(notices, STDIN_FILENO);
  const int nothing = ::open("/dev/null", O_RDWR);
  ::dup2(nothing, STDOUT_FILENO);
  ::dup2(nothing, STDERR_FILENO);
  ::close_range(STDERR_FILENO + 1, ~0U, 0);
  (void)!::chdir("/");
  std::set<pid_t> programs;
  program_notice notice;
  while (true) {
    const ssize_t received = ::read(STDIN_FILENO, &notice, sizeof notice);
    if (received < 0 && errno == EINTR) continue;
    if (received != sizeof notice) break;
    if (notice.running != 0) programs.insert(notice.program);
    else programs.erase(notice.program);
  }
  for (const auto program : programs) (void)::kill(-program, SIGKILL);
  ::_exit(0);
}

[[noreturn]] void fail_to_guard(int reason) {
  throw error(
      errc::unavailable,
      "cannot start the process that watches programs: " + std::generic_category().message(reason) +
          "; try again when the machine is less busy",
      {.transient = true});
}

}  // namespace

program_guard::program_guard() {
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail_to_guard(errno);
  guard_ = ::fork();
  if (guard_ == 0) {
    ::close(ends[1]);
    watch_programs(ends[0]);
  }
  const int reason = errno;
  ::close(ends[0]);
  pipe_ = ends[1];
  if (guard_ > 0) return;
  ::close(pipe_);
  fail_to_guard(reason);
}

program_guard::~program_guard() {
  ::close(pipe_);
  while (::waitpid(guard_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void program_guard::add_this_process() const noexcept { send(::getpid(), true); }

void program_guard::remove(pid_t program) const noexcept { send(program, false); }

void program_guard::send(pid_t program, bool running) const noexcept {
  const program_notice notice{.program = program, .running = running ? 1 : 0};
  while (::write(pipe_, &notice, sizeof notice) < 0 && errno == EINTR) {
  }
}

}  // namespace holdfast::cli
