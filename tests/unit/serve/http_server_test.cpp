// The server: order, deadlines, limits, overload, clients that reset, TLS, the end.

#include "serve/http_server.hpp"

#include <holdfast/error.hpp>

#include "net/tls.hpp"
#include "serve/http_client.hpp"
#include "serve/loop_worker.hpp"
#include "support/certificate.hpp"
#include "support/certificate_authority.hpp"
#include "support/eventually.hpp"
#include "support/gate.hpp"
#include "support/raw_client.hpp"
#include "support/temporary_directory.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace holdfast;
using namespace holdfast::detail::serve;
using namespace std::chrono_literals;
using test::eventually;
using test::raw_client;

constexpr std::string_view get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/// Answers with the method, the target and the content.
void echo(const server_request& request, responder answer) {
  server_response response;
  response.fields.add("Content-Type", "text/plain");
  response.body = std::string(request.method) + ' ' + request.target.text() + ' ' + request.body;
  answer.answer(std::move(response));
}

/// Keeps requests until they are answered by the test.
class slow_handler {
 public:
  void operator()(const server_request& request, responder answer) {
    const std::scoped_lock lock(mutex_);
    waiting_.emplace_back(request.target.text(), std::move(answer));
  }
  [[nodiscard]] std::size_t size() {
    const std::scoped_lock lock(mutex_);
    return waiting_.size();
  }
  /// Answers the last request that came. Returns false if there is none.
  bool answer_last() {
    std::unique_lock lock(mutex_);
    if (waiting_.empty()) return false;
    auto [target, answer] = std::move(waiting_.back());
    waiting_.pop_back();
    lock.unlock();
    answer.answer({.body = "slow " + target});
    return true;
  }

 private:
  std::mutex mutex_{};
  std::deque<std::pair<std::string, responder>> waiting_{};
};

server_options on_loopback() { return {.listen = {"127.0.0.1:0"}}; }

std::size_t count_of(std::string_view text, std::string_view part) {
  std::size_t count = 0;
  for (auto i = text.find(part); i != std::string_view::npos; i = text.find(part, i + 1)) ++count;
  return count;
}

