#include <holdfast/database.hpp>
#include <holdfast/store/tenants.hpp>

#include "support/failure_of.hpp"
#include "support/mariadb_server.hpp"
#include "support/postgres_server.hpp"
#include "support/shared_server.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

entry make(std::string key, std::string payload = "{}") {
  const auto now = system_clock()->now();
  return {.name = "n",
          .key = std::move(key),
          .as_of = now,
          .expire_on = now + 1h,
          .payload = std::move(payload),
          .payload_class = "c"};
}

template <class Server>
class TenantsOn : public ::testing::Test {
 protected:
  const typename Server::endpoint& server_ = shared_server<Server>();
  const std::string name_ = server_.create_database("tenants");

  [[nodiscard]] std::shared_ptr<tenant_store> make_store(const std::vector<tenant>& tenants,
                                                         const std::string& prefix = "APP_") const {
    std::vector<std::string> ids;
    for (const auto& each : tenants) ids.push_back(each.id);
    return make_tenant_store(
        open(server_.url(name_))
            .store({.prefix = prefix,
                    .create_schema = true,
                    .realms = tenant_realms(tenants, tenant_strategy::table_prefix)}),
        {.tenants = ids});
  }
  [[nodiscard]] std::string rows(const std::string& table) const {
    std::string text = server_.run("SELECT COUNT(*) FROM " + table, name_);
    text.erase(0, text.find_first_of("0123456789"));
    return text.substr(0, text.find_first_not_of("0123456789"));
  }
};

using servers = ::testing::Types<postgres_server, mariadb_server>;
TYPED_TEST_SUITE(TenantsOn, servers);

TYPED_TEST(TenantsOn, EachHasATableAndTheIdIsInNone) {
  const std::string evil = "x'; DROP TABLE ACME_APP_FAILOVER_STORE; --";
  const auto store =
      this->make_store({{.id = "acme", .place = "ACME"}, {.id = evil, .place = "T2"}});
  {
    const tenant_scope scope("acme");
    store->put(make("a"));
    store->put(make("b"));
  }
  const tenant_scope scope(evil);
  store->put(make("a"));
  EXPECT_EQ(store->count("n"), 1U);
  EXPECT_EQ(this->rows("ACME_APP_FAILOVER_STORE"), "2");
  EXPECT_EQ(this->rows("T2_APP_FAILOVER_STORE"), "1");
}

TYPED_TEST(TenantsOn, CleanupCoversTenantsThatNobodyTouchedSinceTheStart) {
  const std::vector<tenant> tenants{{.id = "acme"}, {.id = "globex"}};
  {
    const auto before = this->make_store(tenants);
    for (const auto& each : tenants) {
      const tenant_scope scope(each.id);
      before->put(make("k"));
    }
  }
  const auto after_restart = this->make_store(tenants);
  EXPECT_EQ(after_restart->expire(system_clock()->now() + 2h, 100), 2U);
  EXPECT_EQ(this->rows("acme_APP_FAILOVER_STORE"), "0");
  EXPECT_EQ(this->rows("globex_APP_FAILOVER_STORE"), "0");
}

TYPED_TEST(TenantsOn, ThreadsOfDifferentTenantsNeverMeet) {
  const std::vector<tenant> tenants{{.id = "t0"}, {.id = "t1"}, {.id = "t2"}, {.id = "t3"}};
  const auto store = this->make_store(tenants);
  {
    std::vector<std::jthread> threads;
    for (const auto& each : tenants) {
      threads.emplace_back([&store, id = each.id] {
        for (int i = 0; i < 40; ++i) {
          const tenant_scope scope(id);
          store->put(make("k" + std::to_string(i % 5), id));
          const auto found = store->find("n", "k" + std::to_string(i % 5));
          EXPECT_TRUE(found && found->payload == id);
        }
      });
    }
  }
  for (const auto& each : tenants) {
    const tenant_scope scope(each.id);
    EXPECT_EQ(store->count("n"), 5U);
    for (const auto& found : store->find_all("n", 10).entries) EXPECT_EQ(found.payload, each.id);
  }
}

}  // namespace
}  // namespace holdfast::test
