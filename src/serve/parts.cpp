#include "serve/parts.hpp"

#include "serve/job_part.hpp"
#include "serve/local_authenticator.hpp"
#include "serve/outbox_part.hpp"

namespace HOLDFAST_NAMESPACE::detail::serve {

// One line for each part.
std::vector<std::unique_ptr<server_part>> make_parts(const config::server_config& config) {
  std::vector<std::unique_ptr<server_part>> parts;
  parts.push_back(make_local_identity(config.open));
  parts.push_back(make_job_part());
  parts.push_back(make_outbox_part());
  return parts;
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
