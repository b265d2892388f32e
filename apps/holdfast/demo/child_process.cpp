#include "demo/child_process.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/prctl.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>

namespace holdfast::cli {

namespace {

[[noreturn]] void fail_to_start(const char* action, int reason) {
  throw error(errc::unavailable, std::string(action) + ": " +
                                     std::generic_category().message(reason) +
                                     "; try again when the machine is less busy");
}

/// Both ends of a pipe. The destructor closes them.
struct pipe_ends {
  std::array<int, 2> ends{-1, -1};

  pipe_ends() {
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail_to_start("cannot create a pipe", errno);
  }
  pipe_ends(const pipe_ends&) = delete;
  pipe_ends& operator=(const pipe_ends&) = delete;
  ~pipe_ends() {
    for (int& descriptor : ends) close(descriptor);
  }
  static void close(int& descriptor) {
    if (descriptor >= 0) ::close(descriptor);
    descriptor = -1;
  }
};

constexpr const char* program = "/proc/self/exe";

/// The arguments of this program, as exec takes them.
class argument_list {
 public:
  explicit argument_list(const std::vector<std::string>& arguments) : words_{"holdfast"} {
    words_.insert(words_.end(), arguments.begin(), arguments.end());
    for (std::string& word : words_) pointers_.push_back(word.data());
    pointers_.push_back(nullptr);
  }
  [[nodiscard]] char** get() noexcept { return pointers_.data(); }

 private:
  std::vector<std::string> words_;
  std::vector<char*> pointers_{};
};

}  // namespace

running_self::running_self(const std::vector<std::string>& arguments) {
  pipe_ends channel;
  argument_list argv(arguments);
  child_ = ::fork();
  if (child_ < 0) fail_to_start("cannot start another process", errno);
  if (child_ == 0) {
    (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);  // never outlives the demonstration
    (void)::dup2(channel.ends[1], STDERR_FILENO);
    (void)::execv(program, argv.get());
    ::_exit(1);
  }
  pipe_ends::close(channel.ends[1]);
  standard_error_ = std::exchange(channel.ends[0], -1);
  for (;;) {
    char next = 0;
    const ssize_t received = ::read(standard_error_, &next, 1);
    if (received < 0 && errno == EINTR) continue;
    if (received <= 0) break;
    if (next == '\n') return;
    first_line_ += next;
  }
  const int status = wait_for_exit(std::exchange(child_, -1));
  ::close(std::exchange(standard_error_, -1));
  throw error(errc::unavailable, "the second process ended with status " + std::to_string(status) +
                                     ": " + first_line_);
}

running_self::~running_self() {
  if (child_ > 0) {
    (void)::kill(child_, SIGKILL);
    (void)wait_for_exit(child_);
  }
  if (standard_error_ >= 0) ::close(standard_error_);
}

int wait_for_exit(pid_t child) noexcept {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

std::string run_self(const std::vector<std::string>& arguments) {
  pipe_ends channel;
  argument_list argv(arguments);
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_adddup2(&files, channel.ends[1], STDOUT_FILENO);
  pid_t child = 0;
  const int reason = ::posix_spawn(&child, program, &files, nullptr, argv.get(), ::environ);
  ::posix_spawn_file_actions_destroy(&files);
  if (reason != 0) fail_to_start("cannot start another process", reason);

  // Otherwise read() would never see the end of the output.
  pipe_ends::close(channel.ends[1]);
  std::string text;
  std::array<char, 4096> buffer{};
  for (;;) {
    const ssize_t received = ::read(channel.ends[0], buffer.data(), buffer.size());
    if (received < 0 && errno == EINTR) continue;
    if (received <= 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(received));
  }
  const int status = wait_for_exit(child);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw error(errc::internal, "the second process failed");
  return text;
}

}  // namespace holdfast::cli
