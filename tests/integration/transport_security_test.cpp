// What a hostile server, or one without TLS, gets from a client that was told to encrypt, or that
// was told nothing.

#include <holdfast/database.hpp>
#include <holdfast/redis.hpp>
#include <holdfast/store/probe.hpp>

#include "integration/mysql_wire.hpp"
#include "support/certificate.hpp"
#include "support/failure_of.hpp"
#include "support/mariadb_server.hpp"
#include "support/postgres_server.hpp"
#include "support/recording_server.hpp"
#include "support/redis_server.hpp"
#include "support/shared_server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using namespace mysql_wire;

const std::string password = "correct-horse-battery";

/// This machine, under a name that does not look like it: the resolver completes the address to
/// 127.0.0.1, but only a whole address of the loopback network counts as local. So tests reach
/// "another machine" without one.
const std::string not_local = "127.1";

error failure_at(const std::string& url) {
  return failure_of([&] {
    (void)open(url, {.connect_timeout = 5s})
        .store({.probe = start_probe::off, .start = start_mode::require});
  });
}

// ---- MySQL and MariaDB

/// A server without TLS that wants the password in clear text: in its greeting, or in its answer to
/// the login.
recording_server::script asks_for_clear_text(const std::string& plugin, bool at_once) {
  return [plugin, at_once](recording_server::client& client) {
    client.send(greeting(at_once ? plugin : "mysql_native_password"));
    if (read_packet(client).empty()) return;
    if (!at_once) {
      client.send(
          packet(2, "\xfe"s + plugin + "\0"s + (plugin == "dialog" ? "\4Password: "s : ""s)));
      if (read_packet(client).empty()) return;
    }
    client.send(packet(at_once ? 2 : 4, refused));
  };
}

std::string mysql_url(const recording_server& server, const std::string& parameters = "",
                      const std::string& host = "127.0.0.1") {
  return "mysql://app:" + password + "@" + host + ":" + std::to_string(server.port()) + "/app" +
         parameters;
}

class MysqlClearText : public testing::TestWithParam<std::tuple<std::string, bool>> {
 protected:
  recording_server server{asks_for_clear_text(std::get<0>(GetParam()), std::get<1>(GetParam()))};
};

TEST_P(MysqlClearText, APasswordIsNotTold) {
  const auto e = failure_at(mysql_url(server));
  EXPECT_THAT(server.received(), Not(HasSubstr(password)));
  EXPECT_EQ(e.code(), errc::permission) << e.what();
  EXPECT_FALSE(e.transient()) << e.what();
  EXPECT_THAT(e.what(), HasSubstr("allow_cleartext_password=1"));
  EXPECT_THAT(e.what(), Not(HasSubstr(password)));
}

// Shows that the test above can fail: this server does get what it asks for.
TEST_P(MysqlClearText, APasswordIsToldWhereTheUrlAllowsIt) {
  const auto e = failure_at(mysql_url(server, "?allow_cleartext_password=1"));
  EXPECT_THAT(server.received(), HasSubstr(password));
  EXPECT_EQ(e.code(), errc::permission) << e.what();
}

INSTANTIATE_TEST_SUITE_P(Plugins, MysqlClearText,
                         testing::Combine(testing::Values("mysql_clear_password"s, "dialog"s),
                                          testing::Bool()),
                         [](const auto& of) {
                           return std::get<0>(of.param) +
                                  (std::get<1>(of.param) ? "_greeting" : "_switch");
                         });

TEST(MysqlTransport, AServerWithoutTlsIsRefusedWhereTlsIsWantedUnverified) {
  const mariadb_server server({.settings = {"skip-ssl"}, .durable = false});
  const auto e = failure_of([&] {
    (void)open(server.url() + "?tls=1&tls_verify=0")
        .store({.create_schema = true, .start = start_mode::require});
  });
  EXPECT_EQ(e.code(), errc::unavailable) << e.what();
  EXPECT_FALSE(e.transient()) << e.what();
  EXPECT_THAT(e.what(), HasSubstr("offers no TLS"));
  EXPECT_THAT(e.what(), HasSubstr("tls=0"));
  EXPECT_EQ(server.run("SHOW TABLES"), "") << "nothing was written over the plaintext connection";
  EXPECT_THAT(failure_of([&] {
                (void)open(server.url() + "?tls=1").store({.start = start_mode::require});
              }).what(),
              HasSubstr("offers no TLS"));
  // What is asked for plainly still works.
  (void)open(server.url() + "?tls=0").store({.create_schema = true, .start = start_mode::require});
}

