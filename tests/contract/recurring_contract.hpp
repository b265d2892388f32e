#pragma once

/// \file
/// What the recurring events of every outbox do, as tests. The fixtures are those of
/// outbox_contract.hpp.

#include <holdfast/outbox.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::test {

template <class Fixture>
class RecurringContract : public ::testing::Test {
 protected:
  using query_kind = recurrence_query::kind;

  [[nodiscard]] outbox open(std::size_t lanes = 1) {
    return outbox(fixture_.make(lanes), {.lanes = lanes});
  }
  static timestamp now_of(outbox_backend& store) {
    return store.read_recurrences(0, {.selection = query_kind::name, .name = "none"}).now;
  }
  static std::vector<std::string> names(const recurrence_page& page) {
    std::vector<std::string> result;
    for (const auto& one : page.recurrences) result.push_back(one.name);
    return result;
  }
  static stored_recurrence stored(const std::string& name, timestamp due, const std::string& text) {
    return {.name = name,
            .due = timestamp(std::chrono::floor<std::chrono::milliseconds>(due.time_since_epoch())),
            .text = text};
  }
  /// Claims and acknowledges all events; returns the due time of each.
  static std::vector<std::string> deliver(const outbox& box) {
    std::vector<std::string> due_times;
    for (std::size_t lane = 0; lane < box.lanes(); ++lane) {
      for (;;) {
        const auto got = box.claim({.lane = lane, .run = 100});
        if (got.events.empty()) break;
        std::vector<settlement> acks;
        for (const auto& one : got.events) {
          due_times.push_back(one.event.headers.at("Holdfast-Due"));
          acks.push_back({.id = one.event.id, .key = one.event.key});
        }
        (void)box.settle(lane, got.fence, std::move(acks));
      }
    }
    return due_times;
  }

  Fixture fixture_;
};

TYPED_TEST_SUITE_P(RecurringContract);

TYPED_TEST_P(RecurringContract, AnUpdateIsMadeOnceAndOnlyOnWhatWasRead) {
  const auto box = this->open();
  auto& store = *box.backend();
  const publish_terms terms{.dedup_window = std::chrono::minutes(5)};
  const auto now = this->now_of(store);
  const event published{.type = "t", .payload = "{}", .id = new_event_id()};
  const recurrence_update add{.name = "n", .replacement = this->stored("n", now, "one")};
  EXPECT_EQ(store.update_recurrence(0, add, terms), update_status::done);
  EXPECT_EQ(store.update_recurrence(0, add, terms), update_status::done) << "repeated";
  const recurrence_update other{.name = "n", .replacement = this->stored("n", now, "other")};
  EXPECT_EQ(store.update_recurrence(0, other, terms), update_status::conflict);
  const recurrence_update step{.name = "n",
                               .expected = "one",
                               .replacement = this->stored("n", now + std::chrono::hours(1), "two"),
                               .events = {published}};
  EXPECT_EQ(store.update_recurrence(0, step, terms), update_status::done);
  EXPECT_EQ(store.update_recurrence(0, step, terms), update_status::done) << "repeated";
  recurrence_update late = step;
  late.replacement = this->stored("n", now, "late");
  late.events[0].id = new_event_id();
  EXPECT_EQ(store.update_recurrence(0, late, terms), update_status::conflict);
  EXPECT_EQ(box.admin().stats().published, 1U);
  EXPECT_EQ(box.admin().stats().duplicates, 0U);
  const auto page =
      store.read_recurrences(0, {.selection = TestFixture::query_kind::name, .name = "n"});
  ASSERT_EQ(page.recurrences.size(), 1U);
  EXPECT_EQ(page.recurrences[0].text, "two");
  EXPECT_EQ(page.recurrences[0].due, step.replacement->due);
  const recurrence_update removal{.name = "n", .expected = "two"};
  EXPECT_EQ(store.update_recurrence(0, {.name = "n", .expected = "one"}, terms),
            update_status::conflict);
  EXPECT_EQ(store.update_recurrence(0, removal, terms), update_status::done);
  EXPECT_EQ(store.update_recurrence(0, removal, terms), update_status::done) << "repeated";
  EXPECT_TRUE(
      store.read_recurrences(0, {.selection = TestFixture::query_kind::all}).recurrences.empty());
  EXPECT_TRUE(box.admin().check().well());
}

