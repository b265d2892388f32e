// A bad point fails when it is registered, with all that is wrong with it.

#include <holdfast/store/compose.hpp>

#include "failover/type_name.hpp"
#include "support/failure_of.hpp"
#include "unit/failover/fixture.hpp"

namespace holdfast::test {
namespace {

using detail::failover::default_class_name;

class FailoverRegistration : public failover_test {};

/// An argument that nobody can own but its caller.
struct sole {
  explicit sole(int number) : n(number) {}
  sole(const sole&) = delete;
  sole& operator=(const sole&) = delete;
  ~sole() = default;
  int n;
};
int holdfast_key(const sole& s) { return s.n; }

TEST_F(FailoverRegistration, AllProblemsAreListedAtOnce) {
  make();
  const auto problem = failure_of([&] {
    (void)protect(std::string(60, 'n'), {.expiry = 0s,
                                         .soft_expiry = -1s,
                                         .key_generator = "unknown",
                                         .vary = {"user", "user"},
                                         .exception_policy = exception_policy::custom,
                                         .deadline = 0s,
                                         .retry = retry_options{.attempts = 0},
                                         .breaker = breaker_options{.failure_rate = 2},
                                         .payload_class = "not a name"});
  });
  EXPECT_EQ(problem.code(), errc::invalid_argument);
  for (const char* text :
       {"60 characters", "expiry must be positive", "soft_expiry", "unknown", "engine_caller::vary",
        "twice", "custom", "deadline", "retry.attempts", "breaker.failure_rate", "space"}) {
    EXPECT_NE(problem.message().find(text), std::string::npos)
        << text << " is missing in: " << problem.message();
  }
  EXPECT_TRUE(current_engine().points().empty()) << "nothing was registered";
}

TEST_F(FailoverRegistration, NamesAreUnique) {
  (void)protect("a");
  EXPECT_EQ(failure_of([&] { (void)protect("a"); }).code(), errc::duplicate);
  EXPECT_EQ(failure_of([&] { (void)protect(""); }).code(), errc::invalid_argument);
  EXPECT_EQ(failure_of([&] { (void)protect(" \t"); }).code(), errc::invalid_argument);
}

/// A store that says that its table is shared.
class shared_with_java final : public store {
 public:
  void put(std::span<const entry> entries) override { last = entries.back(); }
  std::optional<entry> find(place, std::string_view) override { return last; }
  entry_page find_all(place, std::size_t, std::string_view) override { return {}; }
  bool erase(place, std::string_view, timestamp) override { return false; }
  std::size_t expire(timestamp, std::size_t) override { return 0; }
  std::uint64_t count(place) override { return 0; }
  store_health health() noexcept override { return {.available = true}; }
  [[nodiscard]] bool waits() const noexcept override { return false; }
  [[nodiscard]] holdfast::peer peer() const noexcept override { return holdfast::peer::java; }

