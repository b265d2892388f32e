// URLs that name several hosts, on real servers: one that refuses, one that is silent, one that is
// read-only, and one that accepts writes.

#include <holdfast/database.hpp>

#include "sql/connect.hpp"
#include "support/cutting_proxy.hpp"
#include "support/failure_of.hpp"
#include "support/free_port.hpp"
#include "support/mariadb_server.hpp"
#include "support/postgres_server.hpp"
#include "support/scoped_environment.hpp"
#include "support/shared_server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

/// `scheme://holdfast:secret@127.0.0.1:p1,127.0.0.1:p2/name`
std::string url_of(std::string_view scheme, std::initializer_list<std::uint16_t> ports,
                   const std::string& rest) {
  std::string url = std::string(scheme) + "://holdfast:secret@";
  for (const auto port : ports)
    url.append(url.ends_with('@') ? "" : ",").append("127.0.0.1:").append(std::to_string(port));
  return url + "/" + rest;
}

template <class Server>
std::string scheme_of() {
  return Server::endpoint::kind == "postgresql" ? "postgresql" : "mysql";
}

/// The port of the server that a new connection reaches.
std::string reached_port(sql::connection& connection) {
  const bool postgres = connection.dialect() == sql::dialect_id::postgresql;
  const auto rows =
      connection
          .execute({.text = postgres ? "SELECT current_setting('port')" : "SELECT CONCAT(@@port)",
                    .results = {sql::type::text}},
                   {})
          .rows;
  return std::get<std::string>(rows.at(0, 0));
}

std::chrono::milliseconds time_of(const std::function<void()>& action) {
  const auto start = std::chrono::steady_clock::now();
  action();
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() -
                                                               start);
}

template <class Server>
class SeveralHosts : public ::testing::Test {};
using servers = ::testing::Types<postgres_server, mariadb_server>;
TYPED_TEST_SUITE(SeveralHosts, servers);

TYPED_TEST(SeveralHosts, TheFirstThatIsThereIsUsed) {
  const auto& server = shared_server<TypeParam>();
  const auto name = server.create_database("hosts");
  const auto scheme = scheme_of<TypeParam>();
  for (const auto& url : {url_of(scheme, {free_port(), server.port()}, name),
                          url_of(scheme, {server.port(), free_port()}, name)}) {
    const auto connection = detail::sql::connector(url, {})();
    EXPECT_EQ(reached_port(*connection), std::to_string(server.port())) << url;
  }
}

