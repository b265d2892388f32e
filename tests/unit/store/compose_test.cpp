#include <holdfast/database.hpp>
#include <holdfast/store/compose.hpp>
#include <holdfast/store/memory.hpp>

#include "support/failure_of.hpp"
#include "support/manual_executor.hpp"
#include "support/model_store.hpp"
#include "support/virtual_clock.hpp"

#include <gtest/gtest.h>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

const std::string a_key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

entry make(std::string key, std::string payload = "{}") {
  const auto now = system_clock()->now();
  return {.name = "n",
          .key = std::move(key),
          .as_of = now,
          .expire_on = now + 1h,
          .payload = std::move(payload),
          .payload_class = "c"};
}

std::shared_ptr<composed_store> all_of_it(std::shared_ptr<holdfast::store> base) {
  return compose(std::move(base),
                 {.tenants = tenant_options{.tenants = {"acme", "globex"}},
                  .tiered = tiered_options{},
                  .write_behind = write_behind_options{},
                  .sealed = sealed_options{.keys = sealing_ring::from_text("k1:" + a_key)}});
}

TEST(Compose, AllOfItIsOneStore) {
  const auto base = std::make_shared<model_store>();
  const auto store = all_of_it(base);
  const tenant_scope scope("acme");
  const auto e = make("k", "secret");
  store->put(e);
  EXPECT_EQ(store->find("n", "k"), e);
  const auto report = store->flush(std::chrono::steady_clock::now() + 10s);
  EXPECT_TRUE(report.complete());
  const auto below = base->find({"n", "acme"}, "k");
  ASSERT_TRUE(below.has_value());
  EXPECT_TRUE(below->payload.value().starts_with("ENC(k1:"));
  EXPECT_EQ(store->parts().sealed->numbers().sealed, 1U);
  EXPECT_EQ(store->parts().write_behind->numbers().written, 1U);
  EXPECT_GE(store->parts().tiered->stats().fresh, 1U);
  EXPECT_EQ(store->parts().base, base);
  EXPECT_TRUE(store->health().available);
}

TEST(Compose, TheQueueIsOneAndTheRealmsStayApartInIt) {
  const auto base = std::make_shared<model_store>();
  const auto store = all_of_it(base);
  for (const char* id : {"acme", "globex"}) {
    const tenant_scope scope(id);
    store->put(make("k", id));
  }
  for (const char* id : {"acme", "globex"}) {
    const tenant_scope scope(id);
    EXPECT_EQ(store->find("n", "k").value().payload, id);
    EXPECT_EQ(store->count("n"), 1U);
  }
  EXPECT_TRUE(store->close(std::chrono::steady_clock::now() + 10s).complete());
  EXPECT_EQ(base->count({"n", "acme"}), 1U);
  EXPECT_EQ(base->count({"n", "globex"}), 1U);
}

TEST(Compose, EachPartIsOptional) {
  const auto base = std::make_shared<model_store>();
  const auto plain = compose(base, {});
  plain->put(make("k"));
  EXPECT_TRUE(base->find("n", "k").has_value());
  EXPECT_TRUE(plain->flush(std::chrono::steady_clock::now()).complete()) << "it is written already";
  EXPECT_TRUE(plain->close(std::chrono::steady_clock::now()).complete());
  EXPECT_EQ(plain->parts().sealed, nullptr);
  const auto with_memory = compose(base, {.tiered = tiered_options{}});
  EXPECT_TRUE(with_memory->find("n", "k").has_value());
}

TEST(Compose, WhatWasQueuedIsThereWhenItGoes) {
  const auto base = std::make_shared<model_store>();
  {
    const auto store = all_of_it(base);
    const tenant_scope scope("acme");
    for (int i = 0; i < 100; ++i) store->put(make(std::to_string(i)));
  }
  EXPECT_EQ(base->count({"n", "acme"}), 100U);
}

TEST(Compose, ThePartsHaveTheClockAndTheExecutorOfTheDatabase) {
  const auto clock = std::make_shared<virtual_clock>();
  const auto executor = std::make_shared<manual_executor>(clock);
  const auto db = open("memory:", {.clock = clock, .executor = executor});
  const auto store =
      compose(db, {.tiered = tiered_options{.freshness = 1s, .read_deadline = 1ms},
                   .write_behind = write_behind_options{.refresh_after = 0ms, .linger = 0ms}});
  auto e = make("k", "v");
  e.as_of = clock->now();
  e.expire_on = clock->now() + 1h;
  store->put(e);
  EXPECT_EQ(store->parts().base->find("n", "k"), std::nullopt) << "the writer did not run";
  executor->run_all();
  EXPECT_EQ(store->parts().base->find("n", "k"), e);
  EXPECT_EQ(store->find("n", "k"), e);
  EXPECT_EQ(store->parts().tiered->stats().fresh, 1U) << "by the database's clock";
  clock->advance(2s);
  EXPECT_EQ(store->find("n", "k"), e) << "what is in front, because the read is late";
  EXPECT_EQ(store->parts().tiered->stats().late, 1U) << "the read did not run";
  executor->clear();  // the late read holds the store, which holds its executor
}

TEST(Compose, ADeadlineForReadsNeedsNoExecutorWhereTheDatabaseHasItsOwn) {
  const auto store = compose(open("memory:"), {.tiered = tiered_options{.read_deadline = 10s}});
  EXPECT_EQ(store->find("n", "k"), std::nullopt);
  EXPECT_EQ(store->parts().tiered->stats().asked, 1U);
}

TEST(Compose, SaysWhetherItsBaseWaits) {
  EXPECT_TRUE(all_of_it(std::make_shared<model_store>())->waits());
  EXPECT_FALSE(all_of_it(make_memory_store())->waits());
  EXPECT_FALSE(compose(make_memory_store(),
                       {.sealed = sealed_options{.keys = sealing_ring::from_text("k1:" + a_key)}})
                   ->waits());
}

TEST(Compose, NeedsABase) {
  EXPECT_EQ(failure_of([] { (void)compose(nullptr, {}); }).code(), errc::invalid_argument);
  EXPECT_EQ(failure_of([] {
              (void)compose(
                  nullptr,
                  {.sealed = sealed_options{.keys = sealing_ring::from_text("k1:" + a_key)}});
            }).code(),
            errc::invalid_argument);
}

}  // namespace
}  // namespace holdfast::test
