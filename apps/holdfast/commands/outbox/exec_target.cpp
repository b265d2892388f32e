#include "commands/outbox/exec_target.hpp"

#include <holdfast/error.hpp>

#include <fcntl.h>
#include <poll.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <optional>
#include <system_error>
#include <utility>

namespace holdfast::cli {

namespace {

[[noreturn]] void fail_to_run(const char* action, int reason) {
  throw error(errc::unavailable,
              std::string(action) + ": " + std::generic_category().message(reason) +
                  "; try again when the machine is less busy",
              {.transient = true});
}

/// The program does not inherit variables of Holdfast in any spelling: they have passwords and
/// keys, and an inherited HOLDFAST_EVENT_ID must not replace that of the event.
bool is_own_variable(const char* variable) noexcept {
  constexpr std::string_view prefix = "HOLDFAST";
  return ::strncasecmp(variable, prefix.data(), prefix.size()) == 0;
}

/// One end of a pipe. The destructor closes it.
class pipe_end {
 public:
  explicit pipe_end(int descriptor = -1) noexcept : descriptor_(descriptor) {}
  pipe_end(pipe_end&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  pipe_end& operator=(pipe_end&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~pipe_end() { close(); }
  void close() noexcept {
    if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  }
  [[nodiscard]] int get() const noexcept { return descriptor_; }
  [[nodiscard]] bool open() const noexcept { return descriptor_ >= 0; }

 private:
  int descriptor_;
};

std::pair<pipe_end, pipe_end> make_pipe() {
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail_to_run("cannot create a pipe", errno);
  return {pipe_end(ends[0]), pipe_end(ends[1])};
}

/// A running program with pipes to its standard input and standard error.
class running_program {
 public:
  running_program(const program_call& call, const program_guard& guard) : guard_(&guard) {
    auto [input_read, input_write] = make_pipe();
    auto [error_read, error_write] = make_pipe();
    std::array<std::string, 3> owned{"sh", "-c", call.command};
    std::array<char*, 4> arguments{owned[0].data(), owned[1].data(), owned[2].data(), nullptr};
    std::vector<std::string> added = call.environment;
    std::vector<char*> environment;
    environment.reserve(added.size() + 1);
    for (auto& variable : added) environment.push_back(variable.data());
    for (char** variable = ::environ; *variable != nullptr; ++variable) {
      if (!is_own_variable(*variable)) environment.push_back(*variable);
    }
    environment.push_back(nullptr);

    // Only async-signal-safe functions between fork and exec: this process has other threads.
    const pid_t parent = ::getpid();
    child_ = ::fork();
    if (child_ < 0) fail_to_run("cannot start a program", errno);
    if (child_ == 0) {
      // A process group of its own: Ctrl-C reaches only the worker, which waits for running
      // programs; and kill() reaches all processes that the program has started.
      ::setpgid(0, 0);
      guard_->add_this_process();
      // If the guard is killed together with the worker, at least the program itself ends.
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) ::_exit(exit_not_started);
      reset_signals();
      ::dup2(input_read.get(), STDIN_FILENO);
      ::dup2(error_write.get(), STDERR_FILENO);
      ::execve("/bin/sh", arguments.data(), environment.data());
      ::_exit(exit_not_started);
    }
    ::setpgid(child_, child_);  // kill() must reach the group from now on
    exit_event_ = pipe_end(static_cast<int>(::syscall(SYS_pidfd_open, child_, 0)));
    input_ = std::move(input_write);
    error_ = std::move(error_read);
    ::fcntl(input_.get(), F_SETFL, O_NONBLOCK);
    ::fcntl(error_.get(), F_SETFL, O_NONBLOCK);
  }
  running_program(const running_program&) = delete;
  running_program& operator=(const running_program&) = delete;
  ~running_program() {
    if (child_ <= 0) return;
    (void)::kill(-child_, SIGKILL);
    wait();
  }

  /// Writes the input and reads standard error until the program exits. Sends SIGTERM to it when
  /// `lost` is requested, and SIGKILL if it has not ended soon after that. Does not wait for
  /// background processes of the program, which may keep its pipes open.
  void exchange(std::string_view input, const std::stop_token& lost) {
    const std::stop_callback on_stop(lost, [child = child_] { (void)::kill(-child, SIGTERM); });
    std::optional<std::chrono::steady_clock::time_point> kill_at;
    while (true) {
      if (input.empty()) input_.close();
      std::array<pollfd, 3> requests{pollfd{error_.get(), POLLIN, 0},
                                     pollfd{input_.get(), POLLOUT, 0},
                                     pollfd{exit_event_.get(), POLLIN, 0}};
      // poll() ignores closed descriptors, which are -1.
      const int ready = ::poll(requests.data(), requests.size(), poll_interval_ms);
      if (ready < 0 && errno != EINTR) fail_to_run("cannot wait for a program", errno);
      // Check in any case: a background process may hold the pipes, silent or writing.
      if (has_ended()) {
        for (int i = 0; i < max_reads && read_error(); ++i) {
        }
        return;
      }
      if (lost.stop_requested()) {
        const auto now = std::chrono::steady_clock::now();
        if (!kill_at) kill_at = now + time_to_end;
        if (now >= *kill_at) (void)::kill(-child_, SIGKILL);
      }
      if (error_.open() && requests[0].revents != 0) (void)read_error();
      if (input_.open() && requests[1].revents != 0) {
        const ssize_t written = ::write(input_.get(), input.data(), input.size());
        if (written >= 0) input.remove_prefix(static_cast<std::size_t>(written));
        // The program closed its standard input, which is allowed.
        else if (errno != EAGAIN && errno != EINTR) input_.close();
      }
    }
  }

  int wait() {
    int status = 0;
    guard_->remove(child_);
    while (::waitpid(child_, &status, 0) < 0 && errno == EINTR) {
    }
    child_ = 0;
    return status;
  }

  /// The last line of standard error, without its line end.
  [[nodiscard]] std::string last_line() const {
    std::string_view text = error_text_;
    while (text.ends_with('\n')) text.remove_suffix(1);
    return std::string(text.substr(text.rfind('\n') + 1));
  }

 private:
  /// Threads of this process block signals, and the process ignores SIGPIPE. The program must
  /// inherit neither.
  static void reset_signals() noexcept {
    struct sigaction defaults{};
    defaults.sa_handler = SIG_DFL;
    for (const int number : {SIGPIPE, SIGINT, SIGTERM}) ::sigaction(number, &defaults, nullptr);
    sigset_t blocked;
    sigemptyset(&blocked);
    ::sigprocmask(SIG_SETMASK, &blocked, nullptr);
  }

  /// Does not reap the program: until then its process id is not reused, so that kill() cannot
  /// reach another process.
  [[nodiscard]] bool has_ended() const {
    siginfo_t ended{};
    while (::waitid(P_PID, static_cast<id_t>(child_), &ended, WEXITED | WNOWAIT | WNOHANG) < 0 &&
           errno == EINTR) {
    }
    return ended.si_pid != 0;
  }

  /// Returns whether there may be more to read.
  bool read_error() {
    std::array<char, 4096> buffer{};
    const ssize_t received = ::read(error_.get(), buffer.data(), buffer.size());
    if (received == 0 || (received < 0 && errno != EAGAIN && errno != EINTR)) error_.close();
    if (received <= 0) return false;
    const std::string_view text(buffer.data(), static_cast<std::size_t>(received));
    (void)!::write(STDERR_FILENO, text.data(), text.size());
    error_text_.append(text);
    if (error_text_.size() > max_error_text)
      error_text_.erase(0, error_text_.size() - max_error_text);
    return true;
  }

  static constexpr std::size_t max_error_text = 4096;
  static constexpr int poll_interval_ms = 100;
  static constexpr int max_reads = 16;  // enough for a full pipe
  /// From SIGTERM to SIGKILL. Shorter than the time after which a worker gives up a handler.
  static constexpr std::chrono::seconds time_to_end{3};
  static constexpr int exit_not_started = 127;  // as of a shell
  const program_guard* guard_;
  pid_t child_ = 0;
  /// Can be read when the program has ended.
  pipe_end exit_event_{};
  pipe_end input_{};
  pipe_end error_{};
  std::string error_text_{};
};

}  // namespace

outcome run_program(const program_call& call, const program_guard& guard,
                    const std::stop_token& lost) {
  running_program program(call, guard);
  program.exchange(call.input, lost);
  const int status = program.wait();
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return outcome::done();
  std::string reason = program.last_line();
  if (WIFSIGNALED(status)) {
    // It is unknown how much the program has done.
    return outcome::ambiguous("ended by signal " + std::to_string(WTERMSIG(status)) +
                              (reason.empty() ? "" : ": " + reason));
  }
  const int code = WEXITSTATUS(status);
  reason = "exit code " + std::to_string(code) + (reason.empty() ? "" : ": " + reason);
  if (code == exit_data_error) return outcome::permanent(std::move(reason));
  if (code == exit_temporary_fail) return outcome::throttled(call.retry_delay, std::move(reason));
  return outcome::retry(std::move(reason));
}

}  // namespace holdfast::cli
