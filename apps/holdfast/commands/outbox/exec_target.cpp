#include "commands/outbox/exec_target.hpp"

#include <holdfast/error.hpp>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <strings.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
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
  explicit running_program(const program_call& call) {
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

    posix_spawn_file_actions_t files;
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawn_file_actions_adddup2(&files, input_read.get(), STDIN_FILENO);
    ::posix_spawn_file_actions_adddup2(&files, error_write.get(), STDERR_FILENO);
    // Threads of this process block signals, and the process ignores SIGPIPE. The program must
    // inherit neither.
    posix_spawnattr_t attributes;
    ::posix_spawnattr_init(&attributes);
    sigset_t blocked;
    sigemptyset(&blocked);
    sigset_t defaults;
    sigemptyset(&defaults);
    for (const int signal : {SIGPIPE, SIGINT, SIGTERM}) sigaddset(&defaults, signal);
    ::posix_spawnattr_setsigmask(&attributes, &blocked);
    ::posix_spawnattr_setsigdefault(&attributes, &defaults);
    // A process group of its own: Ctrl-C reaches only the worker, which waits for running programs;
    // and kill() reaches all processes that the program has started.
    ::posix_spawnattr_setpgroup(&attributes, 0);
    ::posix_spawnattr_setflags(
        &attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    const int reason = ::posix_spawn(&child_, "/bin/sh", &files, &attributes, arguments.data(),
                                     environment.data());
    ::posix_spawnattr_destroy(&attributes);
    ::posix_spawn_file_actions_destroy(&files);
    if (reason != 0) fail_to_run("cannot start a program", reason);
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
  /// `lost` is requested. Does not wait for background processes of the program, which may keep its
  /// pipes open.
  void exchange(std::string_view input, const std::stop_token& lost) {
    const std::stop_callback on_stop(lost, [child = child_] { (void)::kill(-child, SIGTERM); });
    while (true) {
      if (input.empty()) input_.close();
      if (!error_.open() && !input_.open()) break;
      std::array<pollfd, 2> requests{pollfd{error_.get(), POLLIN, 0},
                                     pollfd{input_.get(), POLLOUT, 0}};
      // poll() ignores closed descriptors, which are -1.
      const int ready = ::poll(requests.data(), requests.size(), poll_interval_ms);
      if (ready < 0 && errno != EINTR) fail_to_run("cannot wait for a program", errno);
      // Check in any case: a background process may hold the pipes, silent or writing.
      if (has_ended()) {
        for (int i = 0; i < max_reads && read_error(); ++i) {
        }
        return;
      }
      if (error_.open() && requests[0].revents != 0) (void)read_error();
      if (input_.open() && requests[1].revents != 0) {
        const ssize_t written = ::write(input_.get(), input.data(), input.size());
        if (written >= 0) input.remove_prefix(static_cast<std::size_t>(written));
        // The program closed its standard input, which is allowed.
        else if (errno != EAGAIN && errno != EINTR) input_.close();
      }
    }
    (void)has_ended(0);
  }

  int wait() {
    int status = 0;
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
  /// Waits for the program only if `flags` is 0. Does not reap it: until then its process id is not
  /// reused, so that kill() cannot reach another process.
  [[nodiscard]] bool has_ended(int flags = WNOHANG) const {
    siginfo_t ended{};
    while (::waitid(P_PID, static_cast<id_t>(child_), &ended, WEXITED | WNOWAIT | flags) < 0 &&
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
  pid_t child_ = 0;
  pipe_end input_{};
  pipe_end error_{};
  std::string error_text_{};
};

}  // namespace

outcome run_program(const program_call& call, const std::stop_token& lost) {
  running_program program(call);
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
