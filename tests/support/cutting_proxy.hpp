#pragma once

/// \file
/// A network that misbehaves on demand: a TCP proxy on 127.0.0.1 between a client under test and a
/// server.
///
///     cutting_proxy proxy(server.port());
///     auto url = server.url_through(proxy.port());
///     proxy.cut_after(flow::to_client, 100);      // in the middle of an answer

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace holdfast::test {

/// Which way bytes go.
enum class flow { to_server, to_client };
/// RST, as from a machine that restarted; FIN, as from a program that closed.
enum class ending { reset, finish };
/// Who is to notice.
enum class side { both, client, server };

/// Every control has taken effect when it returns: a byte that had not been forwarded before the
/// call meets the new rule. Thread-safety: every function may be called from any thread. One thread
/// of its own.
class cutting_proxy {
 public:
  /// Listens on a free port, forwards to this one. The target need not be there yet.
  explicit cutting_proxy(std::uint16_t target);
  cutting_proxy(const cutting_proxy&) = delete;
  cutting_proxy& operator=(const cutting_proxy&) = delete;
  /// Resets what is open.
  ~cutting_proxy();

  [[nodiscard]] std::uint16_t port() const noexcept;
  /// New connections go to another server.
  void retarget(std::uint16_t target);

  /// Every byte waits that long. The order stays.
  void delay(flow where, std::chrono::milliseconds time);
  /// A network that stands still: nothing is forwarded, nothing is lost, and all of it arrives when
  /// it moves again.
  void hold(flow where, bool on = true);
  /// A network that swallows everything, closing included. One direction alone gives a half-open
  /// connection. A connection that lost something has a hole, so that direction of it stays dead
  /// when this is switched off; new connections work.
  void drop(flow where, bool on = true);
  /// False: new connections succeed, for the kernel makes them, and hang.
  void accept(bool on = true);
  /// True: new connections are refused.
  void refuse(bool on = true);

  /// Ends all connections now. With one side the other one is told nothing: it holds a half-open
  /// connection.
  void cut(ending how = ending::reset, side whose = side::both);
  /// Forgets all connections, as a NAT gateway does with those that were idle for long: nothing of
  /// them is forwarded any more, and neither side is told. New connections work.
  void forget();
  /// Forwards exactly that many more bytes in this direction, over all connections together, and
  /// ends the one that brought the last of them. With 0 it is the one that brings the next byte,
  /// which is not forwarded. Once.
  void cut_after(flow where, std::uint64_t bytes, ending how = ending::reset,
                 side whose = side::both);
  /// Has every cut_after() fired?
  [[nodiscard]] bool cut_done() const;

  /// Since the start.
  [[nodiscard]] std::uint64_t bytes(flow where) const;
  [[nodiscard]] std::uint64_t connections() const;
  [[nodiscard]] std::uint64_t cuts() const;  ///< connections ended by us
  /// Now.
  [[nodiscard]] std::size_t open_connections() const;

 private:
  class loop;
  std::unique_ptr<loop> loop_;
};

}  // namespace holdfast::test
