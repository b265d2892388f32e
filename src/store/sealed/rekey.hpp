#pragma once

#include <holdfast/store/sealed.hpp>

#include "store/sealed/sealer.hpp"

namespace HOLDFAST_NAMESPACE::detail::store {

/// Implements sealed_store::rekey on the store below the sealed one. `entries` and `rewrites` are
/// the same store.
[[nodiscard]] rekey_report rekey_entries(holdfast::store& entries, rewritable_store& rewrites,
                                         sealer& cipher, const rekey_options& options);

}  // namespace HOLDFAST_NAMESPACE::detail::store
