#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

namespace holdfast::test {

/// The port of a server that runs for the whole test run (HOLDFAST_TEST_SERVERS names the
/// registry), when there is one.
[[nodiscard]] std::optional<std::uint16_t> port_of_shared_server(std::string_view kind);

/// A server that may be used but not stopped: the one of the test run, when CTest started it (tests
/// with the keyword SERVERS), or one that this program starts at the first call and stops at its
/// end. Isolate tests with create_database() or names of their own.
///
///     const auto& postgres = shared_server<postgres_server>();
///     auto url = postgres.url(postgres.create_database("contract"));
///
/// Thread-safe.
template <class Server>
[[nodiscard]] const typename Server::endpoint& shared_server() {
  using endpoint = typename Server::endpoint;
  static const auto server = []() -> std::unique_ptr<const endpoint> {
    if (const auto port = port_of_shared_server(endpoint::kind))
      return std::make_unique<endpoint>(*port);
    return std::make_unique<Server>();
  }();
  return *server;
}

}  // namespace holdfast::test