TEST(MysqlTransport, NothingIsSentToAServerThatOffersNoTls) {
  recording_server server([](recording_server::client& client) {
    client.send(greeting("mysql_native_password"));
    (void)read_packet(client);
  });
  for (const auto& url : {mysql_url(server, "?tls=1&tls_verify=0"), mysql_url(server, "?tls=1"),
                          mysql_url(server, "", not_local)}) {
    const auto e = failure_at(url);
    EXPECT_THAT(e.what(), HasSubstr("offers no TLS")) << url;
    EXPECT_EQ(server.received(), "") << url << ": neither the user nor the answer to the challenge";
  }
  // The user opts out, and a server on this machine needs no TLS: the login is sent.
  (void)failure_at(mysql_url(server, "?tls=0", not_local));
  EXPECT_THAT(server.received(), HasSubstr("app"));
}

TEST(MysqlTransport, AGreetingThatComesInPiecesIsReadWhole) {
  recording_server server([](recording_server::client& client) {
    for (const char each : greeting("mysql_native_password")) {
      client.send(std::string(1, each));
      std::this_thread::sleep_for(1ms);
    }
    (void)read_packet(client);
  });
  EXPECT_THAT(failure_at(mysql_url(server, "?tls=1&tls_verify=0")).what(),
              HasSubstr("offers no TLS"));
  EXPECT_EQ(server.received(), "");
}

// ---- PostgreSQL

/// Refuses TLS and GSS encryption, then asks for the password in clear text: what a man in the
/// middle does.
void strips_tls(recording_server::client& client) {
  for (;;) {
    const auto header = client.receive(4);
    if (header.size() < 4) return;
    std::size_t length = 0;
    for (const char each : header) length = length << 8U | static_cast<unsigned char>(each);
    const auto body = client.receive(length - 4);
    if (body.size() != length - 4) return;
    const bool asks_for_encryption = body == "\x04\xd2\x16\x2f"s || body == "\x04\xd2\x16\x30"s;
    if (!asks_for_encryption) break;
    client.send("N");
  }
  client.send("R\0\0\0\x08\0\0\0\x03"s);
  (void)client.receive(5 + password.size() + 1);
}

std::string postgres_url(const recording_server& server, const std::string& host,
                         const std::string& parameters = "") {
  return "postgresql://app:" + password + "@" + host + ":" + std::to_string(server.port()) +
         "/app" + parameters;
}

TEST(PostgresTransport, AStrippedConnectionToAnotherMachineDoesNotGetThePassword) {
  recording_server server(strips_tls);
  const auto e = failure_at(postgres_url(server, not_local));
  EXPECT_THAT(server.received(), Not(HasSubstr(password)));
  EXPECT_THAT(server.received(), Not(HasSubstr("app"))) << "nor the names of user and database";
  EXPECT_EQ(e.code(), errc::unavailable) << e.what();
  EXPECT_THAT(e.what(), HasSubstr("sslmode=disable")) << "says how to opt out";
  // The host can be named in a parameter, too; and a list of hosts is not local when one of them is
  // not.
  const auto port = std::to_string(server.port());
  (void)failure_at("postgresql:///app?user=app&password=" + password + "&host=" + not_local +
                   "&port=" + port);
  (void)failure_at("postgresql:///app?user=app&password=" + password +
                   "&host=localhost&hostaddr=0.0.0.0&port=" + port);
  (void)failure_at("postgresql:///app?user=app&password=" + password + "&host=127.0.0.1," +
                   not_local + "&port=" + port);
  EXPECT_THAT(server.received(), Not(HasSubstr(password)));
}

TEST(PostgresTransport, TheUrlOptsOutAndThisMachineNeedsNoTls) {
  for (const auto& [host, parameters] : {std::pair{not_local, "?sslmode=disable"s},
                                         {not_local, "?sslmode=prefer"s},
                                         {"127.0.0.1"s, ""s}}) {
    recording_server server(strips_tls);
    (void)failure_at(postgres_url(server, host, parameters));
    EXPECT_THAT(server.received(), HasSubstr(password)) << host << parameters;
  }
}

