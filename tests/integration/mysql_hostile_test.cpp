// What a server that is not a MySQL server, or poses as one, can do to a client: nothing that it
// must not.

#include <holdfast/database.hpp>

#include "integration/mysql_wire.hpp"
#include "sql/mysql/connection.hpp"
#include "support/certificate.hpp"
#include "support/failure_of.hpp"
#include "support/recording_server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace holdfast::test {
namespace {

using namespace mysql_wire;
using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

const std::string secret = "correct-horse-battery";
/// This machine, under a name that does not look like it (transport_security_test.cpp).
const std::string another_machine = "127.1";
const std::string this_machine = "127.0.0.1";

detail::sql::mysql_options options_for(const recording_server& server,
                                       const std::string& host = this_machine) {
  detail::sql::mysql_options made;
  made.host = host;
  made.port = server.port();
  made.user = "app";
  made.password = secret;
  made.database = "app";
  return made;
}

error failure_at(const recording_server& server, const std::string& host,
                 const std::string& parameters) {
  const auto url = "mysql://app:" + secret + "@" + host + ":" + std::to_string(server.port()) +
                   "/app" + parameters;
  return failure_of([&] {
    (void)open(url, {.connect_timeout = 5s})
        .store({.probe = start_probe::off, .start = start_mode::require});
  });
}

// ---- the password

/// The server's end of TLS. What the client says is recorded as it was before its encryption.
class tls_session {
 public:
  tls_session(recording_server::client& client, const certificate& own) : client_(client) {
    // OpenSSL writes to clients that hung up, on the server's own thread.
    sigset_t broken_pipe;
    sigemptyset(&broken_pipe);
    sigaddset(&broken_pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &broken_pipe, nullptr);
    SSL_CTX_use_certificate_chain_file(context_.get(), own.file().c_str());
    SSL_CTX_use_PrivateKey_file(context_.get(), own.key().c_str(), SSL_FILETYPE_PEM);
    session_.reset(SSL_new(context_.get()));
    SSL_set_fd(session_.get(), client.socket());
    SSL_accept(session_.get());
  }

  void send(const std::string& bytes) {
    (void)SSL_write(session_.get(), bytes.data(), static_cast<int>(bytes.size()));
  }
  std::string receive(std::size_t count) {
    std::string bytes(count, '\0');
    std::size_t have = 0;
    while (have < count) {
      const int got = SSL_read(session_.get(), bytes.data() + have, static_cast<int>(count - have));
      if (got <= 0) break;
      have += static_cast<std::size_t>(got);
    }
    bytes.resize(have);
    client_.record(bytes);
    return bytes;
  }

