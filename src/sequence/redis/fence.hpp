#pragma once

#include <holdfast/sequence/fence.hpp>
#include <holdfast/version.hpp>

namespace HOLDFAST_NAMESPACE::detail::sequence {

/// Throws errc::invalid_argument if no fence is chosen, or if its values are invalid.
HOLDFAST_API void check_fence(const sequence_fence& fence);

}  // namespace HOLDFAST_NAMESPACE::detail::sequence
