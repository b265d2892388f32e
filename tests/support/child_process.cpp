#include "support/child_process.hpp"

#include "support/system_user.hpp"

#include <fcntl.h>
#include <grp.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

extern "C" {
#include <sys/pidfd.h>  // glibc 2.36 forgets to say that it is C
}

extern char** environ;

namespace holdfast::test {
namespace {

[[noreturn]] void fail(const std::string& what, int code = errno) {
  throw std::system_error(code, std::generic_category(), what);
}

// PR_SET_PDEATHSIG fires when the *thread* that forked ends, not the process. So one thread does
// all the forking and never ends.
class spawner {
 public:
  static spawner& instance() {
    // Never destroyed: its thread uses it until the process is gone
    static auto* const only = new spawner;
    return *only;
  }

  pid_t run(const std::function<pid_t()>& make) {
    std::packaged_task<pid_t()> task(make);
    auto result = task.get_future();
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    wake_.notify_one();
    return result.get();
  }

 private:
  spawner() {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    // Inherited by the thread: signals are for the test's own threads
    pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread([this] { loop(); }).detach();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  [[noreturn]] void loop() {
    for (;;) {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return !tasks_.empty(); });
      auto task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::packaged_task<pid_t()>> tasks_;
};

std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  const char* path = std::getenv("PATH");
  // Servers live in sbin, which an ordinary user's PATH leaves out.
  const std::string places =
      std::string(path != nullptr ? path : "") + ":/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin";
  for (std::size_t begin = 0; begin <= places.size();) {
    const auto end = std::min(places.find(':', begin), places.size());
    if (end > begin) {
      std::string candidate = places.substr(begin, end - begin) + '/' + name;
      if (::access(candidate.c_str(), X_OK) == 0) return candidate;
    }
    begin = end + 1;
  }
  fail("cannot find " + name, ENOENT);
}

std::vector<std::string> merged_environment(const std::vector<std::string>& changes) {
  const auto name_of = [](std::string_view entry) { return entry.substr(0, entry.find('=')); };
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const bool changed = std::any_of(changes.begin(), changes.end(), [&](const auto& one) {
      return name_of(one) == name_of(*entry);
    });
    if (!changed) result.emplace_back(*entry);
  }
  for (const auto& one : changes) {
    if (one.find('=') != std::string::npos) result.push_back(one);
  }
  return result;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  for (auto& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

// Everything the child needs, prepared before the fork: between fork and exec only plain system
// calls are allowed.
struct prepared {
  std::string program{};
  std::vector<char*> argv{};
  std::vector<char*> environment{};
  const char* directory = nullptr;
  const system_user* as = nullptr;
  int input = -1;
  int output = -1;
  int error = -1;
  int death_signal = SIGKILL;
  int report = -1;  // closed by a successful exec; otherwise the errno travels through it
  pid_t parent = 0;
};

[[noreturn]] void become(const prepared& what) {
  const auto check = [&](bool good) {
    if (good) return;
    const int code = errno;
    [[maybe_unused]] const auto written = ::write(what.report, &code, sizeof code);
    ::_exit(127);
  };
  check(::dup2(what.input, 0) >= 0 && ::dup2(what.output, 1) >= 0 && ::dup2(what.error, 2) >= 0);
  ::close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);  // nobody's sockets and pipes leak into a server that
                                               // may outlive the test
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (what.as != nullptr) {
    check(::setgroups(what.as->groups.size(), what.as->groups.data()) == 0);
    check(::setresgid(what.as->group, what.as->group, what.as->group) == 0);
    check(::setresuid(what.as->id, what.as->id, what.as->id) == 0);
  }
  if (what.directory != nullptr) check(::chdir(what.directory) == 0);
  // After setresuid, which would clear it.
  check(::prctl(PR_SET_PDEATHSIG, what.death_signal) == 0);
  if (::getppid() != what.parent) ::_exit(127);  // the parent died before the line above
  ::execve(what.program.c_str(), what.argv.data(), what.environment.data());
  check(false);
  ::_exit(127);
}

class descriptor {
 public:
  explicit descriptor(int number, const std::string& what) : number_(number) {
    if (number_ < 0) fail(what);
  }
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;
  ~descriptor() { close(); }
  void close() {
    if (number_ >= 0) ::close(std::exchange(number_, -1));
  }
  [[nodiscard]] int get() const { return number_; }

