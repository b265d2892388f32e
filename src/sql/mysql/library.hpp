#pragma once

/// \file
/// Keeps the side effects of the client library on the process and its threads away from the
/// application, and shows what the library receives.

#include <holdfast/version.hpp>

#include "sql/public_names.hpp"

#include <csignal>
#include <cstddef>
#include <span>

namespace HOLDFAST_NAMESPACE::detail::sql::mysql {

/// Initialises the library: once for the process and once for each thread. A thread releases its
/// part when it ends. Cheap to call again.
void use_library();

/// Sees the bytes that the client library receives, before the library reads them.
class receive_observer {
 public:
  virtual void on_received(std::span<const std::byte> bytes) noexcept = 0;

 protected:
  ~receive_observer() = default;
};

/// While it lives, the observer sees the bytes that this thread receives through the library.
/// use_library() must have been called.
class receive_observation {
 public:
  explicit receive_observation(receive_observer& observer) noexcept;
  receive_observation(const receive_observation&) = delete;
  receive_observation& operator=(const receive_observation&) = delete;
  ~receive_observation();
};

/// While an active object lives, a SIGPIPE that this thread causes is discarded: OpenSSL writes to
/// sockets without MSG_NOSIGNAL.
class sigpipe_guard {
 public:
  explicit sigpipe_guard(bool needed) noexcept;
  sigpipe_guard(const sigpipe_guard&) = delete;
  sigpipe_guard& operator=(const sigpipe_guard&) = delete;
  ~sigpipe_guard();

 private:
  bool active_ = false;
  sigset_t previous_mask_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail::sql::mysql
