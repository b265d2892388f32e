#pragma once

/// \file
/// Where a database server of the tests is, and what may be done with one that is shared:
/// everything but stopping it.

#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast::test {

/// A server on 127.0.0.1 with the user `holdfast`, password `secret`, who owns the database
/// `holdfast` and those made by create_database; no superuser, as in real life. Statements of the
/// tests' own (run) go through the server's own client program, as administrator: they do not
/// depend on the driver under test.
/// Thread-safety: every function may be called from any thread.
class server_endpoint {
 public:
  virtual ~server_endpoint();

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  /// `postgresql://holdfast:secret@127.0.0.1:PORT/holdfast`, `mysql://...`
  [[nodiscard]] std::string url(std::string_view database = "holdfast") const;
  /// The same server seen through another port: a proxy's.
  [[nodiscard]] std::string url_through(std::uint16_t port,
                                        std::string_view database = "holdfast") const;

  /// A new, empty database; gives its name: `holdfast_`, the purpose, and what makes it unlike any
  /// other on the server, so that test programs that run at the same time do not meet. It goes with
  /// the server, or with drop_database.
  std::string create_database(std::string_view purpose = "test") const;
  void drop_database(const std::string& name) const;

  /// Runs SQL as administrator and gives what the client program prints: one line for each row,
  /// columns separated by a tab. Throws std::runtime_error with the server's message.
  std::string run(const std::string& sql, const std::string& database = "holdfast") const;

 protected:
  server_endpoint(std::string_view scheme, std::uint16_t port) : scheme_(scheme), port_(port) {}
  server_endpoint(const server_endpoint&) = default;
  server_endpoint& operator=(const server_endpoint&) = default;

  void move_to(std::uint16_t port) noexcept { port_ = port; }

 private:
  virtual std::string run_client(const std::string& sql, const std::string& database) const = 0;
  virtual void make_database(const std::string& name) const = 0;
  virtual void remove_database(const std::string& name) const = 0;

  std::string scheme_;
  std::uint16_t port_;
};

}  // namespace holdfast::test
