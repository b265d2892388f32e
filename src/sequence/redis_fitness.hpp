#pragma once

#include <holdfast/redis.hpp>
#include <holdfast/sequence/fence.hpp>
#include <holdfast/version.hpp>

#include <string>
#include <vector>

namespace HOLDFAST_NAMESPACE {

/// Why this Redis, with this fence, could grant a block twice, each with what to do about it. Throws when a master does not answer.
[[nodiscard]] std::vector<std::string> reasons_against(const redis::client& redis, const sequence_fence& fence);

/// The same for what one server says about itself.
[[nodiscard]] HOLDFAST_API std::vector<std::string> reasons_against(const redis::server_report& server, const sequence_fence& fence);

}  // namespace HOLDFAST_NAMESPACE