TYPED_TEST_P(RecurringContract, FindsWhatIsDue) {
  const auto box = this->open();
  auto& store = *box.backend();
  using std::chrono::hours;
  const auto now = this->now_of(store);
  EXPECT_FALSE(store.read_recurrences(0, {.horizon = hours(25)}).next);
  const auto put = [&](const std::string& name, timestamp due) {
    EXPECT_EQ(store.update_recurrence(
                  0, {.name = name, .replacement = this->stored(name, due, "text of " + name)}, {}),
              update_status::done);
  };
  put("later", now + hours(1));
  const auto quiet = store.read_recurrences(0, {.horizon = hours(25)});
  EXPECT_TRUE(quiet.recurrences.empty());
  ASSERT_TRUE(quiet.next);
  EXPECT_GT(*quiet.next, std::chrono::minutes(50));
  EXPECT_LE(*quiet.next, hours(1));
  put("far", now + hours(24 * 365));
  EXPECT_EQ(this->names(store.read_recurrences(0, {.horizon = hours(25)})),
            std::vector<std::string>{"far"})
      << "written while the clock was ahead";
  put("b", now - hours(1));
  put("a", now - hours(2));
  put("\xc3\xa9 c", now - hours(3));
  const auto due = store.read_recurrences(0, {.horizon = hours(25)});
  ASSERT_GE(due.recurrences.size(), 3U);
  EXPECT_EQ(due.recurrences[0].name, "\xc3\xa9 c");
  EXPECT_EQ(due.recurrences[1].name, "a");
  EXPECT_EQ(due.recurrences[1].text, "text of a");
  EXPECT_EQ(due.recurrences[2].name, "b");
  EXPECT_EQ(due.next, std::chrono::milliseconds(0));
  EXPECT_EQ(this->names(store.read_recurrences(0, {.horizon = hours(25), .most = 1})).size(), 1U);
  std::vector<std::string> all;
  for (std::string after;;) {
    const auto page = store.read_recurrences(
        0, {.selection = TestFixture::query_kind::all, .name = after, .most = 2});
    if (page.recurrences.empty()) break;
    for (const auto& one : page.recurrences) all.push_back(one.name);
    after = all.back();
  }
  EXPECT_EQ(all, (std::vector<std::string>{"a", "b", "far", "later", "\xc3\xa9 c"}));
  EXPECT_EQ(box.admin().stats().tickets, 0U) << "they are not tickets";
  EXPECT_TRUE(box.admin().check(true).well());
  EXPECT_EQ(box.admin().recurring().size(), 5U) << "a repair leaves them alone";
}

TYPED_TEST_P(RecurringContract, OneEventForEachDueTimeHoweverManyWorkersRun) {
  const auto box = this->open();
  EXPECT_EQ(box.recur("every second", "* * * * * *", {.tolerance = std::chrono::hours(1)},
                      {.type = "tick", .payload = "{}"}),
            recur_status::added);
  std::atomic<bool> stop{false};
  std::atomic<std::size_t> published{0};
  std::vector<std::thread> workers;
  for (int i = 0; i < 4; ++i) {
    workers.emplace_back([&] {
      while (!stop) {
        published += box.drain(0).recurring;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
    });
  }
  for (int i = 0; i < 4; ++i) this->fixture_.pass(std::chrono::milliseconds(1000));
  stop = true;
  for (auto& one : workers) one.join();
  (void)box.drain(0);
  const auto due_times = this->deliver(box);
  const std::set<std::string> distinct(due_times.begin(), due_times.end());
  EXPECT_GE(distinct.size(), 4U);
  EXPECT_EQ(distinct.size(), due_times.size());
  const auto listed = box.admin().recurring();
  ASSERT_EQ(listed.size(), 1U);
  EXPECT_EQ(listed[0].published, due_times.size());
  EXPECT_EQ(listed[0].skipped, 0U);
  EXPECT_EQ(box.admin().stats().duplicates, 0U);
  EXPECT_TRUE(box.cancel_recurring("every second"));
  this->fixture_.pass(std::chrono::milliseconds(1100));
  EXPECT_EQ(box.drain(0).recurring, 0U);
  EXPECT_TRUE(box.admin().check().well());
}

TYPED_TEST_P(RecurringContract, ManyProgramsDefineTheSame) {
  const auto box = this->open(4);
  std::atomic<int> added{0}, changed{0}, unchanged{0};
  const auto define_all = [&](bool same) {
    std::vector<std::thread> programs;
    for (int i = 0; i < 8; ++i) {
      programs.emplace_back([&, i] {
        const auto cron = same ? std::string("0 3 * * *") : std::to_string(i) + " 4 * * *";
        const auto status = box.recur("nightly", cron, {.zone = "Europe/Paris"}, {.type = "t"});
        ++(status == recur_status::added     ? added
           : status == recur_status::changed ? changed
                                             : unchanged);
      });
    }
    for (auto& one : programs) one.join();
  };
  define_all(true);
  EXPECT_EQ(added, 1);
  EXPECT_EQ(unchanged, 7);
  define_all(false);
  EXPECT_EQ(changed, 8);
  const auto listed = box.admin().recurring();
  ASSERT_EQ(listed.size(), 1U);
  EXPECT_NE(listed[0].cron.find(" 4 * * *"), std::string::npos);
  EXPECT_EQ(listed[0].options.zone, "Europe/Paris");
  EXPECT_EQ(listed[0].problem, "");
}

TYPED_TEST_P(RecurringContract, ItsEventsKeepTheOrderOfTheirKey) {
  const auto box = this->open(4);
  const event what{.type = "t", .key = "customer-1", .payload = R"({"text":"\u00e9 \"q\""})"};
  (void)box.recur("job", "* * * * * *", {.tolerance = std::chrono::hours(1)}, what);
  const auto lane = box.lane_of("customer-1");
  this->fixture_.pass(std::chrono::milliseconds(2100));
  for (std::size_t i = 0; i < box.lanes(); ++i) {
    const auto step = box.drain(i);
    EXPECT_EQ(step.recurring > 0, i == lane);
  }
  (void)box.publish({.type = "t", .key = "customer-1", .headers = {{"Holdfast-Due", "last"}}});
  const auto due_times = this->deliver(box);
  ASSERT_GE(due_times.size(), 3U);
  EXPECT_TRUE(std::is_sorted(due_times.begin(), due_times.end()));
  EXPECT_EQ(due_times.back(), "last");
}

