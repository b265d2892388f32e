// Failures at exact points of the protocol, produced by a server that follows a script.

#include "integration/postgres_testing.hpp"
#include "sql/postgres/connection.hpp"
#include "support/recording_server.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <utility>

namespace {

using namespace holdfast;
using namespace holdfast::detail::sql;
using namespace holdfast::test;
using namespace std::chrono_literals;
using namespace std::string_literals;

std::string word(std::uint32_t number) {
  number = htonl(number);
  return {reinterpret_cast<const char*>(&number), sizeof number};
}

std::string message(char kind, const std::string& body) {
  return kind + word(static_cast<std::uint32_t>(body.size() + 4)) + body;
}

std::string failure(const std::string& severity, const std::string& state) {
  return message('E', "S" + severity + "\0V"s + severity + "\0C"s + state + "\0Mwords\0\0"s);
}

const std::string ready = message('Z', "I");
const std::string prepared = message('1', "");
const std::string executed = message('2', "") + message('n', "") + message('C', "INSERT 0 1\0"s);

/// What the server does after it has received one more complete request.
struct step {
  std::string answer;
  bool close = false;
  std::size_t piece = 1 << 20U;  ///< bytes per send
};

class scripted_server {
 public:
  scripted_server(const std::string& version, std::vector<step> steps,
                  std::size_t read_limit = SIZE_MAX)
      : read_limit_(read_limit), listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in endpoint{};
    endpoint.sin_family = AF_INET;
    endpoint.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof endpoint;
    auto* const address = reinterpret_cast<sockaddr*>(&endpoint);
    if (bind(listener_, address, length) != 0 || listen(listener_, 1) != 0 ||
        getsockname(listener_, address, &length) != 0)
      throw std::runtime_error("cannot listen");
    port_ = ntohs(endpoint.sin_port);
    thread_ = std::jthread([this, version, steps = std::move(steps)] { serve(version, steps); });
  }
  ~scripted_server() {
    shutdown(listener_, SHUT_RDWR);
    close_client();
    thread_.join();
    ::close(listener_);
    if (client_ >= 0) ::close(client_);
  }
  scripted_server(const scripted_server&) = delete;
  scripted_server& operator=(const scripted_server&) = delete;

  [[nodiscard]] std::unique_ptr<connection> connect(std::chrono::milliseconds limit = 5s) const {
    return connect_postgres(
        {.connection_string =
             "host=127.0.0.1 user=u password=secret sslmode=disable gssencmode=disable port=" +
             std::to_string(port_),
         .statement_timeout = limit});
  }

 private:
  void serve(const std::string& version, const std::vector<step>& steps) {
    client_ = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    const int enabled = 1;
    setsockopt(client_, IPPROTO_TCP, TCP_NODELAY, &enabled, sizeof enabled);
    std::string startup;
    if (!receive(4, startup) || !receive(length_in(startup), startup)) return close_client();
    respond({.answer = message('R', word(0)) + message('S', "server_version\0"s + version + "\0"s) +
                       ready});
    for (const auto& step : steps) {
      if (!receive_request()) return close_client();
      respond(step);
      if (step.close) return close_client();
    }
    while (receive_request()) continue;  // without an answer
    close_client();
  }

  static std::size_t length_in(const std::string& header) {
    std::uint32_t length = 0;
    std::memcpy(&length, header.data() + header.size() - 4, 4);
    return ntohl(length) - 4;
  }

  bool receive(std::size_t count, std::string& bytes) {
    bytes.resize(count);
    for (std::size_t length = 0; length < count;) {
      const auto received =
          recv(client_, bytes.data() + length, std::min(count - length, read_limit_), 0);
      if (received <= 0) return false;
      length += static_cast<std::size_t>(received);
      read_limit_ -= static_cast<std::size_t>(received);
    }
    return true;
  }

  bool receive_request() {
    std::string header;
    std::string body;
    while (receive(5, header) && receive(length_in(header), body))
      if (header[0] == 'S' || header[0] == 'Q') return true;
    return false;
  }

  void respond(const step& s) const {
    for (std::size_t offset = 0; offset < s.answer.size(); offset += s.piece)
      send(client_, s.answer.data() + offset, std::min(s.piece, s.answer.size() - offset),
           MSG_NOSIGNAL);
  }

  void close_client() const { shutdown(client_, SHUT_RDWR); }

  std::size_t read_limit_;  // bytes to read before the server stops reading
  int listener_;
  std::atomic<int> client_ = -1;
  std::uint16_t port_ = 0;
  std::jthread thread_{};
};

const statement insert{.text = "INSERT INTO t VALUES ($1)", .parameters = {type::text}};

error failure_with(std::vector<step> steps, std::chrono::milliseconds limit = 5s) {
  const scripted_server server("15.1", std::move(steps));
  const auto c = server.connect(limit);
  const auto thrown = failure_of([&] { execute(*c, insert, {std::string_view("x")}); });
  EXPECT_TRUE(c->broken());
  return thrown;
}

TEST(PostgresWire, AResultIsNotACommit) {
  // Outside a transaction the server commits after the result. Only the end of the answer confirms
  // it.
  expect_kind(failure_with({{.answer = prepared + ready}, {.answer = executed, .close = true}}),
              errc::unavailable, true, true);
  expect_kind(failure_with({{.answer = prepared + ready}, {.answer = executed}}, 300ms),
              errc::timeout, true, true);
  const auto last = failure_with({{.answer = prepared + ready},
                                  {.answer = executed + failure("FATAL", "57P01"), .close = true}});
  expect_kind(last, errc::unavailable, true, true);
  EXPECT_EQ(last.backend_code(), "57P01");
}

