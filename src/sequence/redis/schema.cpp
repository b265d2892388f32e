#include "sequence/redis/schema.hpp"

#include <holdfast/error.hpp>

#include "redis/schema_number.hpp"

#include <set>

namespace HOLDFAST_NAMESPACE::detail::sequence {

std::vector<int> counter_schema_versions(const redis_counters& counters) {
  std::vector<holdfast::redis::command> queries;
  for (const auto& name : counters.names())
    queries.push_back(
        holdfast::redis::command("HGET").key(counters.key(name)).arg("schema").idempotent());
  std::set<int> versions;
  for (const auto& reply : counters.client().pipeline(queries))
    versions.insert(detail::redis::schema_number(reply.checked()));
  return {versions.begin(), versions.end()};
}

}  // namespace HOLDFAST_NAMESPACE::detail::sequence
