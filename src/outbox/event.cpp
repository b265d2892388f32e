#include <holdfast/outbox/event.hpp>

#include "base/uuid.hpp"

namespace HOLDFAST_NAMESPACE {

std::string new_event_id() { return detail::uuid_v7(); }

std::string expiry_event_id(std::string_view ticket, timestamp expires_at) {
  const auto ms =
      std::chrono::floor<std::chrono::milliseconds>(expires_at).time_since_epoch().count();
  return detail::uuid_v5(detail::uuid_namespace_oid,
                         std::string(ticket) + ':' + std::to_string(ms));
}

}  // namespace HOLDFAST_NAMESPACE
