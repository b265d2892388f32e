#pragma once

/// \file
/// Load for the servers that are compared, and what a request of it costs them.

#include "bench/serve/program.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace holdfast::bench {

struct load {
  std::size_t connections = 64;
  std::string url{};
  std::string script{};  // a file; empty: GET
  unsigned seconds = 1;
  bool latency = false;
};

struct load_result {
  double requests = 0;
  double p99_us = 0;
};

/// The client has the second processor, so that it does not disturb the caches of the server.
[[nodiscard]] int client_processor();
[[nodiscard]] int server_processor();

/// Runs wrk. Throws errc::unavailable if the server refuses requests.
[[nodiscard]] load_result run_load(const load& options);
/// Nanoseconds of the processor for each request.
[[nodiscard]] double cost_of(const program& server, const load& options);

[[nodiscard]] std::string url_of(std::uint16_t port, const std::string& path, bool tls = false);
[[nodiscard]] std::string quoted(const std::string& text);

}  // namespace holdfast::bench