 private:
  int number_;
};

exit_status decode(const siginfo_t& info) {
  return {.signalled = info.si_code != CLD_EXITED, .code = info.si_status};
}

std::string read_all(int file) {
  std::string result;
  std::array<char, 65536> buffer{};
  off_t offset = 0;
  for (;;) {
    const auto count = ::pread(file, buffer.data(), buffer.size(), offset);
    if (count <= 0) return result;
    result.append(buffer.data(), static_cast<std::size_t>(count));
    offset += count;
  }
}

}  // namespace

std::string exit_status::describe() const {
  return (signalled ? "signal " : "exit code ") + std::to_string(code);
}

child_process::child_process(child_options options) {
  if (options.argv.empty()) throw std::invalid_argument("child_process: argv is empty");
  std::optional<system_user> as;
  if (!options.user.empty() && ::geteuid() == 0) as = find_user(options.user);
  auto environment = merged_environment(options.environment);

  const descriptor nothing(::open("/dev/null", O_RDWR | O_CLOEXEC), "/dev/null");
  std::optional<descriptor> log;
  if (!options.log.empty())
    log.emplace(::open(options.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644),
                options.log);
  std::optional<descriptor> input;
  if (!options.input.empty())
    input.emplace(::open(options.input.c_str(), O_RDONLY | O_CLOEXEC), options.input);
  const int sink = log ? log->get() : nothing.get();

  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail("pipe");
  descriptor listen(ends[0], "pipe");
  descriptor report(ends[1], "pipe");

  prepared what;
  what.program = find_program(options.argv.front());
  what.argv = pointers(options.argv);
  what.environment = pointers(environment);
  what.directory = options.directory.empty() ? nullptr : options.directory.c_str();
  what.as = as ? &*as : nullptr;
  what.input = input ? input->get() : nothing.get();
  what.output = options.output >= 0 ? options.output : sink;
  what.error = options.error >= 0 ? options.error : sink;
  what.death_signal = options.death_signal;
  what.report = report.get();
  what.parent = ::getpid();

  pid_ = spawner::instance().run([&what] {
    const pid_t child = ::fork();
    if (child == 0) become(what);
    return child;
  });
  if (pid_ < 0) fail("fork");
  report.close();

  int problem = 0;
  ssize_t count = 0;
  do count = ::read(listen.get(), &problem, sizeof problem);
  while (count < 0 && errno == EINTR);
  if (count == static_cast<ssize_t>(sizeof problem)) {
    siginfo_t info{};
    ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED);
    fail("cannot start " + what.program, problem);
  }
  descriptor_ = ::pidfd_open(pid_, 0);
  if (descriptor_ < 0) {
    const int code = errno;
    ::kill(pid_, SIGKILL);
    siginfo_t info{};
    ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED);
    fail("pidfd_open", code);
  }
}

child_process::child_process(child_process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      status_(std::exchange(other.status_, {})) {}

child_process& child_process::operator=(child_process&& other) noexcept {
  child_process old(std::move(*this));
  pid_ = std::exchange(other.pid_, -1);
  descriptor_ = std::exchange(other.descriptor_, -1);
  status_ = std::exchange(other.status_, {});
  return *this;
}

child_process::~child_process() {
  if (descriptor_ < 0) return;
  if (!status_) kill();
  ::close(descriptor_);
}

void child_process::reap_if_over() {
  siginfo_t info{};
  if (!status_ &&
      ::waitid(P_PIDFD, static_cast<id_t>(descriptor_), &info, WEXITED | WNOHANG) == 0 &&
      info.si_pid != 0)
    status_ = decode(info);
}

bool child_process::running() {
  if (descriptor_ < 0) return false;
  reap_if_over();
  return !status_;
}

std::optional<exit_status> child_process::wait(std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  for (;;) {
    if (!running()) return status_;
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return std::nullopt;
    pollfd ended{.fd = descriptor_, .events = POLLIN, .revents = 0};
    ::poll(&ended, 1, static_cast<int>(std::min<std::int64_t>(left.count(), 60'000)));
  }
}

void child_process::signal(int number) {
  // Through the descriptor: when the process has ended and its number was given to another, this
  // does nothing.
  if (descriptor_ >= 0) ::pidfd_send_signal(descriptor_, number, nullptr, 0);
}

exit_status child_process::kill() {
  signal(SIGKILL);
  // A killed process ends; it may take a while to leave a slow disk
  while (!wait(std::chrono::seconds(60)));
  return *status_;
}

program_result run_program(child_options options, std::chrono::milliseconds timeout) {
  const descriptor output(::memfd_create("output", MFD_CLOEXEC), "memfd_create");
  const descriptor error(::memfd_create("error", MFD_CLOEXEC), "memfd_create");
  options.output = output.get();
  options.error = error.get();
  const std::string name = options.argv.empty() ? "" : options.argv.front();
  child_process child(std::move(options));
  const auto status = child.wait(timeout);
  if (!status) {
    child.kill();
    throw std::runtime_error(name + " was not done after " + std::to_string(timeout.count()) +
                             " ms; it wrote: " + read_all(error.get()));
  }
  return {.status = *status, .output = read_all(output.get()), .error = read_all(error.get())};
}

}  // namespace holdfast::test
