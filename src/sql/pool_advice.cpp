#include "sql/pool_advice.hpp"

namespace HOLDFAST_NAMESPACE::sql {

std::vector<std::string> advise(const pool_options& pool, const scatter_figures& scatter) {
  std::vector<std::string> warnings;
  if (scatter.deadline.count() > 0 && pool.acquire_timeout > scatter.deadline) {
    warnings.push_back("pool.acquire_timeout (" + std::to_string(pool.acquire_timeout.count()) +
                       " ms) is above the deadline of a scatter (" + std::to_string(scatter.deadline.count()) +
                       " ms): slices would wait for a connection after nobody waits for them; lower the timeout to the deadline or below");
  }
  // One connection is the writer's: slices that recover have the others.
  const std::size_t readers = pool.maximum > 0 ? pool.maximum - 1 : 0;
  if (scatter.widest > readers) {
    warnings.push_back("pool.maximum (" + std::to_string(pool.maximum) + ") leaves " + std::to_string(readers) +
                       " connections to read, but a scatter runs " + std::to_string(scatter.widest) +
                       " slices at once: some would wait for others; raise pool.maximum to " + std::to_string(scatter.widest + 1) +
                       " or make the scatter narrower");
  }
  return warnings;
}

}  // namespace HOLDFAST_NAMESPACE::sql
