#include <holdfast/store/memory.hpp>
#include <holdfast/store/tenants.hpp>

#include "support/failure_of.hpp"
#include "support/model_store.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <memory>
#include <thread>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

entry entry_of(std::string key, std::string payload = "{}") {
  const auto now = system_clock()->now();
  return {.name = "n",
          .key = std::move(key),
          .as_of = now,
          .expire_on = now + 1h,
          .payload = std::move(payload),
          .payload_class = "c"};
}

class Tenants : public ::testing::Test {
 protected:
  std::shared_ptr<model_store> below_ = std::make_shared<model_store>();
  std::shared_ptr<tenant_store> store_ = make_tenant_store(below_, {.tenants = {"acme", "globex"}});
};

TEST_F(Tenants, EachHasItsOwnEntries) {
  const auto e = entry_of("k", "acme's");
  {
    const tenant_scope scope("acme");
    store_->put(e);
    EXPECT_EQ(store_->find("n", "k"), e) << "above it there are no realms";
    EXPECT_EQ(store_->tenant(), "acme");
  }
  const tenant_scope scope("globex");
  EXPECT_EQ(store_->find("n", "k"), std::nullopt);
  EXPECT_EQ(store_->count("n"), 0U);
  EXPECT_TRUE(store_->find_all("n", 10).entries.empty());
  EXPECT_FALSE(store_->erase("n", "k", e.as_of));
  EXPECT_EQ(below_->find({"n", "acme"}, "k").value().realm, "acme");
}

TEST_F(Tenants, ScopesNestAndRestore) {
  EXPECT_EQ(current_tenant(), std::nullopt);
  {
    const tenant_scope outer("acme");
    {
      const tenant_scope inner("globex");
      EXPECT_EQ(current_tenant(), "globex");
      const tenant_scope no_tenant(std::nullopt);
      EXPECT_EQ(current_tenant(), std::nullopt);
      EXPECT_EQ(failure_of([&] { (void)store_->count("n"); }).code(), errc::permission);
    }
    EXPECT_EQ(current_tenant(), "acme");
  }
  EXPECT_EQ(current_tenant(), std::nullopt);
}

TEST_F(Tenants, ScopesThatAreLeftInAnotherOrderLeaveNothingBehind) {
  auto outer = std::make_unique<tenant_scope>("acme");
  auto inner = std::make_unique<tenant_scope>("globex");
  outer.reset();
  EXPECT_EQ(current_tenant(), "globex") << "the one that is still there";
  inner.reset();
  EXPECT_EQ(current_tenant(), std::nullopt) << "and not the one that went first";
}

TEST_F(Tenants, AScopeOfAnotherThreadChangesNothingHere) {
  const tenant_scope outer("acme");
  std::unique_ptr<tenant_scope> strange;
  std::thread([&] { strange = std::make_unique<tenant_scope>("globex"); }).join();
  strange.reset();
  EXPECT_EQ(current_tenant(), "acme");
}

TEST_F(Tenants, SaysWhetherTheStoreBelowWaits) {
  EXPECT_TRUE(store_->waits());
  EXPECT_FALSE(make_tenant_store(make_memory_store(), {.tenants = {"acme"}})->waits());
}

TEST_F(Tenants, AnExceptionLeavesTheScope) {
  EXPECT_THROW(
      {
        const tenant_scope scope("acme");
        throw std::runtime_error("upstream");
      },
      std::runtime_error);
  EXPECT_EQ(current_tenant(), std::nullopt);
}

TEST_F(Tenants, AnotherThreadIsNobodyUntilItIsTold) {
  const tenant_scope scope("acme");
  store_->put(entry_of("k"));
  const auto captured = current_tenant();
  std::jthread([&] {
    EXPECT_EQ(current_tenant(), std::nullopt);
    EXPECT_EQ(failure_of([&] { (void)store_->find("n", "k"); }).code(), errc::permission);
    const tenant_scope restored(captured);
    EXPECT_TRUE(store_->find("n", "k").has_value());
  }).join();
}

