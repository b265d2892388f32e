#include "terminal/output.hpp"

#include <holdfast/error.hpp>

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace holdfast::cli {

void output::flush() {
  std::string_view rest = buffer_;
  while (!rest.empty()) {
    const ssize_t written = ::write(descriptor_, rest.data(), rest.size());
    if (written >= 0) {
      rest.remove_prefix(static_cast<std::size_t>(written));
      continue;
    }
    const int reason = errno;
    if (reason == EINTR) continue;
    if (reason == EAGAIN || reason == EWOULDBLOCK) {
      // Another process made the shared descriptor non-blocking: wait until it is writable.
      pollfd request{descriptor_, POLLOUT, 0};
      ::poll(&request, 1, -1);
      continue;
    }
    buffer_.clear();
    if (reason == EPIPE) throw reader_gone();
    const bool full = reason == ENOSPC || reason == EDQUOT || reason == EFBIG;
    throw error(errc::unavailable,
                "cannot write the output: " + std::generic_category().message(reason) +
                    (full ? "; free some space or write it elsewhere" : "; check its destination"),
                {.backend_code = std::to_string(reason)});
  }
  buffer_.clear();
}

bool output::is_terminal() const noexcept { return ::isatty(descriptor_) == 1; }

}  // namespace holdfast::cli
