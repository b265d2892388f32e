// The functions of the core that typed scattered calls use.

#include <holdfast/failover/each.hpp>

#include "failover/call.hpp"

namespace HOLDFAST_NAMESPACE::detail::failover {

gather_base::~gather_base() = default;

void record_missing_slice_key(const point_core& point) noexcept {
  point.count(counter::unkeyed);
  point.warn(
      "unkeyed_slice",
      "a slice of a call has no key and is not protected; check that its arguments have values",
      std::current_exception());
}

void start_gather(const point_core& point, gather_base& call, std::size_t slices,
                  const std::function<std::string()>& make_key) {
  try {
    if (varies(point)) call.scope_text = vary_text(point);
    call.key = call.listed ? make_key() : "scattered";
  } catch (...) {
    record_missing_key(point, call);
  }
  if (slices > point.scatter.max_slices) {
    call.key.clear();
    point.count(counter::too_large);
    point.warn("slices",
               "a call has more slices than scatter_options::max_slices and is not protected");
  }
  start(point, call);
}

bool drops_missing(const point_core& point) noexcept {
  return point.scatter.partial.policy() == partial::rule::drop;
}

void wrong_number_of_items(std::size_t requested, std::size_t received) {
  throw error(errc::malformed, "the upstream was asked for " + std::to_string(requested) +
                                   " items and returned " + std::to_string(received) +
                                   "; it must return one for each id, in their order");
}

}  // namespace HOLDFAST_NAMESPACE::detail::failover
