#pragma once

#include "support/server_control.hpp"
#include "support/temporary_directory.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::test {

/// A Redis on 127.0.0.1. The tests' own commands (run) go through redis-cli: they do not depend on
/// the client under test. Thread-safety: every function may be called from any thread.
class redis_endpoint {
 public:
  static constexpr std::string_view kind = "redis";

  explicit redis_endpoint(std::uint16_t port) : port_(port) {}
  redis_endpoint(const redis_endpoint&) = default;
  redis_endpoint& operator=(const redis_endpoint&) = default;
  virtual ~redis_endpoint() = default;

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  [[nodiscard]] std::string url() const { return url_through(port_); }
  /// The same server seen through another port: a proxy's.
  [[nodiscard]] static std::string url_through(std::uint16_t port) {
    return "redis://127.0.0.1:" + std::to_string(port);
  }

  /// A prefix for keys that nobody else uses, also not in another process: the server is shared.
  [[nodiscard]] std::string unique_prefix(std::string_view purpose = "test") const;

  /// What redis-cli prints for a command, without the line end. Throws std::runtime_error with the
  /// server's message.
  std::string run(const std::vector<std::string>& words) const;

 protected:
  void move_to(std::uint16_t port) noexcept { port_ = port; }
  /// More words for redis-cli: how to log in.
  std::vector<std::string> client_words_{};

 private:
  std::uint16_t port_;
};

/// How a private Redis is to be started.
struct redis_options {
  /// `name value`, as in redis.conf; `{port}` is its port; the last one wins
  std::vector<std::string> settings{};
  /// An append-only file, synced before every answer; false: nothing is kept
  bool durable = true;
  /// Where to make the data directory; empty: a temporary one, in memory
  std::filesystem::path directory{};
};

/// A private Redis: own data directory, free port, started by the constructor, gone after the
/// destructor.
class redis_server : public redis_endpoint, public server_control {
 public:
  using endpoint = redis_endpoint;

  explicit redis_server(redis_options options = {});
  ~redis_server();

  /// Settings for the next start, beside those of the constructor: `maxmemory 10mb`.
  void configure(const std::string& setting) { options_.settings.push_back(setting); }
  /// Its Unix socket.
  [[nodiscard]] std::string socket_path() const {
    return (data_directory() / "redis.sock").string();
  }
  /// More words for redis-cli from now on: {"--no-auth-warning", "-a", password}.
  void set_client_words(std::vector<std::string> words) { client_words_ = std::move(words); }

 private:
  redis_options options_;
  std::optional<temporary_directory> temporary_{};
};

/// Certificates made for a test: an authority, a server's and a client's. Files in PEM.
struct certificates {
  std::filesystem::path authority{}, server{}, server_key{}, client{}, client_key{};
};
/// `name` is the name that the server's certificate has beside 127.0.0.1; readable for the user
/// `redis`.
[[nodiscard]] certificates make_certificates(const std::filesystem::path& directory,
                                             const std::string& name = "localhost");

}  // namespace holdfast::test