TEST(PostgresWire, AnErrorIsAnAnswerEvenIfTheServerClosesAfterIt) {
  const auto refused = failure_with(
      {{.answer = prepared + ready}, {.answer = failure("ERROR", "40001"), .close = true}});
  expect_kind(refused, errc::unavailable, true, false);
  EXPECT_EQ(refused.backend_code(), "40001");
  const auto late = failure_with({{.answer = prepared + ready},
                                  {.answer = executed + failure("ERROR", "23505"), .close = true}});
  expect_kind(late, errc::duplicate, false, false);
  expect_kind(failure_with({{.answer = prepared + ready},
                            {.answer = failure("FATAL", "57P01"), .close = true}}),
              errc::unavailable, true, false);
}

TEST(PostgresWire, NothingIsInDoubtBeforeTheStatementIsPrepared) {
  expect_kind(failure_with({{.answer = "", .close = true}}), errc::unavailable, true, false);
  expect_kind(failure_with({{.answer = prepared, .close = true}}), errc::unavailable, true, false);
  expect_kind(failure_with({}, 300ms), errc::timeout, true, false);
}

TEST(PostgresWire, AClosedConnectionAfterSendingIsInDoubt) {
  expect_kind(failure_with({{.answer = prepared + ready}, {.answer = "", .close = true}}),
              errc::unavailable, true, true);
  expect_kind(failure_with(
                  {{.answer = prepared + ready}, {.answer = executed.substr(0, 7), .close = true}}),
              errc::unavailable, true, true);
}

TEST(PostgresWire, AStatementCutInTheMiddleIsNotInDoubt) {
  const scripted_server server("15.1", {{.answer = prepared + ready}}, 1'000'000);
  const auto c = server.connect();
  const std::string body(std::size_t{64} << 20U, 'x');
  expect_kind(failure_of([&] { execute(*c, insert, {std::string_view(body)}); }), errc::unavailable,
              true, false);
  EXPECT_TRUE(c->broken());
}

TEST(PostgresWire, AnAnswerMayArriveByteByByte) {
  const scripted_server server(
      "15.1", {{.answer = prepared + ready, .piece = 1}, {.answer = executed + ready, .piece = 1}});
  const auto c = server.connect();
  EXPECT_EQ(execute(*c, insert, {std::string_view("x")}).affected, 1U);
}

TEST(PostgresWire, AnInvalidAnswerBreaksTheConnection) {
  EXPECT_TRUE(
      failure_with({{.answer = prepared + ready}, {.answer = std::string(100, 'z'), .close = true}})
          .in_doubt());
  EXPECT_FALSE(
      failure_with({{.answer = "HTTP/1.1 400 Bad Request\r\n\r\n", .close = true}}).in_doubt());
}

TEST(PostgresWire, SettingsThatNeverEndAreCutOff) {
  std::atomic<std::size_t> sent = 0;
  recording_server server([&](recording_server::client& client) {
    (void)client.receive(8);
    client.send(message('R', word(0)));
    for (int i = 0;; ++i) {
      const auto setting =
          message('S', "k" + std::to_string(i) + "\0"s + std::string(20'000, 'v') + "\0"s);
      if (!client.send(setting)) return;
      sent += setting.size();
    }
  });
  const auto e = failure_of([&] {
    (void)connect_postgres(
        {.connection_string = "host=127.0.0.1 user=u sslmode=disable gssencmode=disable port=" +
                              std::to_string(server.port())});
  });
  expect_kind(e, errc::too_large, false, false);
  EXPECT_LT(sent, std::size_t{64} << 20U);
}

TEST(PostgresWire, AServerThatAsksForThePasswordWithoutEndIsCutOff) {
  std::atomic<std::size_t> sent = 0;
  recording_server server([&](recording_server::client& client) {
    (void)client.receive(8);
    std::string requests;
    for (int i = 0; i < 1000; ++i) requests += message('R', word(5) + "salt");
    while (client.send(requests)) sent += requests.size();  // and reads nothing
  });
  const auto e = failure_of([&] {
    (void)connect_postgres(
        {.connection_string =
             "host=127.0.0.1 user=u password=secret sslmode=disable gssencmode=disable port=" +
             std::to_string(server.port())});
  });
  EXPECT_FALSE(e.in_doubt()) << e.what();
  EXPECT_LT(sent, std::size_t{64} << 20U);
}

TEST(PostgresWire, H2IsRecognised) {
  const auto version_is = [](const std::string& text) {
    const auto column =
        "version\0"s + word(0) + "\0\0"s + word(25) + "\xFF\xFF"s + word(0xFFFFFFFF) + "\0\0"s;
    return message('T', "\0\x01"s + column) +
           message('D', "\0\x01"s + word(static_cast<std::uint32_t>(text.size())) + text) +
           message('C', "SELECT 1\0"s) + ready;
  };
  const scripted_server h2(
      "8.2.23",
      {{.answer = version_is("PostgreSQL 8.2.23 server protocol using H2 2.1.214 (2022-06-13)")}});
  EXPECT_THROW((void)h2.connect(), error) << "H2 needs its own driver";
  const scripted_server old(
      "8.2.23", {{.answer = version_is("PostgreSQL 8.2.23 on x86_64-unknown-linux-gnu")}});
  EXPECT_EQ(old.connect()->dialect(), dialect_id::postgresql);
}

}  // namespace