TYPED_TEST(SeveralHosts, ASilentHostCostsAShareOfTheTimeAndOnlyOnce) {
  const auto& server = shared_server<TypeParam>();
  cutting_proxy silent(server.port());
  silent.accept(false);
  const auto url = url_of(scheme_of<TypeParam>(), {silent.port(), server.port()},
                          server.create_database("hosts"));
  const auto connect = detail::sql::connector(url, {.connect_timeout = 60s});
  const auto first = time_of([&] { (void)connect(); });
  EXPECT_GE(first, 1'900ms) << "the host was not silent, so nothing is proved";
  EXPECT_LT(first, 30s) << "it took the whole time limit";
  EXPECT_LT(time_of([&] { (void)connect(); }), 1'900ms) << "each connection waits for it again";
}

TYPED_TEST(SeveralHosts, TheUrlLimitsTheTimeForEachHost) {
  const auto& server = shared_server<TypeParam>();
  cutting_proxy silent(server.port());
  silent.accept(false);
  const auto name = server.create_database("hosts") + "?connect_timeout=1";
  const auto scheme = scheme_of<TypeParam>();
  const auto both = detail::sql::connector(url_of(scheme, {silent.port(), server.port()}, name),
                                           {.connect_timeout = 60s});
  EXPECT_LT(time_of([&] { (void)both(); }), 1'900ms);
  const auto alone =
      detail::sql::connector(url_of(scheme, {silent.port()}, name), {.connect_timeout = 60s});
  EXPECT_LT(time_of([&] { EXPECT_EQ(failure_of([&] { (void)alone(); }).code(), errc::timeout); }),
            30s);
}

TYPED_TEST(SeveralHosts, IfNoneCanBeUsedTheErrorTellsWhy) {
  const auto& server = shared_server<TypeParam>();
  cutting_proxy silent(server.port());
  silent.accept(false);
  const auto refusing = free_port();
  const auto url = url_of(scheme_of<TypeParam>(), {refusing, silent.port()}, "x");
  const auto failure =
      failure_of([&] { (void)detail::sql::connector(url, {.connect_timeout = 300ms})(); });
  EXPECT_EQ(failure.code(), errc::unavailable);
  EXPECT_TRUE(failure.transient());
  const std::string text = failure.what();
  EXPECT_THAT(text, HasSubstr("127.0.0.1:" + std::to_string(refusing) + ": "));
  EXPECT_THAT(text, HasSubstr("127.0.0.1:" + std::to_string(silent.port())));
  EXPECT_THAT(text, AnyOf(HasSubstr("Connection refused"), HasSubstr("(111)")));
  EXPECT_THAT(text, HasSubstr(" ms"));
  EXPECT_THAT(text, Not(HasSubstr("secret")));
  EXPECT_THAT(text, Not(HasSubstr("\n")));
}

TEST(SeveralPostgresHosts, AStandbyIsPassedOverUnlessTheUrlAsksForIt) {
  postgres_server primary;
  const postgres_server standby(primary, primary.port());
  const auto url = url_of("postgresql", {standby.port(), primary.port()}, "holdfast");
  const auto primary_port = std::to_string(primary.port());
  const auto standby_port = std::to_string(standby.port());
  EXPECT_EQ(reached_port(*detail::sql::connector(url, {})()), primary_port);
  EXPECT_EQ(reached_port(*detail::sql::connector(url + "?target_session_attrs=any", {})()),
            standby_port);
  const auto swapped = url_of("postgresql", {primary.port(), standby.port()}, "holdfast");
  EXPECT_EQ(
      reached_port(*detail::sql::connector(swapped + "?target_session_attrs=prefer-standby", {})()),
      standby_port);
  {
    const scoped_environment environment("PGTARGETSESSIONATTRS", "any");
    EXPECT_EQ(reached_port(*detail::sql::connector(url, {})()), standby_port);
  }
  const auto alone = failure_of([&] {
    (void)detail::sql::connector(url_of("postgresql", {standby.port(), free_port()}, "holdfast"),
                                 {})();
  });
  EXPECT_TRUE(alone.transient());
  EXPECT_THAT(alone.what(), HasSubstr("read-only"));

  // The other forms that libpq has for a list.
  const auto parameters =
      "postgresql://holdfast:secret@/holdfast?host=127.0.0.1,127.0.0.1&port=" + standby_port + "," +
      primary_port;
  EXPECT_EQ(reached_port(*detail::sql::connector(parameters, {})()), primary_port);
  const auto addresses =
      "postgresql://holdfast:secret@a,b/holdfast?hostaddr=127.0.0.1,127.0.0.1&sslmode=disable&"
      "port=" +
      standby_port + "," + primary_port;
  EXPECT_EQ(reached_port(*detail::sql::connector(addresses, {})()), primary_port);
}

TEST(SeveralPostgresHosts, MistakesAreRefused) {
  for (const char* bad : {"postgresql://h1,/x", "postgresql://h1,,h2/x", "h2://u@h1,h2/x"}) {
    EXPECT_EQ(failure_of([&] { (void)detail::sql::connector(bad, {}); }).code(),
              errc::invalid_argument)
        << bad;
  }
  const auto failure = failure_of(
      [] { (void)detail::sql::connector("postgresql://127.0.0.1/x?connect_timeout=2s", {})(); });
  EXPECT_EQ(failure.code(), errc::invalid_argument);
  EXPECT_THAT(failure.what(), HasSubstr("connect_timeout"));
}

TEST(SeveralMariadbHosts, AReadOnlyServerIsPassedOver) {
  const mariadb_server replica;
  const auto& server = shared_server<mariadb_server>();
  const auto name = server.create_database("hosts");
  (void)replica.run("CREATE DATABASE " + name + "; SET GLOBAL read_only = 1");
  const auto url = url_of("mysql", {replica.port(), server.port()}, name);
  EXPECT_EQ(reached_port(*detail::sql::connector(url, {})()), std::to_string(server.port()));
  const auto alone = failure_of([&] {
    (void)detail::sql::connector(url_of("mysql", {replica.port(), free_port()}, name), {})();
  });
  EXPECT_TRUE(alone.transient());
  EXPECT_THAT(alone.what(), HasSubstr("read-only"));
  // A single host is used as it is, so that its data can be read.
  EXPECT_EQ(reached_port(*detail::sql::connector(url_of("mysql", {replica.port()}, name), {})()),
            std::to_string(replica.port()));
}

TEST(SeveralMariadbHosts, MistakesAreRefused) {
  for (const char* bad : {"mysql://h1,/x", "mysql://h1,h2/x?socket=/run/s", "mysql://h1,h2",
                          "mysql://h1,h2/x?connect_timeout=2s"}) {
    EXPECT_EQ(failure_of([&] { (void)detail::sql::connector(bad, {}); }).code(),
              errc::invalid_argument)
        << bad;
  }
}

}  // namespace
}  // namespace holdfast::test
