#include "demo/upstream.hpp"

#include <holdfast/error.hpp>

#include "demo/child_process.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

namespace holdfast::cli {

namespace {

/// A socket. The destructor closes it.
class tcp_socket {
 public:
  explicit tcp_socket(int descriptor) : descriptor_(descriptor) {}
  tcp_socket(const tcp_socket&) = delete;
  tcp_socket& operator=(const tcp_socket&) = delete;
  ~tcp_socket() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  [[nodiscard]] int get() const noexcept { return descriptor_; }

 private:
  int descriptor_;
};

int new_socket() { return ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); }

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

[[noreturn]] void fail_upstream(const char* message) {
  throw error(errc::unavailable, std::string(message) + ": " +
                                     std::generic_category().message(errno) +
                                     "; try again when the machine is less busy");
}

/// Receives until `complete` returns true, or the peer closes the connection.
template <class Complete>
std::string receive(int socket, Complete complete) {
  std::string text;
  std::array<char, 1024> buffer{};
  while (!complete(text)) {
    const ssize_t received = ::recv(socket, buffer.data(), buffer.size(), 0);
    if (received < 0 && errno == EINTR) continue;
    if (received <= 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(received));
  }
  return text;
}

void send_all(int socket, std::string_view text) {
  while (!text.empty()) {
    const ssize_t sent = ::send(socket, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
}

/// Serves one request after the other, until the process is killed.
[[noreturn]] void serve(int listening, const std::string& rate) {
  constexpr std::string_view path = "GET /rates/";
  for (;;) {
    const tcp_socket client(::accept(listening, nullptr, nullptr));
    if (client.get() < 0) continue;
    const std::string request = receive(client.get(), [](const std::string& text) {
      return text.find("\r\n\r\n") != std::string::npos;
    });
    std::string body;
    if (request.starts_with(path))
      body = request.substr(path.size(), request.find(' ', path.size()) - path.size()) + " " + rate;
    send_all(client.get(), (body.empty() ? "HTTP/1.1 404 Not Found" : "HTTP/1.1 200 OK") +
                               ("\r\nConnection: close\r\nContent-Length: " +
                                std::to_string(body.size()) + "\r\n\r\n" + body));
  }
}

}  // namespace

upstream::upstream(std::string rate) : rate_(std::move(rate)) { start(); }

void upstream::start() {
  const tcp_socket listening(new_socket());
  if (listening.get() < 0) fail_upstream("cannot create a socket");
  const int yes = 1;
  (void)::setsockopt(listening.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address = loopback(port_);
  socklen_t size = sizeof address;
  if (::bind(listening.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      ::listen(listening.get(), 16) != 0 ||
      ::getsockname(listening.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
    fail_upstream("the upstream cannot listen on loopback");
  port_ = ntohs(address.sin_port);
  child_ = ::fork();
  if (child_ < 0) fail_upstream("cannot start a second process");
  if (child_ > 0) return;
  (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);  // never outlives the demonstration
  serve(listening.get(), rate_);
}

void upstream::kill() noexcept {
  if (child_ <= 0) return;
  (void)::kill(child_, SIGKILL);
  (void)wait_for_exit(child_);
  child_ = -1;
}

void upstream::restart(std::string rate) {
  kill();
  rate_ = std::move(rate);
  start();
}

std::string http_reply(std::uint16_t port, const std::string& request) {
  const tcp_socket server(new_socket());
  const sockaddr_in address = loopback(port);
  if (server.get() < 0 ||
      ::connect(server.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    throw std::runtime_error(std::generic_category().message(errno));
  send_all(server.get(), request);
  return receive(server.get(), [](const std::string&) { return false; });
}

std::string http_exchange(std::uint16_t port, const std::string& request) {
  const std::string reply = http_reply(port, request);
  const auto body = reply.find("\r\n\r\n");
  if (!reply.starts_with("HTTP/1.1 2") || body == std::string::npos)
    throw std::runtime_error("no answer");
  return reply.substr(body + 4);
}

std::string get_request(const std::string& path) {
  return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
}

std::string http_get(std::uint16_t port, const std::string& path) {
  return http_exchange(port, get_request(path));
}

}  // namespace holdfast::cli
