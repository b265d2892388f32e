#pragma once

/// \file
/// What to ask a server about itself, and how to read the answers. No input or output.

#include <holdfast/redis.hpp>

#include <span>
#include <vector>

namespace HOLDFAST_NAMESPACE::redis {

[[nodiscard]] HOLDFAST_API std::vector<command> probe_questions(bool cluster);
/// The replies to these. Throws the error of the first; what else was refused is left empty.
[[nodiscard]] HOLDFAST_API server_report read_probe(std::span<const reply> replies);

}  // namespace HOLDFAST_NAMESPACE::redis
