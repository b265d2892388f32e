#include "serve/api/services.hpp"

#include <holdfast/error.hpp>

#include <algorithm>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

template <class Service>
Service& find_named(std::vector<Service>& list, std::string_view name, const char* kind) {
  const auto it = std::ranges::find(list, name, &Service::name);
  if (it != list.end()) return *it;
  std::string message = std::string("there is no ") + kind + " of this name; configured: ";
  for (const auto& service : list)
    message += (&service == &list.front() ? "" : ", ") + service.name;
  if (list.empty()) message += "none";
  throw error(errc::not_found, message);
}

}  // namespace

store_service& services::find_store(std::string_view name) {
  return find_named(stores, name, "store");
}

outbox_service& services::find_outbox(std::string_view name) {
  return find_named(outboxes, name, "outbox");
}

sequence_service& services::find_sequences() {
  if (!sequences) throw error(errc::not_found, "no database for sequences is configured");
  return *sequences;
}

identity& services::find_identity() {
  if (auth == nullptr) throw error(errc::internal, "the server has no identity");
  return *auth;
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
