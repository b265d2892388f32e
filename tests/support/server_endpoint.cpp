#include "support/server_endpoint.hpp"

#include <unistd.h>

#include <atomic>
#include <chrono>

namespace holdfast::test {

server_endpoint::~server_endpoint() = default;

std::string server_endpoint::url(std::string_view database) const {
  return url_through(port_, database);
}

std::string server_endpoint::url_through(std::uint16_t port, std::string_view database) const {
  return scheme_ + "://holdfast:secret@127.0.0.1:" + std::to_string(port) + '/' +
         std::string(database);
}

std::string server_endpoint::create_database(std::string_view purpose) const {
  static std::atomic<unsigned> count{0};
  // The clock as well: process numbers come back, and a shared server may see both processes.
  const auto moment =
      std::chrono::steady_clock::now().time_since_epoch().count() / 1'000 % 1'000'000'000;
  std::string name = "holdfast_" + std::string(purpose) + '_' + std::to_string(::getpid()) + '_' +
                     std::to_string(++count) + '_' + std::to_string(moment);
  make_database(name);
  return name;
}

void server_endpoint::drop_database(const std::string& name) const { remove_database(name); }

std::string server_endpoint::run(const std::string& sql, const std::string& database) const {
  return run_client(sql, database);
}

}  // namespace holdfast::test