TEST_F(Tenants, TheResolverIsAskedOnTheCallingThreadWhereNoScopeIs) {
  std::thread::id asked;
  std::optional<std::string> answer = "acme";
  const auto store = make_tenant_store(below_, {.tenants = {"acme", "globex"}, .resolve = [&] {
                                                  asked = std::this_thread::get_id();
                                                  return answer;
                                                }});
  std::jthread([&] {
    EXPECT_EQ(store->tenant(), "acme");
    EXPECT_EQ(asked, std::this_thread::get_id());
  }).join();
  {
    asked = {};
    const tenant_scope scope("globex");
    EXPECT_EQ(store->tenant(), "globex");
    EXPECT_EQ(asked, std::thread::id()) << "a scope says it already";
  }
  answer = "";
  EXPECT_EQ(failure_of([&] { (void)store->tenant(); }).code(), errc::permission)
      << "an empty id means no tenant";
  answer = " ";
  EXPECT_EQ(failure_of([&] { (void)store->tenant(); }).code(), errc::permission)
      << "a blank id is not a tenant";
  answer.reset();
  EXPECT_EQ(failure_of([&] { (void)store->tenant(); }).code(), errc::permission);
  EXPECT_EQ(store->numbers().missing, 2U);
  EXPECT_EQ(store->numbers().unknown, 1U);
}

TEST_F(Tenants, TheDefaultStandsInForNobodyButNotForStrangers) {
  const auto store =
      make_tenant_store(below_, {.tenants = {"acme", "public"}, .default_tenant = "public"});
  EXPECT_EQ(store->tenant(), "public");
  const tenant_scope scope("mallory");
  EXPECT_EQ(failure_of([&] { (void)store->tenant(); }).code(), errc::permission);
}

TEST_F(Tenants, ARealmThatIsGivenMustBeTheTenants) {
  const tenant_scope scope("acme");
  auto e = entry_of("k");
  e.realm = "globex";
  EXPECT_EQ(failure_of([&] { store_->put(e); }).code(), errc::permission);
  EXPECT_EQ(failure_of([&] { (void)store_->find({"n", "globex"}, "k"); }).code(), errc::permission);
  EXPECT_EQ(failure_of([&] { (void)store_->find_all({"n", "globex"}, 1); }).code(),
            errc::permission);
  EXPECT_EQ(failure_of([&] { (void)store_->count({"n", "globex"}); }).code(), errc::permission);
  EXPECT_EQ(failure_of([&] { store_->erase({"n", "globex"}, "k", {}); }).code(), errc::permission);
  e.realm = "acme";
  store_->put(e);
  EXPECT_EQ(store_->find({"n", "acme"}, "k"), e) << "what was given comes back";
  const std::vector<entry> mixed{entry_of("a"), [] {
                                   auto other = entry_of("b");
                                   other.realm = "globex";
                                   return other;
                                 }()};
  EXPECT_EQ(failure_of([&] { store_->put(mixed); }).code(), errc::permission);
  EXPECT_EQ(store_->find("n", "a"), std::nullopt) << "nothing of it was written";
}

TEST_F(Tenants, ExpiryCoversEveryTenant) {
  for (const char* id : {"acme", "globex"}) {
    const tenant_scope scope((std::string(id)));
    store_->put(entry_of("k"));
  }
  EXPECT_EQ(store_->expire(system_clock()->now() + 2h, 10), 2U) << "and needs no scope";
}

TEST_F(Tenants, BlankAndLongIdsAreRefused) {
  for (const std::string id : {"", " ", "\t\n"}) {
    EXPECT_EQ(failure_of([&] { const tenant_scope scope(id); }).code(), errc::invalid_argument);
    EXPECT_EQ(failure_of([&] { (void)make_tenant_store(below_, {.tenants = {"a", id}}); }).code(),
              errc::invalid_argument);
  }
  EXPECT_EQ(failure_of([] { const tenant_scope scope(std::string(129, 'a')); }).code(),
            errc::too_large);
  EXPECT_EQ(failure_of([] { const tenant_scope scope(std::string("\xff")); }).code(),
            errc::ill_formed_text);
  EXPECT_EQ(current_tenant(), std::nullopt) << "a refused scope has no effect";
}

