// What the nodes of a Redis Cluster say: any bytes, read as the answer to CLUSTER SLOTS and as redirections, and followed.

#include <holdfast/redis.hpp>

#include "redis/address.hpp"
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

void require(bool condition) {
  if (!condition) std::abort();
}

void require_consistent(const redis::slot_map& map) {
  std::size_t owned = 0;
  for (std::size_t slot = 0; slot < redis::slot_map::slots; ++slot) {
    const auto* master = map.master_of(static_cast<std::uint16_t>(slot));
    if (master == nullptr) continue;
    ++owned;
    require(!master->empty() && (redis::is_socket_path(*master) || redis::port_of(*master) != 0));
  }
  require(owned == map.covered());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  redis::slot_map map;
  try {
    redis::reply_reader reader(std::size_t{1} << 16U);
    reader.feed(bytes);
    while (const auto answer = reader.next()) {
      const auto verdict = redis::judge(*answer, "127.0.0.1:7000");
      if (verdict.what == redis::verdict::kind::moved) map.move(verdict.slot, verdict.address);
      try {
        map = redis::slot_map(*answer, "127.0.0.1:7000", [](const std::string& address) { return address; });
      } catch (const error& refused) {
        require(!refused.message().empty());
      }
      require_consistent(map);
    }
  } catch (const error& refused) {
    require(refused.code() == errc::malformed || refused.code() == errc::too_deep || refused.code() == errc::too_large);
  }
  return 0;
}
