#pragma once

/// \file
/// A connection to one server, ready for commands, and the carrying of pipelines over several of them at the same time.

#include <holdfast/redis.hpp>

#include "redis/flight.hpp"
#include "redis/reply_reader.hpp"
#include "redis/settings.hpp"
#include "redis/tls.hpp"
#include "redis/wire.hpp"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE::redis {

/// What a new connection says first, and what the answers mean. No input or output.
struct HOLDFAST_API greeting {
  std::vector<command> commands{};
  explicit greeting(const settings& from);
  /// Throws when the server does not let us in.
  void check(std::span<const reply> replies, const std::string& address) const;
};

class connection;

/// A flight over a connection.
struct leg {
  connection* over = nullptr;
  flight* what = nullptr;
  std::optional<error> problem{};  ///< why it did not get all its replies; the
                                   ///< connection is broken then
  bool done = false;               ///< it has all, or will get no more
  short waits_for = 0;             ///< the carrier's: events, as for poll
};

/// Sends what there is room for and reads what has come. Returns what to wait for; 0 when it has all its replies, or will get no more.
/// `first`: it was not sent before, and no answer can be there.
[[nodiscard]] short move_on(leg& l, bool first, steady::time_point deadline);

/// Thread-safety: none.
class connection {
 public:
  /// Looks up the host; the rest is done by set_up. Throws errc::unavailable (transient).
  connection(std::string address, const settings& from, const tls_context* tls, steady::time_point deadline);
  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;

  /// Goes on connecting and logging in, and never blocks; true when it is ready for commands. Throws errc::unavailable or errc::timeout
  /// (transient), or errc::permission.
  bool set_up();
  [[nodiscard]] bool ready() const noexcept { return arrival_ == nullptr; }
  /// While it is not ready: what to wait for, until when at the latest.
  void add_waits(std::vector<pollfd>& to) const;
  [[nodiscard]] steady::time_point wake_at() const noexcept;

  [[nodiscard]] const std::string& address() const noexcept { return address_; }
  [[nodiscard]] wire& io() noexcept { return wire_; }
  [[nodiscard]] reply_reader& reader() noexcept { return reader_; }
  [[nodiscard]] known_scripts& scripts() noexcept { return scripts_; }
  /// To be thrown away: it may have replies under way that nobody waits for.
  [[nodiscard]] bool broken() const noexcept { return broken_; }
  void set_broken(bool yes = true) noexcept { broken_ = yes; }
  /// Is this asked for the first time? For whoever counts connections.
  [[nodiscard]] bool first_time() noexcept { return std::exchange(fresh_, false); }
  /// Can it be used again?
  [[nodiscard]] bool usable() noexcept { return !broken_ && wire_.quiet(); }

 private:
  /// The log-in, until it is through.
  struct arrival {
    arrival(connection& of, const settings& from);
    greeting hello;
    delivery what;
    flight words;
    leg way{};
    bool connected = false;
  };

  std::string address_;
  steady::time_point deadline_;  // of setting it up
  wire wire_;
  reply_reader reader_;
  known_scripts scripts_{};
  bool broken_ = true;  // until it is ready
  bool fresh_ = true;
  std::unique_ptr<arrival> arrival_;
};

/// Carries flights at the same time, those whose connections are still being set up among them. None waits for another. Thread-safety:
/// none.
class carrier {
 public:
  carrier(std::size_t legs, steady::time_point deadline);

  /// Sends it, or as much of it as there is room for. The leg stays where it is until it is done.
  void add(leg& l);
  /// Waits until something has come for one of them, or until then; at the deadline all are given up. Never throws for what happens to a
  /// leg.
  void step(steady::time_point wake = steady::time_point::max());
  /// How many are not done.
  [[nodiscard]] std::size_t open() const noexcept { return legs_.size(); }

 private:
  void advance(leg& l, bool first);
  void set_up(leg& l);

  steady::time_point deadline_;
  std::vector<leg*> legs_{};
  std::vector<pollfd> waits_{};
};

}  // namespace HOLDFAST_NAMESPACE::redis
