// A forked child has copies of the sequences of its parent. It must not use them: it would give out
// the same ids.

#include <holdfast/sequence.hpp>

#include "contract/sequence_fork.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <thread>

namespace holdfast::test {
namespace {

TEST(SequenceFork, AChildIsRefused) {
  const sequence_source source(make_memory_block_store());
  auto ids = source.sequence("family", {.blocks = fixed_blocks{1000}});
  auto handle = ids.handle();
  EXPECT_EQ(ids.next(), 1);
  // Beyond the first block, so that the handle takes a batch of ids.
  std::int64_t last = 0;
  for (int i = 0; i < 1100; ++i) last = handle.next();
  EXPECT_EQ(last, 1101);
  EXPECT_EQ(in_forked_child([&] { return use_in_child(ids, handle); }), "");
  EXPECT_EQ(handle.next(), 1102) << "the parent goes on";
  EXPECT_GT(ids.next(), 1103) << "after the batch of the handle";
}

TEST(SequenceFork, AChildCannotUseTheSourceOrTheStore) {
  const auto store = make_memory_block_store();
  const sequence_source source(store);
  EXPECT_EQ(in_forked_child([&] {
              return not_refused("sequence of a source", [&] { (void)source.sequence("other"); }) +
                     not_refused("store of a source", [&] { (void)source.store(); }) +
                     not_refused("peek of a store", [&] { (void)store->peek("family"); });
            }),
            "");
}

/// The child has copies of the locks that threads of the parent hold, but not these threads.
TEST(SequenceFork, AChildDoesNotWaitForTheThreadsOfItsParent) {
  std::optional<sequence_source> source(make_memory_block_store());
  std::optional<sequence> ids(source->sequence("busy", {.blocks = fixed_blocks{1}}));
  const std::jthread drawing([&ids](const std::stop_token& stop) {
    while (!stop.stop_requested()) (void)ids->next();
  });
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(in_forked_child([&] {
                auto problems = not_refused("next", [&] { (void)ids->next(); });
                ids.reset();
                source.reset();
                return problems;
              }),
              "");
  }
}

}  // namespace
}  // namespace holdfast::test
