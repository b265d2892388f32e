#pragma once

/// \file
/// What a server's error means for the caller, and for the client that may follow it to another node.

#include <holdfast/redis.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::redis {

/// An error as the server spells it: `WRONGTYPE Operation against...`. Its first word becomes the backend code and decides the class.
[[nodiscard]] HOLDFAST_API error server_error(std::string_view text);

/// What to do about a reply.
struct verdict {
  enum class kind : std::uint8_t {
    take,      ///< it is the answer
    moved,     ///< the slot lives elsewhere now
    ask,       ///< this command, this once, elsewhere
    again,     ///< the server did not run it, and may later
    no_script  ///< the server does not know the script
  };
  kind what = kind::take;
  std::uint16_t slot = 0;
  std::string address{};  ///< moved, ask: where
};

/// `asked` is the node that answered: an address without a host means the same host.
[[nodiscard]] HOLDFAST_API verdict judge(const reply& answer, std::string_view asked);

}  // namespace HOLDFAST_NAMESPACE::redis
