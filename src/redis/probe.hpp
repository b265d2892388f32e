#pragma once

/// \file
/// The commands that ask a server about itself, and how to read its replies. No input or output.

#include <holdfast/redis.hpp>

#include <span>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::redis {

[[nodiscard]] HOLDFAST_API std::vector<command> probe_commands(bool cluster);
/// Reads the replies to probe_commands. Throws if the first is an error; the fields of other
/// refused commands stay empty.
[[nodiscard]] HOLDFAST_API server_report read_probe(std::span<const reply> replies);

}  // namespace HOLDFAST_NAMESPACE::detail::redis
