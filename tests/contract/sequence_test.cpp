#include <holdfast/sequence/block_store.hpp>

#include "contract/sequence_contract.hpp"

namespace holdfast::test {
namespace {

struct in_memory {
  static std::shared_ptr<block_store> make() { return make_memory_block_store(); }
};

INSTANTIATE_TYPED_TEST_SUITE_P(Memory, BlockStoreContract, in_memory);

}  // namespace
}  // namespace holdfast::test
