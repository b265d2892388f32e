#pragma once

#include <holdfast/store/sealed.hpp>

#include "store/sealed_envelope.hpp"

namespace HOLDFAST_NAMESPACE {

/// sealed_store::rekey, on the store below the sealed one. `raw` and `rewrites` are the same store.
[[nodiscard]] rekey_report rekey_entries(store& raw, rewritable_store& rewrites, sealer& with, const rekey_options& options);

}  // namespace HOLDFAST_NAMESPACE
