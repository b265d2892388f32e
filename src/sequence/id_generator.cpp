#include <holdfast/id_generator.hpp>
#include <holdfast/sequence.hpp>

namespace HOLDFAST_NAMESPACE {

static_assert(id_generator<sequence> && id_generator<sequence_handle> && id_generator<local_ids> &&
              id_generator<uuid_v4_ids> && id_generator<uuid_v7_ids> &&
              id_generator<any_id_generator<std::int64_t>> && id_generator<any_id_generator<uuid>>);
static_assert(!id_generator<int>);
static_assert(sizeof(uuid) == 16);

}  // namespace HOLDFAST_NAMESPACE
