#include "support/shared_server.hpp"

#include "support/server_registry.hpp"

#include <cstdlib>

namespace holdfast::test {

std::optional<std::uint16_t> port_of_shared_server(std::string_view kind) {
  const char* directory = std::getenv("HOLDFAST_TEST_SERVERS");
  if (directory == nullptr || *directory == '\0') return std::nullopt;
  const auto servers = server_registry(directory).servers();
  const auto found = servers.find(std::string(kind));
  return found == servers.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace holdfast::test
