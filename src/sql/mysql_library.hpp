#pragma once

#include <holdfast/version.hpp>

#include <csignal>
#include <cstddef>
#include <span>

/// What the client library does to a process and its threads, and how we keep that from the application.
namespace HOLDFAST_NAMESPACE::sql::mysql {

/// Initialises the library once, and for each thread; a thread that ends gives back what it had. Cheap to call again.
void use_library();

/// Sees what the client library receives, before the library makes anything of it.
class receiver {
 public:
  virtual void on_received(std::span<const std::byte> bytes) noexcept = 0;

 protected:
  ~receiver() = default;
};

/// While it lives, what this thread receives through the library is shown to a receiver. use_library() comes first.
class shown_bytes {
 public:
  explicit shown_bytes(receiver& to) noexcept;
  shown_bytes(const shown_bytes&) = delete;
  shown_bytes& operator=(const shown_bytes&) = delete;
  ~shown_bytes();
};

/// While it lives, a SIGPIPE that this thread raises is swallowed: OpenSSL writes to sockets without MSG_NOSIGNAL.
class quiet_pipe {
 public:
  explicit quiet_pipe(bool wanted) noexcept;
  quiet_pipe(const quiet_pipe&) = delete;
  quiet_pipe& operator=(const quiet_pipe&) = delete;
  ~quiet_pipe();

 private:
  bool active_ = false;
  sigset_t before_{};
};

}  // namespace HOLDFAST_NAMESPACE::sql::mysql
