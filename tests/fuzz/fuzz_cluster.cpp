// Reads any bytes as replies of the nodes of a Redis Cluster, to CLUSTER SLOTS and as redirects,
// and updates a slot map with them.

#include <holdfast/redis.hpp>

#include "net/address.hpp"
#include "redis/reply_reader.hpp"
#include "redis/server_error.hpp"
#include "redis/slot_map.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

using namespace holdfast;
using namespace holdfast::detail::redis;
namespace net = holdfast::detail::net;

void require(bool condition) {
  if (!condition) std::abort();
}

void require_consistent(const slot_map& map) {
  std::size_t owned = 0;
  for (std::size_t slot = 0; slot < slot_map::slots; ++slot) {
    const auto* master = map.master_of(static_cast<std::uint16_t>(slot));
    if (master == nullptr) continue;
    ++owned;
    require(!master->empty() && (net::is_socket_path(*master) || net::port_of(*master) != 0));
  }
  require(owned == map.covered());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  slot_map map;
  try {
    reply_reader reader(std::size_t{1} << 16U);
    reader.feed(bytes);
    while (const auto answer = reader.next()) {
      const auto next = action_for(*answer, "127.0.0.1:7000");
      if (next.action == reply_action::kind::moved) map.move(next.slot, next.address);
      try {
        map =
            slot_map(*answer, "127.0.0.1:7000", [](const std::string& address) { return address; });
      } catch (const error& refused) {
        require(!refused.message().empty());
      }
      require_consistent(map);
    }
  } catch (const error& refused) {
    require(refused.code() == errc::malformed || refused.code() == errc::too_deep ||
            refused.code() == errc::too_large);
  }
  return 0;
}
