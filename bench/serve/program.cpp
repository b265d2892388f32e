#include "bench/serve/program.hpp"

#include <holdfast/error.hpp>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <fstream>
#include <sstream>
#include <system_error>
#include <thread>
#include <utility>

namespace holdfast::bench {

namespace {

using namespace std::chrono_literals;

[[noreturn]] void fail_system(const std::string& action) {
  throw error(errc::unavailable, action + ": " + std::generic_category().message(errno));
}

sockaddr_in local_address(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

/// In the child: becomes the program, or ends with 127.
[[noreturn]] void become(const std::vector<char*>& arguments, int processor, int output) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (processor >= 0) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<std::size_t>(processor), &set);
    (void)::sched_setaffinity(0, sizeof(set), &set);
  }
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  ::execvp(arguments.front(), arguments.data());
  ::_exit(127);
}

std::string read_file(const std::string& file) {
  std::ifstream in(file);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

/// The size of an answer whose header is complete, or 0.
std::size_t answer_size(const std::string& text) {
  const auto end = text.find("\r\n\r\n");
  if (end == std::string::npos) return 0;
  constexpr std::string_view name = "\r\ncontent-length:";
  std::string head = text.substr(0, end + 2);
  std::ranges::transform(head, head.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  const auto length = head.find(name);
  const std::size_t content =
      length == std::string::npos ? 0 : std::stoul(head.substr(length + name.size()));
  return end + 4 + content;
}

}  // namespace

private_directory::private_directory() {
  std::string pattern = (std::filesystem::temp_directory_path() / "holdfast_bench_XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) fail_system("cannot create a directory");
  path_ = pattern;
}

private_directory::~private_directory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string private_directory::write(const std::string& name, const std::string& content) const {
  std::ofstream(path_ / name) << content;
  return file(name);
}

program::program(const std::vector<std::string>& arguments, int processor, const std::string& log) {
  std::vector<std::string> own = arguments;
  std::vector<char*> pointers;
  pointers.reserve(own.size() + 1);
  for (auto& argument : own) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  const int output = ::open(log.empty() ? "/dev/null" : log.c_str(),
                            O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (output < 0) fail_system("cannot open " + log);
  pid_ = ::fork();
  if (pid_ == 0) become(pointers, processor, output);
  const int reason = errno;
  ::close(output);
  errno = reason;
  if (pid_ < 0) fail_system("cannot start " + arguments.front());
}

program::~program() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  (void)::waitpid(pid_, nullptr, 0);
}

int program::wait() {
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool program::is_running() {
  if (pid_ <= 0) return false;
  if (::waitpid(pid_, nullptr, WNOHANG) != pid_) return true;
  pid_ = -1;
  return false;
}

std::chrono::nanoseconds program::processor_time() const {
  clockid_t clock{};
  timespec time{};
  if (::clock_getcpuclockid(pid_, &clock) != 0 || ::clock_gettime(clock, &time) != 0)
    throw error(errc::unavailable, "a program has ended unexpectedly");
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

std::uint64_t program::resident_bytes() const {
  std::ifstream in("/proc/" + std::to_string(pid_) + "/status");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("RssAnon:")) return std::stoull(line.substr(8)) * 1024;
  }
  throw error(errc::unavailable, "the memory of a program is not known");
}

std::string run_program(const std::vector<std::string>& arguments, int processor) {
  const private_directory directory;
  const auto log = directory.file("output");
  program running(arguments, processor, log);
  const int code = running.wait();
  auto output = read_file(log);
  if (code == 127)
    throw error(errc::unavailable, "cannot run '" + arguments.front() +
                                       "'; install it: apt-get install wrk nginx-light openssl");
  if (code != 0)
    throw error(errc::unavailable,
                arguments.front() + " failed: " + output.substr(0, output.find('\n')));
  return output;
}

std::uint16_t free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  auto address = local_address(0);
  socklen_t size = sizeof(address);
  const bool bound = socket >= 0 &&
                     ::bind(socket, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                     ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  if (socket >= 0) ::close(socket);
  if (!bound) fail_system("there is no free port");
  return ntohs(address.sin_port);
}

client_socket::client_socket(std::uint16_t port)
    : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  if (socket_ < 0) fail_system("cannot create a socket; raise the limit of open files (ulimit -n)");
  const auto address = local_address(port);
  if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    const int reason = errno;
    ::close(socket_);
    errno = reason;
    fail_system("cannot connect");
  }
  const int on = 1;
  (void)::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  const timeval limit{.tv_sec = 30, .tv_usec = 0};
  (void)::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
}

client_socket::client_socket(client_socket&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)) {}

client_socket::~client_socket() {
  if (socket_ >= 0) ::close(socket_);
}

void client_socket::send(const std::string& text) const {
  (void)!::send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
}

std::string client_socket::read_answer() const {
  std::string text;
  std::array<char, 4096> buffer{};
  for (;;) {
    const auto size = answer_size(text);
    if (size != 0 && text.size() >= size) return text;
    const auto count = ::recv(socket_, buffer.data(), buffer.size(), 0);
    if (count <= 0) throw error(errc::unavailable, "a server did not answer");
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

bool client_socket::drain() const {
  std::array<char, 4096> buffer{};
  for (;;) {
    const auto count = ::recv(socket_, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (count == 0) return false;
    if (count < 0) return errno == EAGAIN || errno == EINTR;
  }
}

void wait_for_text(const std::string& text, program& server, const std::string& log) {
  for (int attempt = 0; attempt < 600 && server.is_running(); ++attempt) {
    if (read_file(log).find(text) != std::string::npos) return;
    std::this_thread::sleep_for(50ms);
  }
  throw error(errc::unavailable, "a server did not start: " + read_file(log));
}

void wait_for_port(std::uint16_t port, program& server, const std::string& log) {
  for (int attempt = 0; attempt < 600; ++attempt) {
    try {
      const client_socket probe(port);
      return;
    } catch (const error&) {
      if (!server.is_running()) break;
    }
    std::this_thread::sleep_for(50ms);
  }
  throw error(errc::unavailable, "a server did not start: " + read_file(log));
}

}  // namespace holdfast::bench
