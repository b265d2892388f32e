#include "serve/parts.hpp"

#include "serve/auth/identity_part.hpp"
#include "serve/console/console_part.hpp"
#include "serve/job_part.hpp"
#include "serve/live/live_part.hpp"
#include "serve/outbox_part.hpp"

#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve {

// One line for each part.
std::vector<std::unique_ptr<server_part>> make_parts(const config::server_config& config,
                                                     part_hooks hooks) {
  std::vector<std::unique_ptr<server_part>> parts;
  parts.push_back(make_identity_part(config, std::move(hooks.show)));
  parts.push_back(make_job_part());
  parts.push_back(make_outbox_part());
  parts.push_back(make_live_part());
  parts.push_back(make_console_part());
  return parts;
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
