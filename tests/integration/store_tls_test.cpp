// A store through TLS: the server is verified, or it is not spoken to.

#include <holdfast/database.hpp>

#include "support/certificate.hpp"
#include "support/failure_of.hpp"
#include "support/mariadb_server.hpp"
#include "support/postgres_server.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

/// A write and a read. How many connections of the store are encrypted is asked of the server.
void expect_works(const std::string& url) {
  const auto store = open(url).store({.create_schema = true});
  const auto now = system_clock()->now();
  store->put({.name = "n",
              .key = "k",
              .as_of = now,
              .expire_on = now + 1h,
              .payload = "{}",
              .payload_class = "c"});
  EXPECT_TRUE(store->find("n", "k"));
}

void expect_refused(const std::string& url) {
  const auto e = failure_of([&] { (void)open(url).store()->find("n", "k"); });
  EXPECT_TRUE(e.code() == errc::unavailable || e.code() == errc::permission) << e.what();
  EXPECT_FALSE(e.in_doubt());
  EXPECT_EQ(std::string(e.what()).find("secret"), std::string::npos) << e.what();
  EXPECT_NE(std::string(e.what()).find("certificate"), std::string::npos)
      << "says why: " << e.what();
}

TEST(StoreTls, PostgresIsVerifiedOrRefused) {
  const certificate mine("postgres");
  const certificate other("postgres");
  const postgres_server server(
      {.settings = {"ssl=on", "ssl_cert_file=" + mine.file(), "ssl_key_file=" + mine.key()},
       .durable = false});
  const auto with = [&](const certificate& authority) {
    return server.url() + "?sslmode=verify-full&sslrootcert=" + authority.file();
  };
  expect_works(with(mine));
  expect_refused(with(other));
  EXPECT_EQ(server.run("SELECT count(*) FROM FAILOVER_STORE"), "1\n")
      << "the refused one changed nothing";

  const auto held = open(with(mine)).store();
  EXPECT_TRUE(held->find("n", "k"));
  EXPECT_EQ(server.run("SELECT bool_and(ssl) FROM pg_stat_ssl s JOIN pg_stat_activity a USING "
                       "(pid) WHERE a.usename = 'holdfast'"),
            "t\n");

  // The certificate says 127.0.0.1.
  auto by_name = with(mine);
  by_name.replace(by_name.find("127.0.0.1"), 9, "localhost");
  expect_refused(by_name);
}

TEST(StoreTls, MariadbIsVerifiedOrRefused) {
  const certificate mine("mysql");
  const certificate other("mysql");
  const mariadb_server server(
      {.settings = {"ssl-cert=" + mine.file(), "ssl-key=" + mine.key()}, .durable = false});
  const auto with = [&](const certificate& authority) {
    return server.url() + "?tls=1&tls_ca=" + authority.file();
  };
  expect_works(with(mine));
  expect_refused(with(other));
  EXPECT_EQ(server.run("SELECT COUNT(*) FROM FAILOVER_STORE"), "1\n");

  // An account that must use TLS shows that the store does.
  server.run("ALTER USER holdfast@'127.0.0.1' REQUIRE SSL", "mysql");
  expect_works(with(mine));
  EXPECT_EQ(failure_of([&] { (void)open(server.url()).store()->find("n", "k"); }).code(),
            errc::permission);

  auto by_name = with(mine);
  by_name.replace(by_name.find("127.0.0.1"), 9, "localhost");
  expect_refused(by_name);
}

}  // namespace
}  // namespace holdfast::test
