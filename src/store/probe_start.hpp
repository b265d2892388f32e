#pragma once

#include <holdfast/database.hpp>
#include <holdfast/version.hpp>

namespace HOLDFAST_NAMESPACE::probing {

/// Looks, when a store is opened, at what can be seen by reading: logs what is not as it should be, and throws errc::missing_object or
/// errc::unsupported_type for what `store_options::probe` refuses. A probe that cannot be made is only logged, unless it is strict.
void at_start(database::state& on, const store_options& options);

}  // namespace HOLDFAST_NAMESPACE::probing