TYPED_TEST_P(RecurringContract, SkipsWhileItsEventIsThere) {
  const auto box = this->open();
  (void)box.recur("job", "* * * * * *",
                  {.overlap = overlap_policy::skip, .tolerance = std::chrono::hours(1)},
                  {.type = "t"});
  this->fixture_.pass(std::chrono::milliseconds(1100));
  EXPECT_EQ(box.drain(0).recurring, 1U);
  this->fixture_.pass(std::chrono::milliseconds(1100));
  EXPECT_EQ(box.drain(0).recurring, 0U);
  EXPECT_EQ(this->deliver(box).size(), 1U);
  this->fixture_.pass(std::chrono::milliseconds(1100));
  EXPECT_EQ(box.drain(0).recurring, 1U);
  EXPECT_GE(box.admin().recurring().at(0).skipped, 1U);
}

TYPED_TEST_P(RecurringContract, WorkersOfAnEarlierVersionLeaveThemAlone) {
  const auto box = this->open();
  (void)box.recur("job", "* * * * * *", {.tolerance = std::chrono::hours(1)}, {.type = "t"});
  this->fixture_.pass(std::chrono::milliseconds(1100));
  // All that their drain does.
  const auto drained = box.backend()->drain(0, 100, {});
  EXPECT_EQ(drained.tickets, 0U);
  EXPECT_FALSE(drained.next) << "they do not wait for it either";
  EXPECT_TRUE(box.admin().scan(scan_what::tickets).records.empty());
  EXPECT_EQ(box.claim().status, claim_status::empty);
  EXPECT_GE(box.drain(0).recurring, 1U);
}

TYPED_TEST_P(RecurringContract, PublishesBeyondAQuota) {
  const auto backend = this->fixture_.make(1);
  const outbox box(backend, {.quota = {.events = 1}});
  (void)box.publish({.type = "t", .headers = {{"Holdfast-Due", "none"}}});
  EXPECT_THROW((void)box.publish({.type = "t"}), error);
  (void)box.recur("job", "* * * * * *", {}, {.type = "t"});
  this->fixture_.pass(std::chrono::milliseconds(1100));
  EXPECT_GE(box.drain(0).recurring, 1U) << "as tickets do";
}

REGISTER_TYPED_TEST_SUITE_P(RecurringContract, AnUpdateIsMadeOnceAndOnlyOnWhatWasRead,
                            FindsWhatIsDue, OneEventForEachDueTimeHoweverManyWorkersRun,
                            ManyProgramsDefineTheSame, ItsEventsKeepTheOrderOfTheirKey,
                            SkipsWhileItsEventIsThere, WorkersOfAnEarlierVersionLeaveThemAlone,
                            PublishesBeyondAQuota);

}  // namespace holdfast::test
