#pragma once

/// \file
/// What the demonstration depends on: a small HTTP server in a process of its own, that can be killed.

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace holdfast::cli {

/// Answers `GET /rates/<currency>` on loopback with a rate, for as long as it lives.
/// Thread-safety: none.
class upstream {
 public:
  /// Starts it. The rate is what it answers with, after the currency. Throws errc::unavailable.
  explicit upstream(std::string rate);
  upstream(const upstream&) = delete;
  upstream& operator=(const upstream&) = delete;
  ~upstream() { kill(); }

  /// With -9, at once; nobody listens any more when this returns.
  void kill() noexcept;
  /// Starts it again, where it was before, with another rate. Throws errc::unavailable.
  void restart(std::string rate);
  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }

 private:
  void start();

  std::string rate_;
  std::uint16_t port_ = 0;
  pid_t child_ = -1;
};

/// The body of what a server on loopback answers. Throws std::runtime_error when nobody answers, or with anything but 200.
[[nodiscard]] std::string http_get(std::uint16_t port, const std::string& path);

}  // namespace holdfast::cli