TEST(HttpServer, AnswersAndKeepsTheConnection) {
  http_server server(on_loopback(), echo);
  raw_client client(server.addresses().front());
  client.send("POST /a/../b?c HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi");
  const auto first = client.read_until("hi");
  EXPECT_TRUE(first.starts_with("HTTP/1.1 200 OK\r\nDate: ")) << first;
  EXPECT_TRUE(first.ends_with("Content-Length: 12\r\n\r\nPOST /b?c hi")) << first;
  EXPECT_EQ(first.find("Connection"), std::string::npos);
  client.send(
      "HEAD /x HTTP/1.1\r\nHost: h\r\n\r\nGET /y HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  const auto second = client.read_until("GET /y ");
  EXPECT_NE(second.find("Content-Length: 8\r\n\r\nHTTP/1.1 200 OK"), std::string::npos) << second;
  EXPECT_NE(second.find("Connection: keep-alive"), std::string::npos);
  client.send("GET /z HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  const auto last = client.read_to_end();
  EXPECT_NE(last.find("Connection: close\r\n"), std::string::npos) << last;
  EXPECT_EQ(server.counts().requests, 4U);
}

TEST(HttpServer, ContentMayArriveInPieces) {
  http_server server(on_loopback(), echo);
  raw_client client(server.addresses().front());
  client.send(
      "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  std::string text = "3\r\nabc\r\n3;x=y\r\ndef\r\n0\r\nT: u\r\n\r\n";
  for (const char c : text) client.send({&c, 1});
  EXPECT_TRUE(client.read_until("abcdef").ends_with("POST / abcdef"));
}

TEST(HttpServer, AnswersComeInTheOrderOfTheRequests) {
  slow_handler handler;
  http_server server(on_loopback(), std::ref(handler));
  raw_client client(server.addresses().front());
  std::string text;
  for (int i = 0; i < 10; ++i) text += "GET /" + std::to_string(i) + " HTTP/1.1\r\nHost: h\r\n\r\n";
  client.send(text);
  ASSERT_TRUE(eventually([&] { return handler.size() == 10; }));
  while (handler.answer_last()) {
  }
  const auto answers = client.read_until("slow /9");
  for (int i = 0; i < 9; ++i)
    EXPECT_LT(answers.find("slow /" + std::to_string(i)),
              answers.find("slow /" + std::to_string(i + 1)));
}

// Events that a client publishes on one connection keep their order.
TEST(HttpServer, RequestsThatChangeSomethingRunOneAfterTheOther) {
  slow_handler handler;
  http_server server(on_loopback(), std::ref(handler));
  raw_client client(server.addresses().front());
  const std::string post = "POST /1 HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc";
  const std::string safe = "GET /2 HTTP/1.1\r\nHost: h\r\n\r\n";
  client.send(post + post + safe + safe + post);
  // The first, the second, both safe ones, the last.
  for (const std::size_t expected : {1U, 1U, 2U, 1U}) {
    ASSERT_TRUE(eventually([&] { return handler.size() == expected; }));
    for (std::size_t i = 0; i < expected; ++i) EXPECT_TRUE(handler.answer_last());
  }
  std::string answers;
  while (count_of(answers, "slow /") < 5) {
    const auto piece = client.read_some();
    ASSERT_FALSE(piece.empty());
    answers += piece;
  }
}

// A client that pipelines many requests ends a packet anywhere, also inside a head.
TEST(HttpServer, ARequestWhoseHeadArrivesInPiecesRunsAfterTheOneBeforeIt) {
  slow_handler handler;
  http_server server(on_loopback(), std::ref(handler));
  raw_client client(server.addresses().front());
  client.send("POST /1 HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabcPOST /2 HTTP/1.1\r\n");
  ASSERT_TRUE(eventually([&] { return handler.size() == 1; }));
  client.send("Host: h\r\nContent-Length: 3\r\n\r\nabc");
  // The loop reads these bytes before those of another client that sends later.
  raw_client other(server.addresses().front());
  other.send(get);
  ASSERT_TRUE(eventually([&] { return handler.size() == 2; }));
  EXPECT_TRUE(handler.answer_last());
  EXPECT_TRUE(handler.answer_last());
  ASSERT_TRUE(eventually([&] { return handler.size() == 1; }));
  EXPECT_TRUE(handler.answer_last());
  EXPECT_TRUE(client.read_until("slow /2").ends_with("slow /2"));
}

TEST(HttpServer, ProblemsHaveTheMembersOfEveryProblem) {
  for (const int status : {400, 401, 404, 413, 429, 500, 503}) {
    const auto body = problem_response(status, "d").body;
    EXPECT_NE(body.find("\"code\":\""), std::string::npos) << body;
    EXPECT_NE(body.find("\"inDoubt\":false"), std::string::npos) << body;
    EXPECT_EQ(body.find("\"transient\":true") != std::string::npos, status == 429 || status == 503)
        << body;
  }
}

TEST(HttpServer, NoMoreThanTheAllowedRequestsAreReadAhead) {
  slow_handler handler;
  auto options = on_loopback();
  options.max_pipelined = 4;
  http_server server(std::move(options), std::ref(handler));
  raw_client client(server.addresses().front());
  std::string text;
  for (int i = 0; i < 100; ++i) text += get;
  client.send(text);
  std::string answers;
  for (int answered = 0; answered < 100; ++answered) {
    ASSERT_TRUE(eventually([&] { return handler.size() > 0; }));
    EXPECT_LE(handler.size(), 4U);
    handler.answer_last();
  }
  while (count_of(answers, "slow /") < 100) {
    const auto piece = client.read_some();
    ASSERT_FALSE(piece.empty());
    answers += piece;
  }
}

TEST(HttpServer, RefusesAndCloses) {
  http_server server(on_loopback(), echo);
  const auto answer_to = [&](std::string_view text) {
    raw_client client(server.addresses().front());
    client.send(text);
    return client.read_to_end();
  };
  const std::string start = "GET / HTTP/1.1\r\nHost: a\r\n";
  EXPECT_TRUE(answer_to("GET / HTTP/1.1\nHost: a\n\n").starts_with("HTTP/1.1 400 "));
  EXPECT_TRUE(answer_to("GET /%2F HTTP/1.1\r\nHost: a\r\n\r\n").starts_with("HTTP/1.1 400 "));
  EXPECT_TRUE(answer_to("CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n").starts_with("HTTP/1.1 501 "));
  EXPECT_TRUE(answer_to("GET / HTTP/3.0\r\n\r\n").starts_with("HTTP/1.1 505 "));
  EXPECT_TRUE(answer_to("GET /" + std::string(9'000, 'x')).starts_with("HTTP/1.1 414 "));
  EXPECT_TRUE(answer_to(start + "X: " + std::string(9'000, 'x')).starts_with("HTTP/1.1 431 "));
  EXPECT_TRUE(answer_to(start + "Expect: x\r\n\r\n").starts_with("HTTP/1.1 417 "));
  const auto large = answer_to(start + "Content-Length: 1048577\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_TRUE(large.starts_with("HTTP/1.1 413 ")) << large;
  EXPECT_NE(large.find("application/problem+json"), std::string::npos);
  // A request before the bad one is answered, one after it is not read.
  const auto mixed = answer_to(std::string(get) + "BAD\r\n\r\n" + std::string(get));
  EXPECT_EQ(count_of(mixed, "HTTP/1.1 200 "), 1U) << mixed;
  EXPECT_EQ(count_of(mixed, "HTTP/1.1 400 "), 1U) << mixed;
  EXPECT_EQ(server.counts().refused, 9U);
}

TEST(HttpServer, AnswerReachesAClientThatIsStillSending) {
  http_server server(on_loopback(), echo);
  for (int i = 0; i < 20; ++i) {
    raw_client client(server.addresses().front());
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9999999\r\n\r\n");
    for (int n = 0; n < 20 && client.send(std::string(10'000, 'x')); ++n) {
    }
    EXPECT_TRUE(client.read_to_end().starts_with("HTTP/1.1 413 "));
  }
}

TEST(HttpServer, HandlerThatThrowsOrForgetsGives500) {
  auto options = on_loopback();
  std::atomic<int> failures = 0;
  options.on_failure = [&](std::string_view message) {
    EXPECT_EQ(message, "no");
    ++failures;
  };
  http_server server(std::move(options), [](const server_request& request, const responder&) {
    if (request.target.path() == "/throw") throw std::runtime_error("no");
  });
  raw_client client(server.addresses().front());
  client.send(
      "GET /throw HTTP/1.1\r\nHost: a\r\n\r\nGET /forget HTTP/1.1\r\nHost: a\r\nConnection: "
      "close\r\n\r\n");
  EXPECT_EQ(count_of(client.read_to_end(), "HTTP/1.1 500 "), 2U);
  EXPECT_EQ(failures, 1);
  EXPECT_EQ(server.counts().waiting, 0U);
}

TEST(HttpServer, DeadlinesAreAbsolute) {
  auto options = on_loopback();
  options.head_timeout = 1s;
  options.transfer_timeout = 1s;
  options.idle_timeout = 1s;
  http_server server(std::move(options), echo);
  const auto trickle = [&](std::string_view start, std::string_view piece) {
    raw_client client(server.addresses().front());
    client.send(start);
    // The time in which the server must close is not measured, only that it does.
    while (!client.is_readable() && client.send(piece)) std::this_thread::sleep_for(20ms);
    return client.read_to_end();
  };
  EXPECT_TRUE(trickle("GET / HTTP/1.1\r\nX: ", "y").starts_with("HTTP/1.1 408 "));
  EXPECT_TRUE(trickle("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999\r\n\r\n", "y")
                  .starts_with("HTTP/1.1 408 "));
  EXPECT_EQ(trickle("", ""), "") << "nothing was sent, nothing is answered";
  EXPECT_EQ(server.counts().late, 2U);
  raw_client idle(server.addresses().front());
  idle.send(get);
  EXPECT_TRUE(idle.read_to_end().starts_with("HTTP/1.1 200 ")) << "closed when it is idle";
}

TEST(HttpServer, ClientThatDoesNotReadIsClosed) {
  auto options = on_loopback();
  options.transfer_timeout = 300ms;
  http_server server(std::move(options), [](const server_request&, responder answer) {
    answer.answer({.body = std::string(200'000, 'x')});
  });
  raw_client client(server.addresses().front());
  const int small = 4'096;
  ::setsockopt(client.descriptor(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
  std::string text;
  for (int i = 0; i < 200; ++i) text += get;
  client.send(text);
  // 200 ms for the bytes of each answer: 40 MB would take hours at 1 KiB per second, but the
  // server stops producing after 1 MiB.
  EXPECT_TRUE(eventually([&] { return server.counts().requests > 0; }));
  EXPECT_LT(server.counts().requests, 200U);
}

TEST(HttpServer, OverloadGives503) {
  slow_handler handler;
  auto options = on_loopback();
  options.max_waiting = 2;
  http_server server(std::move(options), std::ref(handler));
  raw_client waiting(server.addresses().front());
  waiting.send(std::string(get) + std::string(get));
  ASSERT_TRUE(eventually([&] { return handler.size() == 2; }));
  raw_client refused(server.addresses().front());
  refused.send(get);
  const auto answer = refused.read_until("later");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 503 ")) << answer;
  EXPECT_NE(answer.find("Retry-After: 1\r\n"), std::string::npos);
  handler.answer_last();
  handler.answer_last();
  EXPECT_TRUE(waiting.read_until("slow /").starts_with("HTTP/1.1 200 "));
  ASSERT_TRUE(eventually([&] { return server.counts().waiting == 0; }));
  EXPECT_EQ(server.counts().overloaded, 1U);
}

TEST(HttpServer, TheLongestIdleConnectionMakesRoom) {
  slow_handler handler;
  auto options = on_loopback();
  options.max_connections = 2;
  http_server server(std::move(options), std::ref(handler));
  raw_client busy(server.addresses().front());
  busy.send(get);
  ASSERT_TRUE(eventually([&] { return handler.size() == 1; }));
  raw_client idle(server.addresses().front());
  ASSERT_TRUE(eventually([&] { return server.counts().connections == 2; }));
  raw_client next(server.addresses().front());
  next.send(get);
  EXPECT_EQ(idle.read_to_end(), "") << "closed";
  ASSERT_TRUE(eventually([&] { return handler.size() == 2; }));
  raw_client refused(server.addresses().front());
  EXPECT_TRUE(refused.read_to_end().starts_with("HTTP/1.1 503 ")) << "no connection is idle";
  while (handler.answer_last()) {
  }
  EXPECT_TRUE(busy.read_until("slow").starts_with("HTTP/1.1 200 "));
  EXPECT_TRUE(next.read_until("slow").starts_with("HTTP/1.1 200 "));
}

// Requests are answered from other threads while clients reset their connections.
TEST(HttpServer, ClientsThatResetWhileTheyAreAnswered) {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<responder> queue;
  std::atomic<bool> ended = false;
  auto options = on_loopback();
  options.loops = 2;
  http_server server(std::move(options), [&](const server_request& request, responder answer) {
    if (request.target.path() == "/now") {
      answer.answer({.body = "now"});
      return;
    }
    const std::scoped_lock lock(mutex);
    queue.push_back(std::move(answer));
    changed.notify_one();
  });
  std::vector<std::jthread> threads;
  for (int i = 0; i < 2; ++i)
    threads.emplace_back([&] {
      std::unique_lock lock(mutex);
      while (true) {
        changed.wait(lock, [&] { return !queue.empty() || ended; });
        if (queue.empty()) return;
        auto answer = std::move(queue.front());
        queue.pop_front();
        lock.unlock();
        answer.answer({.body = std::string(3'000, 'x')});
        lock.lock();
      }
    });
  std::atomic<int> good = 0;
  {
    std::vector<std::jthread> clients;
    for (int n = 0; n < 4; ++n)
      clients.emplace_back([&, n] {
        for (int i = 0; i < 150; ++i) {
          raw_client client(server.addresses().front());
          const std::string later = "GET /later HTTP/1.1\r\nHost: a\r\n\r\n";
          const std::string now = "GET /now HTTP/1.1\r\nHost: a\r\n\r\n";
          switch ((i + n) % 4) {
            case 0:
              client.send(later + later + now);
              client.reset();
              break;
            case 1:
              client.send(later.substr(0, 20));
              client.reset();
              break;
            case 2:
              client.send(now + later + now.substr(0, 25));
              client.finish_sending();
              if (count_of(client.read_to_end(), "200 OK") == 2) ++good;
              break;
            default:
              client.send(later + now);
              (void)client.read_some();
              client.reset();
          }
        }
      });
  }
  EXPECT_EQ(good, 150);
  EXPECT_TRUE(eventually([&] { return server.counts().connections == 0; }));
  EXPECT_TRUE(eventually([&] { return server.counts().waiting == 0; }));
  {
    const std::scoped_lock lock(mutex);
    ended = true;
  }
  changed.notify_all();
  threads.clear();
}

TEST(HttpServer, StopsWhenTheRequestsAreAnswered) {
  slow_handler handler;
  http_server server(on_loopback(), std::ref(handler));
  raw_client idle(server.addresses().front());
  raw_client busy(server.addresses().front());
  busy.send(get);
  ASSERT_TRUE(eventually([&] { return handler.size() == 1; }));
  std::atomic<std::size_t> cut = 99;
  std::jthread stopping([&] { cut = server.stop(60s); });
  EXPECT_EQ(idle.read_to_end(), "") << "closed at once";
  handler.answer_last();
  const auto answer = busy.read_to_end();
  EXPECT_NE(answer.find("Connection: close\r\n"), std::string::npos) << answer;
  stopping.join();
  EXPECT_EQ(cut, 0U);
  EXPECT_THROW(raw_client late(server.addresses().front()), std::runtime_error);
}

// A client that was accepted by the system, or that has sent its request already, is not reset.
TEST(HttpServer, WhatHasArrivedBeforeTheEndIsAnswered) {
  test::gate gate;
  gate.open();
  http_server server(on_loopback(), [&](const server_request& request, responder answer) {
    gate.wait();  // holds the loop
    echo(request, std::move(answer));
  });
  raw_client kept(server.addresses().front());
  kept.send(get);
  EXPECT_NE(kept.read_until("GET /").find("200 OK"), std::string::npos);
  gate.close();
  raw_client busy(server.addresses().front());
  busy.send(get);
  ASSERT_TRUE(eventually([&] { return gate.waiting() == 1; }));
  kept.send(get);
  raw_client waiting(server.addresses().front());
  waiting.send(get);
  server.begin_drain();
  std::jthread stopping([&] { EXPECT_EQ(server.stop(30s), 0U); });
  gate.open();
  for (auto* const client : {&busy, &kept, &waiting}) {
    const auto answer = client->read_to_end();
    EXPECT_EQ(count_of(answer, "HTTP/1.1 200 "), 1U) << answer;
  }
}

// A load balancer sees at once that it must connect elsewhere.
TEST(HttpServer, ConnectionsAreRefusedWhileTheLastAnswersAreAwaited) {
  slow_handler handler;
  http_server server(on_loopback(), std::ref(handler));
  raw_client client(server.addresses().front());
  client.send(get);
  ASSERT_TRUE(eventually([&] { return handler.size() == 1; }));
  std::jthread stopping([&] { EXPECT_EQ(server.stop(60s), 0U); });
  EXPECT_TRUE(eventually([&] {
    try {
      const raw_client other(server.addresses().front());
      return false;
    } catch (const std::runtime_error&) {
      return true;
    }
  }));
  EXPECT_TRUE(handler.answer_last());
}

TEST(HttpServer, EveryAnswerIsTheLastOfItsConnectionWhileTheServerDrains) {
  http_server server(on_loopback(), echo);
  raw_client client(server.addresses().front());
  client.send(get);
  EXPECT_EQ(client.read_until("GET /").find("Connection: close"), std::string::npos);
  server.begin_drain();
  client.send(get);
  EXPECT_NE(client.read_to_end().find("Connection: close"), std::string::npos);
}

TEST(HttpServer, StopReportsRequestsThatItCut) {
  slow_handler handler;
  auto server = std::make_unique<http_server>(on_loopback(), std::ref(handler));
  raw_client busy(server->addresses().front());
  busy.send(get);
  ASSERT_TRUE(eventually([&] { return handler.size() == 1; }));
  EXPECT_EQ(server->stop(1ms), 1U);
  EXPECT_EQ(server->stop(1ms), 0U);
  server.reset();
  EXPECT_EQ(busy.read_to_end(), "") << "closed although its handler has not answered";
  EXPECT_TRUE(handler.answer_last()) << "an answer after the end is dropped";
}

TEST(HttpServer, UnixSocketAndSeveralLoops) {
  const test::temporary_directory directory("serve");
  auto options = on_loopback();
  options.listen.push_back(directory.path() / "api.sock");
  options.loops = 3;
  http_server server(std::move(options), echo);
  ASSERT_EQ(server.addresses().size(), 2U);
  for (const auto& address : server.addresses()) {
    for (int i = 0; i < 20; ++i) {
      raw_client client(address);
      client.send(get);
      EXPECT_TRUE(client.read_until("GET / ").starts_with("HTTP/1.1 200 "));
    }
  }
}

TEST(HttpServer, AConnectionEndsAfterTheAllowedRequests) {
  auto options = on_loopback();
  options.max_requests_per_connection = 3;
  http_server server(std::move(options), echo);
  raw_client client(server.addresses().front());
  std::string requests;
  for (int i = 0; i < 5; ++i) requests += get;
  client.send(requests);
  const auto answers = client.read_to_end();
  EXPECT_EQ(count_of(answers, "HTTP/1.1 200 "), 3U) << answers;
  EXPECT_EQ(count_of(answers, "Connection: close"), 1U) << answers;
  EXPECT_EQ(server.counts().requests, 3U);
}

TEST(HttpServer, AnAddressHasAShareOfTheConnections) {
  server_shared shared;
  shared.options.max_connections_per_address = 2;
  EXPECT_TRUE(shared.admit("10.0.0.1"));
  EXPECT_TRUE(shared.admit("10.0.0.1"));
  EXPECT_FALSE(shared.admit("10.0.0.1"));
  EXPECT_TRUE(shared.admit("10.0.0.2")) << "others are not affected";
  shared.release("10.0.0.1");
  EXPECT_TRUE(shared.admit("10.0.0.1"));
  EXPECT_FALSE(shared.admit("10.0.0.1"));
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(shared.admit("127.0.0.1")) << "a proxy on this machine";
    EXPECT_TRUE(shared.admit("unix"));
  }
}

// The buffers of a request belong to the next connection that sends one.
TEST(HttpServer, WaitingConnectionsShareTheirBuffers) {
  http_server server(on_loopback(), echo);
  std::vector<raw_client> clients;
  for (int i = 0; i < 5; ++i) clients.emplace_back(server.addresses().front());
  for (int turn = 0; turn < 3; ++turn) {
    for (std::size_t i = 0; i < clients.size(); ++i) {
      const auto text = std::to_string(turn) + "-" + std::to_string(i);
      // One of them is large, and one is not complete while the others are answered.
      const auto content = i == 1 ? std::string(20'000, 'L') : "content " + text;
      const auto request = "POST /" + text + " HTTP/1.1\r\nHost: a\r\nContent-Length: " +
                           std::to_string(content.size()) + "\r\n\r\n" + content;
      if (i == 2) {
        clients[i].send(request.substr(0, request.size() - 3));
        continue;
      }
      clients[i].send(request);
      EXPECT_TRUE(clients[i].read_until(content).ends_with("POST /" + text + " " + content));
    }
    const auto text = std::to_string(turn) + "-2";
    clients[2].send(text);
    EXPECT_TRUE(clients[2].read_until("content " + text).ends_with("content " + text));
  }
  EXPECT_EQ(server.counts().accepted, 5U);
}

TEST(HttpServer, NeedsAnAddress) {
  EXPECT_THROW(http_server({}, echo), error);
  EXPECT_THROW(http_server({.listen = {"nonsense"}}, echo), error);
  http_server first(on_loopback(), echo);
  EXPECT_THROW(http_server({.listen = first.addresses()}, echo), error) << "in use";
}

TEST(HttpServer, Tls) {
  const test::certificate identity("");
  const detail::net::tls_server_context context(
      {.certificate = identity.file(), .key = identity.key()});
  auto options = on_loopback();
  options.tls = &context;
  http_server server(std::move(options), echo);
  http_client client("https://" + server.addresses().front(), {.tls = {.ca = identity.file()}});
  const std::string large(300'000, 'z');
  for (int i = 0; i < 5; ++i) {
    const auto response = client.send({.method = "POST", .target = "/t", .body = large},
                                      std::chrono::steady_clock::now() + 60s);
    ASSERT_EQ(response.result, exchange_status::complete) << response.reason;
    EXPECT_EQ(response.body, "POST /t " + large);
  }
  EXPECT_EQ(server.counts().accepted, 1U) << "the connection was kept";
  raw_client plain(server.addresses().front());
  plain.send(get);
  EXPECT_EQ(plain.read_to_end().find("HTTP/"), std::string::npos);
  http_client stranger("https://" + server.addresses().front(), {});
  const auto refused = stranger.send({}, std::chrono::steady_clock::now() + 60s);
  EXPECT_EQ(refused.result, exchange_status::unreachable);
  EXPECT_TRUE(refused.certificate_refused);
}

/// A server that requires certificates, and answers with what it knows of the client.
class VerifiedClients : public ::testing::Test {
 protected:
  using context = detail::net::tls_server_context;
  test::certificate_authority authority_{};
  test::certificate_authority foreign_{};
  test::certificate_authority::issued own_ =
      authority_.issue({.name = "server", .names = "IP:127.0.0.1"});
  std::shared_ptr<const context> tls_ = make_context(authority_);
  http_server server_{{.listen = {"127.0.0.1:0"}, .tls = tls_.get()},
                      [](const server_request& request, responder answer) {
                        server_response response;
                        if (request.certificate != nullptr) {
                          for (const auto& name : request.certificate->names)
                            response.body += name + "\n";
                          response.body += request.certificate->fingerprint + "\n";
                        }
                        answer.answer(std::move(response));
                      }};

  [[nodiscard]] std::shared_ptr<const context> make_context(
      const test::certificate_authority& clients) const {
    return std::make_shared<const context>(detail::net::tls_server_options{
        .certificate = own_.file, .key = own_.key, .client_ca = clients.file()});
  }
  [[nodiscard]] std::unique_ptr<http_client> client_with(
      const test::certificate_authority::issued& shown) const {
    return std::make_unique<http_client>(
        "https://" + server_.addresses().front(),
        client_options{
            .tls = {.ca = authority_.file(), .certificate = shown.file, .key = shown.key}});
  }
  static client_response ask(http_client& client) {
    return client.send({.method = "POST"}, std::chrono::steady_clock::now() + 60s);
  }
};

TEST_F(VerifiedClients, TheNamesOfTheCertificateReachTheHandler) {
  const auto client = client_with(authority_.issue(
      {.name = "billing",
       .names =
           "DNS:Billing.Example,URI:spiffe://shop/billing,email:ops@example.org,IP:10.1.2.3"}));
  const auto response = ask(*client);
  ASSERT_EQ(response.result, exchange_status::complete) << response.reason;
  EXPECT_TRUE(
      response.body.starts_with("dns:billing.example\nuri:spiffe://shop/billing\n"
                                "email:ops@example.org\ncn:billing\nsha256:"))
      << response.body;
  EXPECT_EQ(response.body.size() - response.body.find("sha256:"), 7U + 64 + 1);
}

TEST_F(VerifiedClients, OthersReachNothing) {
  const auto refused = [&](const test::certificate_authority::issued& shown) {
    return ask(*client_with(shown)).result != exchange_status::complete;
  };
  EXPECT_FALSE(refused(authority_.issue({.name = "right"})));
  EXPECT_TRUE(refused({})) << "no certificate";
  EXPECT_TRUE(refused(foreign_.issue({.name = "right"}))) << "another issuer";
  EXPECT_TRUE(refused(authority_.issue({.name = "right", .lifetime = -1min}))) << "expired";
  EXPECT_EQ(server_.counts().requests, 1U);
}

TEST_F(VerifiedClients, NewIssuersEndTheConnectionsOfBefore) {
  const auto shown = authority_.issue({.name = "billing"});
  const auto client = client_with(shown);
  ASSERT_EQ(ask(*client).result, exchange_status::complete);
  ASSERT_EQ(ask(*client).result, exchange_status::complete);
  EXPECT_EQ(server_.counts().accepted, 1U) << "the connection was kept";
  server_.set_tls(make_context(foreign_));
  EXPECT_TRUE(eventually([&] { return server_.counts().connections == 0; }));
  EXPECT_NE(ask(*client).result, exchange_status::complete);
  server_.set_tls(make_context(authority_));
  EXPECT_EQ(ask(*client).result, exchange_status::complete);
}

TEST(HttpServer, WithoutAnIssuerACertificateSaysNothing) {
  const test::certificate_authority authority;
  const auto own = authority.issue({.name = "server", .names = "IP:127.0.0.1"});
  const detail::net::tls_server_context context({.certificate = own.file, .key = own.key});
  std::atomic<bool> was_shown = false;
  http_server server({.listen = {"127.0.0.1:0"}, .tls = &context},
                     [&](const server_request& request, responder answer) {
                       was_shown = was_shown || request.certificate != nullptr;
                       answer.answer({});
                     });
  const auto shown = authority.issue({.name = "billing"});
  http_client client(
      "https://" + server.addresses().front(),
      {.tls = {.ca = authority.file(), .certificate = shown.file, .key = shown.key}});
  EXPECT_EQ(client.send({}, std::chrono::steady_clock::now() + 60s).status, 200);
  EXPECT_FALSE(was_shown);
}

// 400 connections send a byte now and then. They are closed at the deadline, and others are
// served meanwhile.
TEST(HttpServer, SlowConnectionsAreClosedAndDoNotDisturb) {
  auto options = on_loopback();
  options.head_timeout = 3s;
  http_server server(std::move(options), echo);
  std::vector<raw_client> slow;
  constexpr std::size_t slow_clients = 400;  // the limit of descriptors may be 1024
  for (std::size_t i = 0; i < slow_clients; ++i) {
    slow.emplace_back(server.addresses().front());
    slow.back().send("GET / HTTP/1.1\r\nX: ");
  }
  raw_client good(server.addresses().front());
  std::size_t served = 0;
  const auto limit = std::chrono::steady_clock::now() + 60s;
  while (server.counts().late < slow_clients && std::chrono::steady_clock::now() < limit) {
    for (std::size_t i = served % 10; i < slow.size(); i += 10) slow[i].send("y");
    good.send(get);
    ASSERT_TRUE(good.read_until("GET / ").starts_with("HTTP/1.1 200 "));
    ++served;
    std::this_thread::sleep_for(10ms);  // a connection has a limit of requests
  }
  EXPECT_GT(served, 0U);
  EXPECT_EQ(server.counts().late, slow_clients);
  for (auto& client : slow) EXPECT_TRUE(client.read_to_end().starts_with("HTTP/1.1 408 "));
  good.send(get);
  EXPECT_TRUE(good.read_until("GET / ").starts_with("HTTP/1.1 200 "));
}

}  // namespace
