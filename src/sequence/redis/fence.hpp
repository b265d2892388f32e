#pragma once

#include <holdfast/sequence/fence.hpp>
#include <holdfast/version.hpp>

#include <string>

namespace HOLDFAST_NAMESPACE::detail::sequence {

/// Throws errc::invalid_argument if no fence is chosen, or if its values are invalid.
HOLDFAST_API void check_fence(const sequence_fence& fence);

/// The fence as a part of the definition of a sequence: `fence=wait replicas=1 on_disk=no`. It has
/// what decides whether ids can repeat if users differ in it: not how long a user waits, and not
/// how large the super-blocks are.
[[nodiscard]] std::string fence_definition(const sequence_fence& fence);

}  // namespace HOLDFAST_NAMESPACE::detail::sequence
