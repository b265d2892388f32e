#include <holdfast/outbox/backend.hpp>

namespace HOLDFAST_NAMESPACE {

std::vector<std::string> outbox_lane_locks::announce(std::string_view worker,
                                                     std::chrono::milliseconds ttl) {
  if (ttl.count() <= 0) return {};
  return {std::string(worker)};
}

outbox_backend::~outbox_backend() = default;

std::string outbox_backend::prefix() { return {}; }

void outbox_backend::check_supported(const durability& /*durability*/) const {}

std::string outbox_backend::caution(const durability& /*durability*/) const { return {}; }

std::string outbox_backend::key_prefix(std::size_t /*lane*/) const { return {}; }

recurrence_page outbox_backend::read_recurrences(std::size_t /*lane*/,
                                                 const recurrence_query& /*query*/) {
  return {};
}

update_status outbox_backend::update_recurrence(std::size_t /*lane*/,
                                                const recurrence_update& /*update*/,
                                                const publish_terms& /*terms*/) {
  throw error(errc::unsupported_type, "this backend of the outbox has no recurring events");
}

committed outbox_backend::commit(std::size_t /*lane*/, const commit_request& /*request*/,
                                 const publish_terms& /*terms*/) {
  throw error(errc::unsupported_type,
              "commit is only possible on Redis; on SQL, publish in your own transaction "
              "(outbox::publish with a join::transaction)");
}

}  // namespace HOLDFAST_NAMESPACE
