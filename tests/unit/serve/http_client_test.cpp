// The client that waits: what it reports for each way in which a server can fail.

#include "serve/http_client.hpp"

#include <holdfast/error.hpp>

#include "net/listener.hpp"
#include "serve/http_server.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <thread>

namespace {

using namespace holdfast;
using namespace holdfast::detail::serve;
using namespace std::chrono_literals;

std::chrono::steady_clock::time_point in_a_minute() {
  return std::chrono::steady_clock::now() + 60s;
}

/// Sends a text to each connection after its request, and closes it if told so.
class scripted_server {
 public:
  explicit scripted_server(std::string text, bool close = true)
      : text_(std::move(text)), close_(close), thread_([this] { run(); }) {}
  ~scripted_server() {
    ended_ = true;
    thread_.join();
  }
  scripted_server(const scripted_server&) = delete;
  scripted_server& operator=(const scripted_server&) = delete;
  [[nodiscard]] std::string url() const { return "http://" + socket_.address(); }
  [[nodiscard]] int connections() const { return connections_; }

 private:
  void run() {
    std::vector<int> open;
    while (!ended_) {
      pollfd polled{socket_.descriptor(), POLLIN, 0};
      if (::poll(&polled, 1, 10) <= 0) continue;
      const int accepted = ::accept(socket_.descriptor(), nullptr, nullptr);
      if (accepted < 0) continue;
      ++connections_;
      char buffer[4096];
      (void)::recv(accepted, buffer, sizeof buffer, 0);
      (void)::send(accepted, text_.data(), text_.size(), MSG_NOSIGNAL);
      if (close_) ::close(accepted);
      else open.push_back(accepted);
    }
    for (const int socket : open) ::close(socket);
  }
  std::string text_;
  bool close_;
  detail::net::listening_socket socket_ = detail::net::listening_socket::open("127.0.0.1:0", {});
  std::atomic<bool> ended_ = false;
  std::atomic<int> connections_ = 0;
  std::thread thread_;
};

client_response answer_of(const std::string& text, client_options options = {}) {
  const scripted_server server(text);
  http_client client(server.url(), std::move(options));
  return client.send({}, in_a_minute());
}

TEST(HttpClient, ReadsAnAnswer) {
  const auto response = answer_of(
      "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 404 Not Found\r\nX: y\r\n"
      "Content-Length: 3\r\n\r\nabc");
  EXPECT_EQ(response.result, exchange_status::complete);
  EXPECT_EQ(response.status, 404);
  EXPECT_EQ(response.fields.find("x"), "y");
  EXPECT_EQ(response.body, "abc");
  EXPECT_EQ(answer_of("HTTP/1.1 200 OK\r\n\r\nto the end").body, "to the end");
}

TEST(HttpClient, SaysHowFarARequestCame) {
  EXPECT_EQ(answer_of("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc").result,
            exchange_status::cut);
  EXPECT_EQ(answer_of("").result, exchange_status::cut);
  EXPECT_TRUE(answer_of("").sent);
  EXPECT_EQ(answer_of("nonsense\r\n\r\n").result, exchange_status::malformed);
  EXPECT_EQ(answer_of("HTTP/1.1 200 OK\nX: y\n\n").result, exchange_status::malformed);
  EXPECT_EQ(answer_of("HTTP/1.1 200 OK\r\nX: " + std::string(20'000, 'x')).result,
            exchange_status::head_limit);
  const auto large =
      answer_of("HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nabcd", {.limits = {.body = 3}});
  EXPECT_EQ(large.result, exchange_status::body_limit);
  EXPECT_EQ(large.status, 503);
  std::string interim;
  for (int i = 0; i < 1'000; ++i) interim += "HTTP/1.1 103 x\r\nA: b\r\n\r\n";
  EXPECT_EQ(answer_of(interim).result, exchange_status::head_limit);
  http_client nowhere("http://127.0.0.1:1", {});
  const auto refused = nowhere.send({}, in_a_minute());
  EXPECT_EQ(refused.result, exchange_status::unreachable);
  EXPECT_FALSE(refused.sent);
}

TEST(HttpClient, DeadlineHolds) {
  const scripted_server server("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", false);
  http_client client(server.url(), {});
  const auto response = client.send({}, std::chrono::steady_clock::now() + 100ms);
  EXPECT_EQ(response.result, exchange_status::late);
  EXPECT_TRUE(response.sent);
}

TEST(HttpClient, KeepsConnectionsButNotThoseThatTheServerTouched) {
  std::atomic<int> requests = 0;
  http_server server({.listen = {"127.0.0.1:0"}}, [&](const server_request&, responder answer) {
    ++requests;
    answer.answer({.body = "x"});
  });
  http_client client("http://" + server.addresses().front() + "/ignored", {});
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(client.send({}, in_a_minute()).result, exchange_status::complete);
  EXPECT_EQ(server.counts().accepted, 1U);
  // The server sends more than the answer: the connection is not used again.
  const scripted_server chatty("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nHTTP/1.1 408 x\r\n\r\n",
                               false);
  http_client careful(chatty.url(), {});
  EXPECT_EQ(careful.send({}, in_a_minute()).status, 200);
  EXPECT_EQ(careful.send({}, in_a_minute()).status, 200);
  EXPECT_EQ(chatty.connections(), 2);
}

TEST(HttpClient, RefusesWhatCannotBeSent) {
  EXPECT_THROW(http_client("ftp://a", {}), error);
  EXPECT_THROW(http_client("nonsense", {}), error);
  http_client client("http://127.0.0.1:1", {});
  EXPECT_THROW((void)client.send({.target = "/a b"}, in_a_minute()), error);
  EXPECT_THROW((void)client.send({.method = "G T"}, in_a_minute()), error);
}

}  // namespace
