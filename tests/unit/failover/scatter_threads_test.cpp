// One deadline for all slices, few threads, and a store that hangs.

#include "support/gate.hpp"
#include "unit/failover/scatter_fixture.hpp"

#include <algorithm>
#include <filesystem>
#include <future>

namespace holdfast::test {
namespace {

std::size_t threads_of_this_process() {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator("/proc/self/task"),
                    std::filesystem::directory_iterator{}));
}

thread_local std::string trace;

class ScatterThreads : public scatter_test {
 protected:
  void TearDown() override {
    held.open();
    finish();
  }

  /// An engine on a store that may wait; operations that `hangs` names wait at the gate.
  engine& slow(engine_options options = {}) {
    auto& created = make(std::move(options), true);
    const auto counts = shaky->before;
    shaky->before = [this, counts](faulty_store::operation operation, std::span<const entry> rows) {
      counts(operation, rows);
      if (hangs && hangs(operation)) held.wait();
    };
    return created;
  }
  void hang(faulty_store::operation hanging, int after = 0) {
    held.close();
    hangs = [this, hanging, after](faulty_store::operation operation) {
      return operation == hanging && seen++ >= after;
    };
  }

  gate held;
  std::atomic<int> seen{0};
  std::function<bool(faulty_store::operation)> hangs{};
};

TEST_F(ScatterThreads, RowsAreReadInParallelAndTheCallersContextGoesAlong) {
  std::set<std::string> traces;
  std::mutex mutex;
  slow({.threads = {.propagate = {[] {
                      return [carried = trace](const std::function<void()>& work) {
                        trace = carried;
                        work();
                        trace.clear();
                      };
                    }}}});
  const auto many = each({.domain = "country", .scatter = scatter_options{.parallel = 3}});
  codes all;
  for (int i = 0; i < 1000; ++i) {
    all.push_back("c" + std::to_string(i));
    world[all.back()] = {all.back(), "n"};
  }
  (void)many(all);
  ASSERT_TRUE(current_engine().flush(clock->steady() + 20s));
  down = true;
  // Three of the four parts must be inside at once, else none of them continues.
  std::atomic<int> inside{0};
  std::atomic<int> most{0};
  shaky->before = [&](faulty_store::operation operation, std::span<const entry>) {
    if (operation != faulty_store::operation::find) return;
    {
      const std::scoped_lock lock(mutex);
      traces.insert(trace);
    }
    const int now = ++inside;
    int highest = most;
    while (now > highest && !most.compare_exchange_weak(highest, now)) {
    }
    EXPECT_TRUE(eventually([&] { return most >= 3; }));
  };
  shaky->after = [&](faulty_store::operation operation, std::span<const entry>) {
    if (operation == faulty_store::operation::find) --inside;
  };
  trace = "request 7";
  const auto a = many(all);
  trace.clear();
  EXPECT_EQ(codes_of(a), all);
  EXPECT_EQ(a.complete(), completeness::yes);
  EXPECT_EQ(most, 3);
  EXPECT_EQ(traces, (std::set<std::string>{"request 7"}));
  shaky->after = nullptr;
}

TEST_F(ScatterThreads, SixHungSlicesCostOneDeadlineNotSix) {
  // On the machine's own clock: this is about real time.
  const auto real = std::make_shared<faulty_store>(memory);
  holdfast::engine fast(real, {.threads = {.count = 8}});
  const auto before = threads_of_this_process();
  const auto many =
      fast.protect_each("hung",
                        {.domain = "country",
                         .expiry = expiry(std::chrono::years(10)),
                         .scatter = scatter_options{.timeout = 300ms}},
                        [this](std::span<const std::string> some) { return ask(some); });
  (void)many(codes{"1", "2", "3", "4", "5", "6", "FR"});
  ASSERT_TRUE(fast.flush(std::chrono::steady_clock::now() + 20s));
  down = true;
  std::atomic<bool> hung{true};
  real->before = [&](faulty_store::operation operation, std::span<const entry>) {
    if (operation == faulty_store::operation::find && hung) held.wait();
  };
  // A loaded machine may wake threads late, so one success is enough: one wait is shorter than two.
  bool good = false;
  for (int attempt = 0; attempt < 10 && !good; ++attempt) {
    held.close();
    const auto start = std::chrono::steady_clock::now();
    const auto a = many.try_call(codes{"1", "2", "3", "4", "5", "6", "FR"});
    const auto took = std::chrono::steady_clock::now() - start;
    good = took < 550ms && !a.has_value();
    EXPECT_GE(took, 295ms);
    EXPECT_LE(threads_of_this_process(), before + 8 + 2) << "a pool of eight, and the writer";
    held.open();
    ASSERT_TRUE(eventually([&] { return held.waiting() == 0; }));
  }
  EXPECT_TRUE(good);
  hung = false;
  held.open();
  (void)fast.close(std::chrono::steady_clock::now() + 20s);
}

