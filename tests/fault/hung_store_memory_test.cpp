// A database that hangs does not keep a store from answering what it has in memory.

#include <holdfast/database.hpp>
#include <holdfast/store/compose.hpp>

#include "fault/write_storm.hpp"
#include "support/postgres_server.hpp"

#include <gtest/gtest.h>

#include <future>
#include <string>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

TEST(HungDatabase, MemoryAnswersAtOnce) {
  postgres_server server;
  const auto store = compose(open(server.url(), {.statement_timeout = 10min}),
                             {.tiered = tiered_options{.freshness = 1h, .read_deadline = 50ms},
                              .write_behind = write_behind_options{.linger = 100ms}},
                             {.create_schema = true});
  const auto start = system_clock()->now();
  store->put(make_entry("in front", start, "v"));
  auto outdated = make_entry("outdated", start - 2h, "v");
  outdated.expire_on = start + 1h;
  store->put(outdated);
  ASSERT_TRUE(store->flush(steady::now() + 60s).complete());
  server.pause();
  store->put(make_entry("queued", system_clock()->now(), "v"));
  const auto memory_of = [&](const char* key) {
    const auto remembered = store->find_in_memory("n", key);
    return std::string(remembered.current ? "current " : "") +
           (remembered.entry ? *remembered.entry->payload : "-");
  };
  auto answers = std::async(std::launch::async, [&] {
    return memory_of("in front") + ", " + memory_of("outdated") + ", " + memory_of("queued") +
           ", " + memory_of("other");
  });
  EXPECT_EQ(answers.wait_for(60s), std::future_status::ready);
  EXPECT_EQ(answers.get(), "current v, v, current v, -");
  auto queued = std::async(std::launch::async, [&] {
    // Not through the front, which has it, too.
    store->parts().write_behind->put(make_entry("below", system_clock()->now(), "v"));
    return *store->find("n", "below")->payload;
  });
  EXPECT_EQ(queued.wait_for(60s), std::future_status::ready);
  server.resume();
  EXPECT_EQ(queued.get(), "v") << "the read is late, and the queue has the answer";
  EXPECT_TRUE(store->flush(steady::now() + 60s).complete());
}

}  // namespace
}  // namespace holdfast::test
