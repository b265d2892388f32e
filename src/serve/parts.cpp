#include "serve/parts.hpp"

#include "serve/local_authenticator.hpp"

namespace HOLDFAST_NAMESPACE::detail::serve {

// One line for each part.
std::vector<std::unique_ptr<server_part>> make_parts(const config::server_config& config) {
  std::vector<std::unique_ptr<server_part>> parts;
  parts.push_back(make_local_identity(config.open));
  return parts;
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
