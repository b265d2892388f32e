#include "net/socket_io.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <system_error>

namespace HOLDFAST_NAMESPACE::detail::net {

io_result write_socket(int socket, std::string_view bytes, std::string& close_reason) {
  for (;;) {
    const ssize_t count = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count >= 0) return {.status = io_status::done, .bytes = static_cast<std::size_t>(count)};
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return {.status = io_status::wait_write};
    close_reason = std::generic_category().message(errno);
    return {.status = io_status::closed};
  }
}

io_result read_socket(int socket, std::span<char> buffer, std::string& close_reason) {
  for (;;) {
    const ssize_t count = ::recv(socket, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (count > 0) return {.status = io_status::done, .bytes = static_cast<std::size_t>(count)};
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
      return {.status = io_status::wait_read};
    close_reason = count == 0 ? "the server closed it" : std::generic_category().message(errno);
    return {.status = io_status::closed, .in_order = count == 0};
  }
}

}  // namespace HOLDFAST_NAMESPACE::detail::net