TEST_F(ScatterThreads, AStoreThatHasGoneSilentIsNotWaitedForLongerThanByASingleCall) {
  slow({.storage = {.read_deadline = 5s}});
  const auto many = each();  // with a timeout of ten seconds
  (void)many(codes{"FR"});
  ASSERT_TRUE(current_engine().flush(clock->steady() + 20s));
  down = true;
  hang(faulty_store::operation::find);
  std::jthread caller([&] { EXPECT_THROW((void)many(codes{"FR"}), outage); });
  ASSERT_TRUE(eventually([&] { return held.waiting() == 1; }));
  clock->advance(5s);
  caller.join();
  EXPECT_EQ(numbers("countries-by-codes").read_late, 1U);
  held.open();
}

TEST_F(ScatterThreads, WithoutAFreeThreadAllSlicesAreMissingAtOnce) {
  slow({.threads = {.count = 1, .queue = 1}});
  const auto many = each();
  (void)many(codes{"FR", "DE"});
  ASSERT_TRUE(current_engine().flush(clock->steady() + 20s));
  down = true;
  hang(faulty_store::operation::find);
  const auto call = [&] { (void)many.try_call(codes{"IT"}); };
  const std::jthread running(call);
  ASSERT_TRUE(eventually([&] { return held.waiting() == 1; }));
  // One of two more waits for the thread, and the other is refused.
  const std::jthread second(call);
  const std::jthread third(call);
  const open_in_the_end release(held);
  ASSERT_TRUE(eventually([&] { return numbers("countries-by-codes").read_late == 1; }));
  EXPECT_THROW((void)many(codes{"FR", "DE"}), outage) << "without waiting: the clock stands still";
  EXPECT_EQ(numbers("countries-by-codes").read_late, 3U);
}

TEST_F(ScatterThreads, AStoreThatTakesTooLongToWriteIsACountedFailureAndTheAnswerIsLive) {
  slow();
  const auto many = each(
      {.domain = "country", .write_behind = false, .scatter = scatter_options{.timeout = 20s}});
  hang(faulty_store::operation::put);
  auto caller = std::async(std::launch::async, [&] { return many(codes{"FR", "DE"}); });
  ASSERT_TRUE(eventually([&] { return held.waiting() == 1; }));
  clock->advance(20s);
  EXPECT_TRUE(caller.get().live());
  EXPECT_EQ(numbers("countries-by-codes").store_failed, 2U);
  held.open();
  ASSERT_TRUE(eventually([&] { return row("FR", "country").has_value(); }))
      << "what had begun goes on";
}

TEST_F(ScatterThreads, ADeadlineOfTheUpstreamWorksForScatteredCalls) {
  const auto waiting = std::make_shared<gate>();
  const auto many = current_engine().protect_each(
      "late", {.domain = "country", .expiry = 24h, .deadline = 20s},
      [this, waiting](const call_context& context, std::span<const std::string> some) {
        EXPECT_EQ(context.point, "late");
        if (down) waiting->wait();
        std::vector<std::optional<country>> all;
        for (const auto& code : some) all.emplace_back(country{code, down ? "late" : "first"});
        return all;
      });
  EXPECT_TRUE(many(codes{"FR", "DE"}).live());
  clock->advance(1s);
  down = true;
  auto caller = std::async(std::launch::async, [&] { return many(codes{"FR", "DE"}); });
  const open_in_the_end release(*waiting);
  ASSERT_TRUE(eventually([&] { return waiting->waiting() == 1; }));
  clock->advance(20s);
  const auto a = caller.get();
  EXPECT_EQ(a[0]->name, "first");
  EXPECT_EQ(a.cause().code(), cause_code::late);
  EXPECT_EQ(a.complete(), completeness::yes);
  waiting->open();
  ASSERT_TRUE(eventually([&] { return numbers("late").late_stored == 1; }));
  EXPECT_EQ(row("DE", "country")->payload, "DE|late");
}

TEST_F(ScatterThreads, ManyCallersAtOnce) {
  slow();
  const auto many = each();
  const auto all = list();
  (void)all("");
  ASSERT_TRUE(current_engine().flush(clock->steady() + 20s));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        if (t == 0) down = i % 2 == 0;
        const auto a = many(codes{"FR", "DE", "FR"});
        EXPECT_EQ(a.complete(), completeness::yes);
        EXPECT_EQ(a[2]->code, "FR");
        EXPECT_EQ(all("").size(), 4U);
      }
    });
  }
  for (auto& each : threads) each.join();
  EXPECT_EQ(status("countries").running, 0U);
}

TEST_F(ScatterThreads, AStoreThatHangsTakesNoLiveAnswerAway) {
  slow();
  const auto many = each({.domain = "country",
                          .expiry = 24h,
                          .deadline = 20s,
                          .write_behind = false,
                          .scatter = scatter_options{.timeout = 60s}});
  hang(faulty_store::operation::put);
  auto got = std::async(std::launch::async, [&] { return many(codes{"FR", "DE"}); });
  EXPECT_TRUE(eventually([&] { return held.waiting() == 1; }));
  clock->advance(11s);
  try {
    EXPECT_TRUE(got.get().live()) << "the upstream was in time";
  } catch (const std::exception& e) {
    ADD_FAILURE() << e.what();
  }
  held.open();
  EXPECT_TRUE(eventually([&] { return row("FR", "country").has_value(); }))
      << "what had begun goes on";
}

}  // namespace
}  // namespace holdfast::test