TEST_F(Tenants, OptionsThatCannotHold) {
  EXPECT_EQ(failure_of([&] { (void)make_tenant_store(below_, {}); }).code(),
            errc::invalid_argument);
  EXPECT_EQ(failure_of([&] { (void)make_tenant_store(nullptr, {.tenants = {"a"}}); }).code(),
            errc::invalid_argument);
  EXPECT_EQ(failure_of([&] { (void)make_tenant_store(below_, {.tenants = {"a", "a"}}); }).code(),
            errc::duplicate);
  EXPECT_EQ(failure_of([&] {
              (void)make_tenant_store(below_, {.tenants = {"a"}, .default_tenant = "b"});
            }).code(),
            errc::invalid_argument);
  EXPECT_EQ(failure_of([&] {
              (void)make_tenant_store(below_, {.tenants = std::vector<std::string>(10'001, "a")});
            }).code(),
            errc::too_large);
}

TEST_F(Tenants, BothStrategiesNameWhatStandsInFrontOfTheTable) {
  const std::vector<tenant> tenants{{.id = "acme"}, {.id = "böse; DROP TABLE", .place = "T2"}};
  EXPECT_EQ(tenant_realms(tenants, tenant_strategy::table_prefix).at("acme"), "acme_");
  EXPECT_EQ(tenant_realms(tenants, tenant_strategy::table_prefix).at("böse; DROP TABLE"), "T2_");
  EXPECT_EQ(tenant_realms(tenants, tenant_strategy::schema).at("acme"), "acme.");
  for (const std::string bad : {"a b", "a.b", "a;b", "a\"b", "é"}) {
    EXPECT_EQ(failure_of([&] {
                (void)tenant_realms({{.id = bad}}, tenant_strategy::table_prefix);
              }).code(),
              errc::invalid_argument)
        << bad;
    EXPECT_EQ(failure_of([&] {
                (void)tenant_realms({{.id = "x", .place = bad}}, tenant_strategy::schema);
              }).code(),
              errc::invalid_argument)
        << bad;
  }
  EXPECT_EQ(failure_of([] {
              (void)tenant_realms({{.id = "a"}, {.id = "a"}}, tenant_strategy::schema);
            }).code(),
            errc::duplicate);
  for (const auto strategy : {tenant_strategy::table_prefix, tenant_strategy::schema}) {
    EXPECT_EQ(failure_of([&] {
                (void)tenant_realms({{.id = "a", .place = "x"}, {.id = "b", .place = "X"}},
                                    strategy);
              }).code(),
              errc::invalid_argument)
        << "two in one place";
    // PostgreSQL would take them for the same table.
    const std::string most(48, 'x');
    EXPECT_EQ(failure_of([&] {
                (void)tenant_realms({{.id = most + "1"}, {.id = most + "2"}}, strategy);
              }).code(),
              errc::too_large);
    EXPECT_EQ(tenant_realms({{.id = most}}, strategy).size(), 1U);
  }
}

/// A sanitizer of addresses keeps what was freed for a while.
#if defined(__SANITIZE_ADDRESS__)
constexpr std::size_t noise = 100'000;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
constexpr std::size_t noise = 100'000;
#else
constexpr std::size_t noise = 512;
#endif
#else
constexpr std::size_t noise = 512;
#endif

std::size_t resident_kilobytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word == "VmRSS:") {
      std::size_t size = 0;
      status >> size;
      return size;
    }
  }
  return 0;
}

TEST_F(Tenants, TenThousandInventedIdsAreRefusedAndLeaveNothing) {
  const auto invent = [this](int first) {
    std::size_t refused = 0;
    for (int i = first; i < first + 10'000; ++i) {
      const tenant_scope scope("invented-" + std::to_string(i));
      try {
        (void)store_->find("n", "k");
      } catch (const error& e) {
        refused += e.code() == errc::permission ? 1 : 0;
      }
      try {
        store_->put(entry_of("k"));
      } catch (const error& e) {
        refused += e.code() == errc::permission ? 1 : 0;
      }
    }
    return refused;
  };
  EXPECT_EQ(invent(0), 20'000U);  // whatever is made once, is made
  const auto before = resident_kilobytes();
  EXPECT_EQ(invent(10'000), 20'000U);
  const auto after = resident_kilobytes();
  EXPECT_LT(after, before + noise) << "kilobytes";
  EXPECT_EQ(store_->numbers().unknown, 40'000U);
}

}  // namespace
}  // namespace holdfast::test
