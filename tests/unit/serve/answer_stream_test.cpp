// Answers in pieces: order, slow readers, clients that go away, heartbeats, the end of the server.

#include "serve/answer_stream.hpp"

#include <holdfast/error.hpp>

#include "serve/http_server.hpp"
#include "support/eventually.hpp"
#include "support/raw_client.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
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

constexpr std::string_view get_stream = "GET /stream HTTP/1.1\r\nHost: a\r\n\r\n";
constexpr std::string_view get_once = "GET /once HTTP/1.1\r\nHost: a\r\n\r\n";

/// A server whose answers to /stream the test continues.
class stream_server {
 public:
  explicit stream_server(answer_stream_options settings = {}, std::size_t loops = 1)
      : settings_(std::move(settings)),
        server_({.listen = {"127.0.0.1:0"}, .loops = loops, .max_waiting = 4},
                [this](const server_request& request, responder answer) {
                  if (request.target.path() == "/once") {
                    answer.answer({.body = "once"});
                    return;
                  }
                  server_response head{.body = "first;"};
                  head.fields.add("Content-Type", "text/plain");
                  auto stream = answer.begin_stream(std::move(head), settings_);
                  const std::scoped_lock lock(mutex_);
                  streams_.push_back(std::move(stream));
                }) {}

  http_server& server() { return server_; }
  raw_client connect() { return raw_client(server_.addresses().front()); }
  /// The streams that have begun, in their order.
  std::deque<answer_stream>& streams(std::size_t count) {
    EXPECT_TRUE(eventually([&] {
      const std::scoped_lock lock(mutex_);
      return streams_.size() >= count;
    }));
    return streams_;
  }
  answer_stream& stream() { return streams(1).front(); }

 private:
  answer_stream_options settings_;
  std::mutex mutex_{};
  std::deque<answer_stream> streams_{};
  http_server server_;
};

TEST(AnswerStream, PiecesAreChunksAndTheConnectionGoesOn) {
  stream_server tested;
  auto client = tested.connect();
  client.send(get_stream);
  auto& stream = tested.stream();
  const auto head = client.read_until("first;");
  EXPECT_TRUE(head.starts_with("HTTP/1.1 200 OK\r\nDate: ")) << head;
  EXPECT_NE(head.find("Transfer-Encoding: chunked\r\n\r\n6\r\nfirst;"), std::string::npos) << head;
  EXPECT_EQ(head.find("Content-Length"), std::string::npos);
  EXPECT_EQ(tested.server().counts().waiting, 0U) << "a stream is no request that waits";
  EXPECT_EQ(tested.server().counts().streams, 1U);
  EXPECT_TRUE(stream.write("second;"));
  EXPECT_NE(client.read_until("second;\r\n").find("7\r\nsecond;"), std::string::npos);
  stream.close("third;");
  stream.close("ignored");
  EXPECT_FALSE(stream.write("ignored"));
  EXPECT_TRUE(client.read_until("0\r\n\r\n").ends_with("6\r\nthird;\r\n0\r\n\r\n"));
  EXPECT_TRUE(eventually([&] { return !stream.is_open(); }));
  EXPECT_EQ(tested.server().counts().streams, 0U);
  client.send(get_once);
  EXPECT_TRUE(client.read_until("once").ends_with("once")) << "the connection can be used again";
}

