// Scattered calls: what their typed skins need of the core.

#include <holdfast/failover/each.hpp>

#include "failover/scatter.hpp"

#include <utility>

namespace HOLDFAST_NAMESPACE::detail {

gather_base::~gather_base() = default;

void unkeyed_slice(const point_core& point) noexcept {
  point.count(tally::unkeyed);
  point.warn("unkeyed_slice", "a slice of a call got no key and is not protected; see that its arguments have values",
             std::current_exception());
}

void start_gather(const point_core& point, gather_base& call, std::size_t slices, const std::function<std::string()>& make_key) {
  try {
    if (varies(point)) call.scope_text = vary_text(point);
    call.key = call.listed ? make_key() : "scattered";
  } catch (...) {
    unkeyed(point, call);
  }
  if (slices > point.scatter.max_slices) {
    call.key.clear();
    point.count(tally::too_large);
    point.warn("slices", "a call has more slices than scatter_options::max_slices and is not protected");
  }
  start(point, call);
}

bool drops_missing(const point_core& point) noexcept { return point.scatter.partial.what() == partial::rule::drop; }

void wrong_number_of_items(std::size_t asked, std::size_t got) {
  throw error(errc::malformed, "the upstream was asked for " + std::to_string(asked) + " items and gave " + std::to_string(got) +
                                   "; it must give one for each id, in their order");
}

}  // namespace HOLDFAST_NAMESPACE::detail
