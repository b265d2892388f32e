#include "serve/parts.hpp"

#include "serve/auth/identity_part.hpp"

#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve {

// One line for each part.
std::vector<std::unique_ptr<server_part>> make_parts(const config::server_config& config,
                                                     part_hooks hooks) {
  std::vector<std::unique_ptr<server_part>> parts;
  parts.push_back(make_identity_part(config, std::move(hooks.show)));
  return parts;
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