  std::optional<entry> last{};
};

TEST_F(FailoverRegistration, APeerDecidesTheKeys) {
  const auto table = std::make_shared<shared_with_java>();
  engine shared(table);
  const auto point =
      shared.protect("country-by-code", [](const std::string& code) { return code; });
  (void)point("a:b");
  ASSERT_TRUE(table->last);
  EXPECT_EQ(table->last->key,
            key::failover_keys({.name = "country-by-code"}, {.style = key::style::exact})("a:b"));
  EXPECT_NE(failure_of([&] {
              (void)shared.protect("other", {.key_style = key::style::escaped},
                                   [](const std::string& code) { return code; });
            })
                .message()
                .find("leave key_style alone"),
            std::string::npos);
  EXPECT_THROW(engine(table, {.keys = {.hash = key::row_hash::blake2b}}), error);
}

TEST_F(FailoverRegistration, APointCannotWritePastTheQueueOfTheGivenStore) {
  const std::shared_ptr<store> bare = make_write_behind(memory);
  const std::shared_ptr<store> composed =
      compose(memory, {.tiered = tiered_options{}, .write_behind = write_behind_options{}});
  const std::shared_ptr<store> at_the_bottom =
      compose(make_write_behind(memory), {.tiered = tiered_options{}});
  const auto call = [](const std::string& code) { return code; };
  for (const auto& store : {bare, composed, at_the_bottom}) {
    engine queued(store);
    const auto problem =
        failure_of([&] { (void)queued.protect("durable", {.write_behind = false}, call); });
    EXPECT_NE(problem.message().find("give the engine the store below the queue"),
              std::string::npos)
        << problem.message();
    EXPECT_NO_THROW((void)queued.protect("queued", {.write_behind = true}, call));
  }
  engine own(memory);
  EXPECT_NO_THROW((void)own.protect("durable", {.write_behind = false}, call));
}

TEST_F(FailoverRegistration, TheSameCallableMayServeTwoPoints) {
  const auto same = [](int n) { return std::to_string(n); };
  (void)current_engine().protect("one", same);
  (void)current_engine().protect("two", same);
  EXPECT_EQ(current_engine().points().size(), 2U);
}

TEST_F(FailoverRegistration, ADomainHasOneExpiry) {
  (void)protect("a", {.domain = "country", .expiry = 1h});
  const auto problem = failure_of([&] { (void)protect("b", {.domain = "country", .expiry = 2h}); });
  EXPECT_NE(problem.message().find("is not that of 'a'"), std::string::npos) << problem.message();
  EXPECT_NO_THROW((void)protect("c", {.domain = "country", .expiry = 60min}));
  EXPECT_THROW((void)protect("country", {.expiry = 2h}), error)
      << "a name that is another's domain shares its rows";
}

TEST_F(FailoverRegistration, TheLengthIsThatOfTheColumn) {
  EXPECT_NO_THROW((void)protect(std::string(50, 'n')));
  EXPECT_EQ(failure_of([&] { (void)protect(std::string(51, 'n')); }).code(), errc::too_large);
  EXPECT_NO_THROW((void)protect(std::string(80, 'n'), {.domain = "short"}))
      << "only the effective name is a column";
}

TEST_F(FailoverRegistration, APointWithoutArgumentsMustSayWhomItServes) {
  auto& e = current_engine();
  const auto whole = [] { return std::string("everything"); };
  const auto problem = failure_of([&] { (void)e.protect("all", whole); });
  EXPECT_NE(problem.message().find("scope::shared"), std::string::npos);
  EXPECT_NO_THROW((void)e.protect("all", {.scope = scope::shared}, whole));
}

TEST_F(FailoverRegistration, PointsAreBounded) {
  make({.max_points = 2});
  (void)protect("a");
  (void)protect("b");
  EXPECT_EQ(failure_of([&] { (void)protect("c"); }).code(), errc::too_large);
}

TEST_F(FailoverRegistration, PointsAreListedWithWhatTheyAre) {
  (void)protect("b", {.domain = "country", .expiry = 24h, .enabled = false});
  (void)protect("a");
  const auto all = current_engine().points();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].name, "a");
  EXPECT_EQ(all[1].name, "b");
  EXPECT_EQ(all[1].effective_name, "country");
  EXPECT_EQ(all[1].expiry, "86400 s");
  EXPECT_FALSE(all[1].enabled);
  EXPECT_EQ(all[1].payload_class, "holdfast.test.country");
}

TEST_F(FailoverRegistration, AnEngineRefusesOptionsThatCannotHold) {
  const auto problem = failure_of([&] {
    holdfast::engine(
        nullptr,
        {.threads = {.queue = 0}, .keys = {.secret = "short"}, .storage = {.read_deadline = 0s}});
  });
  EXPECT_EQ(problem.code(), errc::invalid_argument);
  for (const char* text : {"needs a store", "queue", "read_deadline", "secret"})
    EXPECT_NE(problem.message().find(text), std::string::npos) << problem.message();
}

TEST_F(FailoverRegistration, ArgumentsThatCannotBeCopiedGetNoDeadline) {
  auto& e = current_engine();
  const auto ask = [](const sole& argument) { return std::to_string(argument.n); };
  for (const point_options& each : {point_options{.deadline = 1s}, point_options{.soft_expiry = 1s},
                                    point_options{.retry = retry_options{}}}) {
    const auto problem = failure_of([&] { (void)e.protect("sole", each, ask); });
    EXPECT_NE(problem.message().find("can be copied"), std::string::npos) << problem.message();
  }
  EXPECT_EQ(*e.protect("sole", ask)(sole(5)), "5") << "without them it need not be copied";
}

TEST_F(FailoverRegistration, TypesWithoutAStableNameMustBeNamed) {
  EXPECT_EQ(default_class_name("app::country"), "app.country");
  EXPECT_EQ(default_class_name("{anonymous}::country"), "country");
  EXPECT_EQ(default_class_name("(anonymous namespace)::country"), "country");
  EXPECT_EQ(default_class_name("main()::country"), "country");
  EXPECT_EQ(default_class_name("std::__cxx11::basic_string<char>"), "text");
  EXPECT_EQ(default_class_name("std::basic_string<char>"), "text");
  EXPECT_EQ(default_class_name("std::vector<std::byte>"), "bytes");
  EXPECT_EQ(default_class_name("std::vector<app::country, std::allocator<app::country> >"),
            "app.country[]");
  EXPECT_EQ(default_class_name("long int"), "long_int");
  EXPECT_EQ(default_class_name("app::page<app::country>"), "");
}

}  // namespace
}  // namespace holdfast::test
