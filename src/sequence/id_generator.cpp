#include <holdfast/id_generator.hpp>
#include <holdfast/sequence.hpp>

#include "base/uuid.hpp"

namespace HOLDFAST_NAMESPACE {

static_assert(id_generator<sequence> && id_generator<sequence_handle> && id_generator<local_ids> &&
              id_generator<uuid_v4_ids> && id_generator<uuid_v7_ids>);
static_assert(!id_generator<int>);

std::string uuid_v4_ids::next() { return detail::uuid_v4(); }
std::string uuid_v7_ids::next() { return detail::uuid_v7(); }

}  // namespace HOLDFAST_NAMESPACE