TEST(AnswerStream, FollowingRequestsWaitForTheEndOfTheStream) {
  stream_server tested;
  auto client = tested.connect();
  client.send(std::string(get_once) + std::string(get_stream) + std::string(get_once));
  auto& stream = tested.stream();
  EXPECT_TRUE(stream.write("a"));
  EXPECT_TRUE(stream.write("b"));
  stream.close("c");
  client.send("GET /once?last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  const auto text = client.read_to_end();
  EXPECT_LT(text.find("once"), text.find("first;"));
  EXPECT_LT(text.find("first;"), text.find("0\r\n\r\nHTTP/1.1 200"));
  EXPECT_TRUE(text.ends_with("once")) << text;
}

TEST(AnswerStream, HeadAndOldClientsGetNoContent) {
  stream_server tested;
  auto client = tested.connect();
  client.send("HEAD /stream HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_TRUE(client.read_until("\r\n\r\n").ends_with("Transfer-Encoding: chunked\r\n\r\n"));
  auto& stream = tested.stream();
  EXPECT_TRUE(eventually([&] { return !stream.is_open(); }));
  client.send("GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_TRUE(client.read_until("use HTTP/1.1").starts_with("HTTP/1.1 505 "));
  EXPECT_FALSE(tested.streams(2).back().is_open());
  client.send(get_once);
  EXPECT_TRUE(client.read_until("once").ends_with("once"));
}

TEST(AnswerStream, AbandonedStreamIsCut) {
  stream_server tested;
  auto client = tested.connect();
  client.send(get_stream);
  (void)tested.stream();
  (void)client.read_until("first;");
  {
    const auto dropped = std::move(tested.stream());
  }
  EXPECT_EQ(client.read_to_end().find("0\r\n\r\n"), std::string::npos);
  EXPECT_EQ(tested.server().counts().slow_streams, 0U);
}

TEST(AnswerStream, ClientThatIsGoneIsNoticedWithoutWriting) {
  stream_server tested;
  std::optional<raw_client> closing = tested.connect();
  auto resetting = tested.connect();
  closing->send(get_stream);
  resetting.send(get_stream);
  auto& streams = tested.streams(2);
  (void)closing->read_until("first;");
  (void)resetting.read_until("first;");
  closing.reset();
  resetting.reset();
  EXPECT_TRUE(eventually([&] { return !streams[0].is_open() && !streams[1].is_open(); }));
  EXPECT_FALSE(streams[0].write("lost"));
  EXPECT_TRUE(eventually([&] { return tested.server().counts().connections == 0; }));
  EXPECT_EQ(tested.server().counts().streams, 0U);
}

TEST(AnswerStream, SlowReaderIsCutAndCounted) {
  stream_server tested({.max_queued = 64'000});
  auto slow = tested.connect();
  const int small = 4'096;
  ::setsockopt(slow.descriptor(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
  slow.send(get_stream);
  auto& stream = tested.stream();
  const std::string piece(1'000, 'x');
  // The kernel buffers some megabytes at most.
  std::size_t written = 0;
  while (stream.write(piece) && written < 200'000) ++written;
  EXPECT_LT(written, 200'000U);
  EXPECT_FALSE(stream.write(piece));
  EXPECT_TRUE(eventually([&] { return tested.server().counts().slow_streams == 1; }));
  EXPECT_TRUE(eventually([&] { return tested.server().counts().connections == 0; }));
  EXPECT_EQ(slow.read_to_end().find("0\r\n\r\n"), std::string::npos) << "no regular end";
  auto good = tested.connect();
  good.send(get_once);
  EXPECT_TRUE(good.read_until("once").ends_with("once"));
}

TEST(AnswerStream, PieceBeyondTheLimitCutsTheStream) {
  stream_server tested({.max_queued = 100});
  auto client = tested.connect();
  client.send(get_stream);
  EXPECT_FALSE(tested.stream().write(std::string(101, 'x')));
  (void)client.read_to_end();
  EXPECT_EQ(tested.server().counts().slow_streams, 1U);
}

TEST(AnswerStream, HeartbeatIsSentWhileNothingHappens) {
  stream_server tested({.heartbeat = ":\n\n", .heartbeat_interval = 20ms});
  auto client = tested.connect();
  client.send(get_stream);
  std::string text;
  while (text.find("3\r\n:\n\n\r\n3\r\n:\n\n\r\n") == std::string::npos) {
    const auto piece = client.read_some();
    ASSERT_FALSE(piece.empty()) << text;
    text += piece;
  }
  tested.stream().close("end");
  EXPECT_TRUE(client.read_until("0\r\n\r\n").ends_with("3\r\nend\r\n0\r\n\r\n"));
}

TEST(AnswerStream, StopSendsTheLastPiece) {
  stream_server tested({.last_piece = "bye"});
  auto begun = tested.connect();
  begun.send(get_stream);
  (void)tested.stream();
  (void)begun.read_until("first;");
  EXPECT_EQ(tested.server().stop(60s), 0U);
  const auto text = begun.read_to_end();
  EXPECT_TRUE(text.ends_with("3\r\nbye\r\n0\r\n\r\n")) << text;
  EXPECT_FALSE(tested.stream().is_open());
  EXPECT_FALSE(tested.stream().write("late"));
}

TEST(AnswerStream, ManyWritersAndClientsThatReset) {
  stream_server tested({}, 2);
  std::vector<raw_client> clients;
  for (int i = 0; i < 64; ++i) {
    clients.push_back(tested.connect());
    clients.back().send(get_stream);
  }
  auto& streams = tested.streams(64);
  std::atomic<bool> ended = false;
  std::vector<std::jthread> writers;
  for (std::size_t part = 0; part < 4; ++part)
    writers.emplace_back([&, part] {
      while (!ended) {
        for (std::size_t i = part; i < 64; i += 4) (void)streams[i].write("0123456789");
      }
    });
  for (std::size_t i = 0; i < 32; ++i) {
    (void)clients[i].read_until("0123456789");
    clients[i].reset();
  }
  EXPECT_TRUE(eventually([&] { return tested.server().counts().streams <= 32; }));
  ended = true;
  writers.clear();
  for (auto& stream : streams) stream.close();
  EXPECT_TRUE(eventually([&] {
    for (std::size_t i = 32; i < 64; ++i) {
      if (clients[i].is_readable()) (void)clients[i].read_some();
    }
    return tested.server().counts().streams == 0;
  }));
}

TEST(AnswerStream, NeedsAStatusWithContent) {
  http_server server({.listen = {"127.0.0.1:0"}}, [](const server_request&, responder answer) {
    (void)answer.begin_stream({.status = 204}, {});
  });
  raw_client client(server.addresses().front());
  client.send(get_once);
  EXPECT_TRUE(client.read_until("\r\n\r\n").starts_with("HTTP/1.1 500 "));
}

}  // namespace
