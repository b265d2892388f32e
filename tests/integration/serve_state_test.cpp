// The state of the server on PostgreSQL and MariaDB: two servers on one database.

#include "support/eventually.hpp"
#include "support/mariadb_server.hpp"
#include "support/postgres_server.hpp"
#include "support/shared_server.hpp"
#include "unit/serve/auth_fixture.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <variant>

namespace holdfast::test {
namespace {

using namespace holdfast::detail::serve;
using namespace std::chrono_literals;

template <class Server>
class ServeState : public ::testing::Test {
 protected:
  auth_state state{};

  identity_options options(const std::string& database) {
    auto result = state.options({}, 20ms);
    result.state_url = shared_server<Server>().url(database);
    return result;
  }
  static int verdict(identity& auth, std::string_view name, const std::string& value) {
    built_request request("GET", {{name, value}});
    const auto result = auth.requests().identify(request.view());
    if (const auto* refusal = std::get_if<server_response>(&result)) return refusal->status;
    return std::get<caller>(result).identified ? 0 : 1;
  }
};
using servers = ::testing::Types<postgres_server, mariadb_server>;
TYPED_TEST_SUITE(ServeState, servers);

TYPED_TEST(ServeState, TwoServersShareTokensSessionsAndTheAuditLog) {
  const auto database = shared_server<TypeParam>().create_database("serve_state");
  identity first(this->options(database));
  identity second(this->options(database));
  ASSERT_FALSE(first.problem()) << *first.problem();
  ASSERT_FALSE(second.problem()) << *second.problem();
  const auto token = add_token(first.database(), {.name = "shop",
                                                  .scopes = {"store:*:read"},
                                                  .tenant = "acme \xF0\x9F\x98\x80",
                                                  .rate = 1000});
  EXPECT_THROW((void)add_token(second.database(), {.name = "shop"}), error);
  const auto bearer = "Bearer " + token.secret;
  ASSERT_TRUE(eventually([&] { return this->verdict(second, "Authorization", bearer) == 0; }));
  first.reload();
  const auto cookie =
      "holdfast=" + first.sessions().start(first.database(), token.record.id, "shop");
  ASSERT_TRUE(eventually([&] { return this->verdict(second, "Cookie", cookie) == 0; }));
  second.sessions().end(second.database(), cookie.substr(9));
  ASSERT_TRUE(eventually([&] { return this->verdict(first, "Cookie", cookie) == 1; }));
  ASSERT_TRUE(revoke_token(second.database(), "shop"));
  ASSERT_TRUE(eventually([&] { return this->verdict(first, "Authorization", bearer) == 401; }));
  for (int i = 0; i < 5; ++i) {
    first.audit().record({.caller = "a", .action = "b", .subject = "c \xF0\x9F\x98\x80"});
    second.audit().record({.caller = "a", .action = "b"});
  }
  first.audit().write_queue(first.database());
  second.audit().write_queue(second.database());
  auto session = first.database().read("test");
  const auto page = list_audit(session, {.caller = "a"}, 3);
  ASSERT_EQ(page.size(), 3U);
  EXPECT_EQ(list_audit(session, {.caller = "a", .after = page.back().id}, 100).size(), 7U);
  const auto tokens = list_tokens(session, "", 10);
  ASSERT_EQ(tokens.size(), 1U);
  EXPECT_EQ(tokens.front().record.tenant, "acme \xF0\x9F\x98\x80");
  EXPECT_TRUE(tokens.front().record.revoked);
}

TYPED_TEST(ServeState, OldRowsAreDeleted) {
  const auto database = shared_server<TypeParam>().create_database("serve_state");
  identity auth(this->options(database));
  (void)add_token(auth.database(), {.lifetime = 1h});
  (void)auth.sessions().start(auth.database(), "", "a");
  auth.audit().record({.action = "old"});
  auth.audit().write_queue(auth.database());
  auth.tokens().store_uses(auth.database());
  auth.sessions().store_uses(auth.database());
  const auto later = this->state.clock->now() + audit_life + 1h;
  auto session = auth.database().write("test");
  forget_old_tokens(session, later);
  session_table::forget_old_sessions(session, later);
  forget_old_audit(session, later);
  for (const auto* table :
       {"HOLDFAST_SERVE_TOKEN", "HOLDFAST_SERVE_SESSION", "HOLDFAST_SERVE_AUDIT"}) {
    const auto rows =
        session.query(std::string("SELECT COUNT(*) FROM ") + table, {}, {sql::type::integer});
    EXPECT_EQ(integer_of(rows, 0, 0), 0) << table;
  }
}

}  // namespace
}  // namespace holdfast::test