 private:
  recording_server::client& client_;
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_{SSL_CTX_new(TLS_server_method()),
                                                             &SSL_CTX_free};
  std::unique_ptr<SSL, decltype(&SSL_free)> session_{nullptr, &SSL_free};
};

/// Counts the packets that a client sends after it was asked for another login method.
template <class Session>
void switch_login(Session& session, std::uint8_t sequence, const std::string& plugin,
                  std::atomic<int>& answers) {
  if (read_packet(session).empty()) return;
  session.send(packet(sequence, switch_to(plugin)));
  if (read_packet(session).empty()) return;
  ++answers;
  // "Full authentication": send the password itself.
  if (plugin == "caching_sha2_password") {
    session.send(packet(static_cast<std::uint8_t>(sequence + 2), "\1\4"));
    if (read_packet(session).empty()) return;
    ++answers;
  }
  session.send(packet(static_cast<std::uint8_t>(sequence + 4), refused));
}

class MysqlSha2 : public testing::TestWithParam<std::string> {
 protected:
  const std::string plugin_ = GetParam();
  certificate certificate_{"mysql"};
  std::atomic<int> answers_ = 0;
  recording_server plain_{[this](recording_server::client& client) {
    client.send(greeting("mysql_native_password"));
    switch_login(client, 2, plugin_, answers_);
  }};
  recording_server encrypted_{[this](recording_server::client& client) {
    client.send(greeting("mysql_native_password", offers_tls));
    if (read_packet(client).empty()) return;  // "let us encrypt"
    tls_session session(client, certificate_);
    switch_login(session, 3, plugin_, answers_);
  }};
};

TEST_P(MysqlSha2, AnUnverifiedServerOnAnotherMachineGetsNoAnswer) {
  for (const auto& [server, parameters] :
       {std::pair{&plain_, "?tls=0"}, {&encrypted_, ""}, {&encrypted_, "?tls=1&tls_verify=0"}}) {
    const auto e = failure_at(*server, another_machine, parameters);
    EXPECT_EQ(answers_, 0) << parameters;
    EXPECT_THAT(server->received(), Not(HasSubstr(secret))) << parameters;
    EXPECT_EQ(e.code(), errc::permission) << e.what();
    EXPECT_FALSE(e.transient());
    EXPECT_THAT(e.what(), HasSubstr("verified TLS"));
    EXPECT_THAT(e.what(), HasSubstr("allow_cleartext_password=1"));
    EXPECT_THAT(e.what(), HasSubstr("caching_sha2_password"))
        << "which is what most accounts of MySQL 8 have";
    EXPECT_THAT(e.what(), Not(HasSubstr("'app'"))) << "libmariadb names something else";
  }
}

// Shows that the test above can fail: in TLS the password is sent as it is.
TEST_P(MysqlSha2, TheUrlAllowsIt) {
  (void)failure_at(encrypted_, another_machine, "?allow_cleartext_password=1");
  EXPECT_THAT(encrypted_.received(), HasSubstr(secret));
}

TEST_P(MysqlSha2, OnThisMachineItIsUsed) {
  (void)failure_at(plain_, this_machine, "");
  EXPECT_GT(answers_, 0);
  EXPECT_THAT(plain_.received(), Not(HasSubstr(secret))) << "it is asked for a key first";
}

INSTANTIATE_TEST_SUITE_P(Plugins, MysqlSha2,
                         testing::Values("sha256_password", "caching_sha2_password"),
                         [](const auto& of) { return of.param; });

TEST(MysqlLogin, TheMethodOfTheAccountCountsAndNotTheUsualOneOfTheServer) {
  std::atomic<std::size_t> answer = 0;
  recording_server server([&](recording_server::client& client) {
    client.send(greeting("caching_sha2_password"));  // MySQL 8
    if (read_packet(client).empty()) return;
    client.send(packet(2, switch_to("mysql_native_password")));
    answer = read_packet(client).size();
    client.send(packet(4, refused));
  });
  EXPECT_THAT(failure_at(server, another_machine, "?tls=0").what(), HasSubstr("Access denied"));
  EXPECT_EQ(answer, 20U) << "the hash of the challenge";
}

// ---- the first packet

void expect_not_a_server(recording_server& server) {
  for (const auto& [host, parameters] : {std::pair{another_machine, ""},
                                         {another_machine, "?tls=1&tls_verify=0"},
                                         {this_machine, ""}}) {
    const auto e = failure_at(server, host, parameters);
    EXPECT_EQ(e.code(), errc::unavailable) << e.what();
    EXPECT_FALSE(e.transient()) << e.what();
    EXPECT_THAT(e.what(), HasSubstr("version 10 of MySQL's protocol")) << host << parameters;
    EXPECT_EQ(server.received(), "") << host << parameters;
  }
}

TEST(MysqlFirstPacket, AnotherVersionOfTheProtocolIsRefused) {
  for (const char version : {'\x0b', '\x09', '\xfe', '\0'}) {
    recording_server server([version](recording_server::client& client) {
      client.send(greeting("mysql_native_password", 0, version));
      (void)read_packet(client);
    });
    expect_not_a_server(server);
  }
}

TEST(MysqlFirstPacket, AProgressReportIsRefused) {
  const auto progress = packet(0, "\xff\xff\xff\1\1\1\1\1\1\1\x0a"s);
  recording_server server([&](recording_server::client& client) {
    client.send(progress + greeting("mysql_native_password"));
    (void)read_packet(client);
  });
  expect_not_a_server(server);
}

TEST(MysqlFirstPacket, AProgressReportBeforeAResetIsNotReadEither) {
  const auto progress = packet(0, "\xff\xff\xff\1\1\1\1\1\1\1\x0a"s);
  recording_server server([&](recording_server::client& client) {
    client.send(progress);
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    (void)::setsockopt(client.socket(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  });
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(failure_at(server, this_machine, "").code(), errc::unavailable);
}

TEST(MysqlFirstPacket, WhatFollowsItDoesNotCount) {
  recording_server server([](recording_server::client& client) {
    // The packet ends before the capabilities, and bytes that look like them follow.
    const auto whole = greeting("mysql_native_password", offers_tls);
    const auto cut = whole.substr(4, 1 + 16 + 4 + 8 + 1);
    client.send(packet(0, cut) + whole.substr(4 + cut.size()));
    (void)read_packet(client);
  });
  expect_not_a_server(server);
}

TEST(MysqlFirstPacket, AnErrorIsExplained) {
  recording_server server([](recording_server::client& client) {
    client.send(packet(0, "\xff\x10\x04Too many connections"s));
  });
  const auto e = failure_at(server, this_machine, "");
  EXPECT_THAT(e.what(), HasSubstr("1040"));
  EXPECT_TRUE(e.transient());
}

// ---- answers without end

constexpr std::size_t mebibyte = std::size_t{1} << 20U;

/// Sends the same bytes until the client hangs up.
void flood(recording_server::client& client, const std::string& bytes,
           std::atomic<std::size_t>& sent) {
  std::string many;
  while (many.size() < mebibyte) many += bytes;
  while (client.send(many)) sent += many.size();
}

void log_in(recording_server::client& client) {
  client.send(greeting("mysql_native_password"));
  (void)read_packet(client);
  client.send(packet(2, fine));
}

struct flooding_server {
  explicit flooding_server(
      std::function<void(recording_server::client&, std::atomic<std::size_t>&)> script)
      : server([this, script = std::move(script)](recording_server::client& client) {
          script(client, sent);
        }) {}

  std::atomic<std::size_t> sent = 0;
  recording_server server;
};

void expect_too_large(const error& e, const flooding_server& flooding) {
  EXPECT_EQ(e.code(), errc::too_large) << e.what();
  EXPECT_THAT(e.what(), HasSubstr("MiB of memory"));
  EXPECT_LT(flooding.sent, 128 * mebibyte);
}

TEST(MysqlFlood, OfOnePacketIsCutOff) {
  flooding_server flooding([](recording_server::client& client, auto& sent) {
    log_in(client);
    (void)read_packet(client);
    flood(client, "\xff\xff\xff\1"s + std::string(0xff'ffff, 'x'), sent);
  });
  expect_too_large(
      failure_of([&] { (void)detail::sql::connect_mysql(options_for(flooding.server)); }),
      flooding);
}

TEST(MysqlFlood, OfColumnsIsCutOff) {
  flooding_server flooding([](recording_server::client& client, auto& sent) {
    log_in(client);
    (void)read_packet(client);
    client.send(packet(1, "\1"));
    flood(client, packet(2, column), sent);
  });
  expect_too_large(
      failure_of([&] { (void)detail::sql::connect_mysql(options_for(flooding.server)); }),
      flooding);
}

/// Rows that are thrown away need no memory, but they end at the limit.
TEST(MysqlFlood, OfRowsThatNobodyReadsEndsInTime) {
  flooding_server flooding([](recording_server::client& client, auto& sent) {
    log_in(client);
    (void)read_packet(client);
    client.send(packet(1, "\1") + packet(2, column) + packet(3, end_of_rows));
    flood(client, packet(4, "\1x"), sent);
  });
  auto options = options_for(flooding.server);
  options.connect_timeout = 500ms;
  const auto begin = std::chrono::steady_clock::now();
  const auto e = failure_of([&] { (void)detail::sql::connect_mysql(options); });
  EXPECT_EQ(e.code(), errc::timeout) << e.what();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
}

TEST(MysqlFlood, OfRowsIsCutOff) {
  flooding_server flooding([](recording_server::client& client, auto& sent) {
    log_in(client);
    (void)read_packet(client);  // the settings
    client.send(packet(1, fine));
    (void)read_packet(client);  // a statement with one column and no parameter
    client.send(packet(1, "\0\1\0\0\0\1\0\0\0\0\0\0"s) + packet(2, column) +
                packet(3, end_of_rows));
    (void)read_packet(client);
    client.send(packet(1, "\1") + packet(2, column) + packet(3, end_of_rows));
    flood(client, packet(4, "\0\0\1x"s), sent);
  });
  auto options = options_for(flooding.server);
  options.statement_timeout = 60s;
  const auto connection = detail::sql::connect_mysql(options);
  const auto e = failure_of([&] {
    (void)connection->execute({.text = "SELECT a FROM t", .results = {sql::type::text}}, {});
  });
  expect_too_large(e, flooding);
  EXPECT_FALSE(e.in_doubt()) << "it only reads";
  EXPECT_TRUE(connection->broken());
}

}  // namespace
}  // namespace holdfast::test
