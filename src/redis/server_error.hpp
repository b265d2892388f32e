#pragma once

/// \file
/// The meaning of an error that a server sends: for the caller, as a holdfast::error, and for the
/// client, which may have to send the command again.

#include <holdfast/redis.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::redis {

/// Converts an error as the server writes it: `WRONGTYPE Operation against...`. Its first word
/// becomes the backend code and selects the error code.
[[nodiscard]] HOLDFAST_API error server_error(std::string_view text);

/// What the client must do after a reply.
struct reply_action {
  enum class kind : std::uint8_t {
    accept,       ///< the reply is the answer
    moved,        ///< the slot has moved: update the slot map, send again to `address`
    ask,          ///< send this command once to `address`, after ASKING
    retry,        ///< the server did not run the command, and may run it later
    send_script,  ///< the server does not know the script: send it with its text
  };
  kind action = kind::accept;
  std::uint16_t slot = 0;
  std::string address{};  ///< of moved and ask
};

/// Returns true if an error of a server proves that the command changed nothing. `script` is true
/// for commands that run a script or a function: they may write first, and then end with an error
/// of their own that begins with any word.
[[nodiscard]] HOLDFAST_API bool changed_nothing(const error& problem, bool script);

/// `node` is the address of the server that replied. A redirect without a host means its host.
[[nodiscard]] HOLDFAST_API reply_action action_for(const reply& answer, std::string_view node);

}  // namespace HOLDFAST_NAMESPACE::detail::redis
