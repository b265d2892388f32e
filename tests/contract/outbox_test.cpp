#include <holdfast/outbox.hpp>
#include <holdfast/outbox/memory.hpp>

#include "contract/outbox_contract.hpp"
#include "contract/recurring_contract.hpp"
#include "support/virtual_clock.hpp"

#include <memory>

namespace holdfast::test {
namespace {

struct in_memory {
  static constexpr bool commits = true;
  std::shared_ptr<virtual_clock> clock = std::make_shared<virtual_clock>();

  [[nodiscard]] std::shared_ptr<outbox_backend> make(std::size_t lanes) const {
    return make_memory_outbox({.lanes = lanes, .clock = clock});
  }
  void pass(std::chrono::milliseconds time) const { clock->advance(time); }
  void set_clock(std::chrono::milliseconds difference) const { clock->jump(difference); }
};

INSTANTIATE_TYPED_TEST_SUITE_P(memory, OutboxContract, in_memory);
INSTANTIATE_TYPED_TEST_SUITE_P(memory, RecurringContract, in_memory);

}  // namespace
}  // namespace holdfast::test
