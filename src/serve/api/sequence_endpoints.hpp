#pragma once

#include <holdfast/version.hpp>

#include <memory>

namespace HOLDFAST_NAMESPACE::detail::serve {

class endpoint_table;
class sequence_cache;
struct services;

/// /v1/sequences.
void add_sequence_endpoints(endpoint_table& table, services& shared,
                            const std::shared_ptr<sequence_cache>& cache);

}  // namespace HOLDFAST_NAMESPACE::detail::serve
