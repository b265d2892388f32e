#include "outbox_exec.hpp"

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

[[noreturn]] void fail(const char* what, int reason) {
  throw error(errc::unavailable,
              std::string(what) + ": " + std::generic_category().message(reason) + "; try again when the machine is less busy",
              {.transient = true});
}

/// Variables of ours are not inherited, however they are spelt: they hold passwords and keys, and an inherited HOLDFAST_EVENT_ID must not win
/// over the one of the event.
bool is_own_variable(const char* variable) noexcept {
  constexpr std::string_view prefix = "HOLDFAST";
  return ::strncasecmp(variable, prefix.data(), prefix.size()) == 0;
}

/// One end of a pipe, closed when it goes.
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
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail("cannot make a pipe", errno);
  return {pipe_end(ends[0]), pipe_end(ends[1])};
}

/// A program that runs, with what it reads and what it complains.
class running_program {
 public:
  explicit running_program(const program_call& what) {
    auto [input_read, input_write] = make_pipe();
    auto [error_read, error_write] = make_pipe();
    std::array<std::string, 3> owned{"sh", "-c", what.command};
    std::array<char*, 4> arguments{owned[0].data(), owned[1].data(), owned[2].data(), nullptr};
    std::vector<std::string> added = what.environment;
    std::vector<char*> environment;
    environment.reserve(added.size() + 1);
    for (auto& each : added) environment.push_back(each.data());
    for (char** each = ::environ; *each != nullptr; ++each) {
      if (!is_own_variable(*each)) environment.push_back(*each);
    }
    environment.push_back(nullptr);

    posix_spawn_file_actions_t files;
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawn_file_actions_adddup2(&files, input_read.get(), STDIN_FILENO);
    ::posix_spawn_file_actions_adddup2(&files, error_write.get(), STDERR_FILENO);
    // Our threads block signals and the command line ignores SIGPIPE; the program must not inherit either.
    posix_spawnattr_t how;
    ::posix_spawnattr_init(&how);
    sigset_t none;
    sigemptyset(&none);
    sigset_t usual;
    sigemptyset(&usual);
    for (const int each : {SIGPIPE, SIGINT, SIGTERM}) sigaddset(&usual, each);
    ::posix_spawnattr_setsigmask(&how, &none);
    ::posix_spawnattr_setsigdefault(&how, &usual);
    // A group of its own: Ctrl-C ends the worker, which lets the handlers that run come to their end; and a stop reaches all it started.
    ::posix_spawnattr_setpgroup(&how, 0);
    ::posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    const int reason = ::posix_spawn(&child_, "/bin/sh", &files, &how, arguments.data(), environment.data());
    ::posix_spawnattr_destroy(&how);
    ::posix_spawn_file_actions_destroy(&files);
    if (reason != 0) fail("cannot start a program", reason);
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

  /// Writes, reads and waits until the program ended; it can be stopped all the while, whatever it closed before. What it left in the
  /// background may keep its pipes open: nobody waits for that.
  void converse(std::string_view input, const std::stop_token& lost) {
    const std::stop_callback on_stop(lost, [child = child_] { (void)::kill(-child, SIGTERM); });
    while (true) {
      if (input.empty()) input_.close();
      if (!error_.open() && !input_.open()) break;
      std::array<pollfd, 2> wanted{pollfd{error_.get(), POLLIN, 0}, pollfd{input_.get(), POLLOUT, 0}};
      // What is closed is -1, which poll passes over.
      const int ready = ::poll(wanted.data(), wanted.size(), look_after);
      if (ready < 0 && errno != EINTR) fail("cannot wait for a program", errno);
      // Silence, or somebody who never stops talking: it may not be the program any more.
      if (has_ended()) {
        for (int i = 0; i < most_reads && read_error(); ++i) {
        }
        return;
      }
      if (error_.open() && wanted[0].revents != 0) (void)read_error();
      if (input_.open() && wanted[1].revents != 0) {
        const ssize_t wrote = ::write(input_.get(), input.data(), input.size());
        if (wrote >= 0) input.remove_prefix(static_cast<std::size_t>(wrote));
        else if (errno != EAGAIN && errno != EINTR) input_.close();  // it does not read its input: its own business
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

  /// The last line that it complained, without its end.
  [[nodiscard]] std::string last_line() const {
    std::string_view text = complained_;
    while (text.ends_with('\n')) text.remove_suffix(1);
    return std::string(text.substr(text.rfind('\n') + 1));
  }

 private:
  /// Waits for it unless told not to. Does not reap it: a stop must not reach another process that got its number.
  [[nodiscard]] bool has_ended(int how = WNOHANG) const {
    siginfo_t ended{};
    while (::waitid(P_PID, static_cast<id_t>(child_), &ended, WEXITED | WNOWAIT | how) < 0 && errno == EINTR) {
    }
    return ended.si_pid != 0;
  }

  /// Whether there may be more.
  bool read_error() {
    std::array<char, 4096> room{};
    const ssize_t got = ::read(error_.get(), room.data(), room.size());
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) error_.close();
    if (got <= 0) return false;
    const std::string_view text(room.data(), static_cast<std::size_t>(got));
    (void)!::write(STDERR_FILENO, text.data(), text.size());
    complained_.append(text);
    if (complained_.size() > kept) complained_.erase(0, complained_.size() - kept);
    return true;
  }

  static constexpr std::size_t kept = 4096;
  static constexpr int look_after = 100;  // milliseconds
  static constexpr int most_reads = 16;   // all that a pipe holds
  pid_t child_ = 0;
  pipe_end input_{};
  pipe_end error_{};
  std::string complained_{};
};

}  // namespace

outcome run_program(const program_call& what, const std::stop_token& lost) {
  running_program program(what);
  program.converse(what.input, lost);
  const int status = program.wait();
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return outcome::done();
  std::string why = program.last_line();
  if (WIFSIGNALED(status)) {
    // How far it came nobody knows.
    return outcome::ambiguous("ended by signal " + std::to_string(WTERMSIG(status)) + (why.empty() ? "" : ": " + why));
  }
  const int code = WEXITSTATUS(status);
  why = "exit code " + std::to_string(code) + (why.empty() ? "" : ": " + why);
  if (code == exit_data_error) return outcome::permanent(std::move(why));
  if (code == exit_temporary_fail) return outcome::throttled(what.pause, std::move(why));
  return outcome::retry(std::move(why));
}

}  // namespace holdfast::cli
