#pragma once

/// \file
/// A connection to one server, ready for commands, and the carrying of pipelines over several of them at the same time.

#include <holdfast/redis.hpp>

#include "redis/flight.hpp"
#include "redis/reply_reader.hpp"
#include "redis/settings.hpp"
#include "redis/tls.hpp"
#include "redis/wire.hpp"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace HOLDFAST_NAMESPACE::redis {

/// What a new connection says first, and what the answers mean. No input or output.
struct HOLDFAST_API greeting {
  std::vector<command> commands{};
  explicit greeting(const settings& from);
  /// Throws when the server does not let us in.
  void check(std::span<const reply> replies, const std::string& address) const;
};

/// Thread-safety: none.
class connection {
 public:
  /// Connects and logs in. Throws errc::unavailable or errc::timeout (transient), or errc::permission.
  connection(std::string address, const settings& from, const tls_context* tls, steady::time_point deadline);
  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;

  [[nodiscard]] const std::string& address() const noexcept { return address_; }
  [[nodiscard]] wire& io() noexcept { return wire_; }
  [[nodiscard]] reply_reader& reader() noexcept { return reader_; }
  [[nodiscard]] known_scripts& scripts() noexcept { return scripts_; }
  /// To be thrown away: it may have replies under way that nobody waits for.
  [[nodiscard]] bool broken() const noexcept { return broken_; }
  void set_broken(bool yes = true) noexcept { broken_ = yes; }
  /// Can it be used again?
  [[nodiscard]] bool usable() noexcept { return !broken_ && wire_.quiet(); }

 private:
  std::string address_;
  wire wire_;
  reply_reader reader_;
  known_scripts scripts_{};
  bool broken_ = false;
};

/// A flight over a connection.
struct leg {
  connection* over = nullptr;
  flight* what = nullptr;
  std::optional<error> problem{};  ///< why it did not get all its replies; the connection is broken then, unless nothing was sent
};

/// Sends all flights and waits for their replies, until the deadline. Never throws for what happens to a leg.
void carry(std::span<leg> legs, steady::time_point deadline);

}  // namespace HOLDFAST_NAMESPACE::redis