// ---- what the doctor says of real servers

/// What is found about encryption when a store is looked at through this URL, which has the
/// server's own address.
std::vector<std::string> found_about_transport(std::string url, const std::string& parameters,
                                               const std::string& host = not_local) {
  url.replace(url.find("127.0.0.1"), 9, host);
  std::vector<std::string> codes;
  for (const auto& each : probe(open(url + parameters)).findings)
    if (each.code == "plaintext" || each.code == "unverified") codes.push_back(each.code);
  return codes;
}

TEST(TransportDoctor, ReportsWhatIsPlaintextOrUnverifiedOnPostgres) {
  const certificate authority("postgres");
  const postgres_server server({.settings = {"ssl=on", "ssl_cert_file=" + authority.file(),
                                             "ssl_key_file=" + authority.key()},
                                .durable = false});
  EXPECT_THAT(found_about_transport(server.url(), ""), ElementsAre("unverified"));
  EXPECT_THAT(found_about_transport(server.url(), "?sslmode=disable"), ElementsAre("plaintext"));
  // The certificate is made out to another name than the one in the URL; that is verified with
  // verify-full only.
  EXPECT_THAT(
      found_about_transport(server.url(), "?sslmode=verify-ca&sslrootcert=" + authority.file()),
      ElementsAre());
  EXPECT_THAT(found_about_transport(server.url(), "?sslrootcert=" + authority.file()),
              ElementsAre());
  EXPECT_THAT(found_about_transport(server.url(), "", "localhost"), ElementsAre());
}

TEST(TransportDoctor, ReportsWhatIsPlaintextOrUnverifiedOnMariadb) {
  const certificate authority("mysql");
  const mariadb_server server(
      {.settings = {"ssl-cert=" + authority.file(), "ssl-key=" + authority.key()},
       .durable = false});
  EXPECT_THAT(found_about_transport(server.url(), ""), ElementsAre("unverified"));
  EXPECT_THAT(found_about_transport(server.url(), "?tls=0"), ElementsAre("plaintext"));
  EXPECT_THAT(found_about_transport(server.url(), "", "127.0.0.1"), ElementsAre());
  // The default is really encrypted: this account may not log in without.
  server.run("ALTER USER holdfast@'127.0.0.1' REQUIRE SSL", "mysql");
  EXPECT_THAT(found_about_transport(server.url(), ""), ElementsAre("unverified"));
}

TEST(TransportDoctor, PlaintextToAnotherMachineIsLoggedAndRefusedByAStrictStore) {
  const auto& server = shared_server<postgres_server>();
  const auto name = server.create_database("transport");
  auto url = server.url(name) + "?sslmode=disable";
  url.replace(url.find("127.0.0.1"), 9, not_local);
  std::string lines;
  const database_options options{
      .log = [&](const log_record& record) { lines.append(record.message).append("\n"); }};
  (void)open(url, options).store({.create_schema = true, .start = start_mode::require});
  EXPECT_THAT(lines, HasSubstr("the connection to another machine is not encrypted"));
  const auto e = failure_of(
      [&] { (void)open(url).store({.probe = start_probe::strict, .start = start_mode::require}); });
  EXPECT_EQ(e.code(), errc::unsupported_type) << e.what();
  server.drop_database(name);
}

TEST(RedisTransport, PlaintextToAnotherMachineIsLoggedOnce) {
  const auto& server = shared_server<redis_server>();
  const auto lines_of = [](const std::string& url) {
    std::string lines;
    const redis::client client(
        url, {.log = [&](const log_record& record) { lines.append(record.message).append("\n"); }});
    (void)client.call(redis::command("PING"));
    (void)client.call(redis::command("PING"));
    return lines;
  };
  const auto port = std::to_string(server.port());
  const auto warning = lines_of("redis://" + not_local + ":" + port);
  EXPECT_THAT(warning, HasSubstr("is not encrypted"));
  EXPECT_THAT(warning, HasSubstr("rediss://"));
  EXPECT_EQ(std::count(warning.begin(), warning.end(), '\n'), 1);
  EXPECT_EQ(lines_of(server.url()), "");
}

}  // namespace
}  // namespace holdfast::test
