// The event loop: tasks from other threads, timers, registrations, listeners.

#include "net/event_loop.hpp"

#include <holdfast/error.hpp>

#include "net/connector.hpp"
#include "net/listener.hpp"
#include "support/child_process.hpp"
#include "support/raw_client.hpp"
#include "support/temporary_directory.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace holdfast;
using namespace holdfast::detail::net;
using namespace std::chrono_literals;

TEST(EventLoop, RunsTasksOfOtherThreadsInOrder) {
  event_loop loop;
  std::vector<int> order;
  std::jthread other([&] {
    for (int i = 0; i < 1'000; ++i) EXPECT_TRUE(loop.post([&order, i] { order.push_back(i); }));
    loop.post([&] {
      EXPECT_TRUE(loop.is_own_thread());
      loop.stop();
    });
  });
  loop.run();
  other.join();
  ASSERT_EQ(order.size(), 1'000U);
  EXPECT_TRUE(std::ranges::is_sorted(order));
  EXPECT_FALSE(loop.post([] {})) << "the loop has ended";
  EXPECT_FALSE(loop.is_own_thread());
}

TEST(EventLoop, TimersFireInTheOrderOfTheirDeadlines) {
  event_loop loop;
  std::mt19937 random(7);
  std::vector<std::unique_ptr<timer>> timers;
  std::vector<int> fired;
  const auto begin = steady::now();
  std::vector<int> expected;
  for (int i = 0; i < 200; ++i) {
    auto& added = *timers.emplace_back(std::make_unique<timer>(loop));
    added.set_callback([&fired, i] { fired.push_back(i); });
    // Each is set twice: to a later or to an earlier deadline.
    added.set(begin + std::chrono::microseconds(random() % 20'000));
    added.set(begin + i * 100us);
    if (i % 3 == 0) added.cancel();
    else expected.push_back(i);
  }
  timer last(loop);
  last.set_callback([&] { loop.stop(); });
  last.set(begin + 21ms);
  loop.run();
  EXPECT_EQ(fired, expected);
  EXPECT_GE(steady::now() - begin, 21ms);
}

TEST(EventLoop, TimerThatIsPostponedInTimeDoesNotFire) {
  event_loop loop;
  int fired = 0;
  timer postponed(loop);
  postponed.set_callback([&] { ++fired; });
  postponed.set(steady::now() + 1ms);
  postponed.set(steady::now() + 1h);
  timer last(loop);
  last.set_callback([&] { loop.stop(); });
  last.set(steady::now() + 5ms);
  loop.run();
  EXPECT_EQ(fired, 0);
}

/// Counts events, and may do something with the first.
class counting_handler final : public event_handler {
 public:
  explicit counting_handler(std::function<void()> react) : react_(std::move(react)) {}
  void on_events(std::uint32_t /*events*/) override {
    ++count_;
    react_();
  }
  [[nodiscard]] int count() const { return count_; }

 private:
  std::function<void()> react_;
  int count_ = 0;
};

/// Both ends of a pipe that is readable.
struct readable_pipe {
  readable_pipe() {
    EXPECT_EQ(::pipe(ends), 0);
    EXPECT_EQ(::write(ends[1], "x", 1), 1);
  }
  ~readable_pipe() {
    ::close(ends[0]);
    ::close(ends[1]);
  }
  int ends[2]{};
};

// Two descriptors are ready in one turn, and the handler of the first removes the second.
TEST(EventLoop, AnEventOfARemovedHandlerIsDropped) {
  event_loop loop;
  const readable_pipe first;
  const readable_pipe second;
  registration first_entry;
  registration second_entry;
  int calls = 0;
  const auto remove_both = [&] {
    ++calls;
    first_entry.remove();
    second_entry.remove();
    loop.post([&] { loop.stop(); });
  };
  counting_handler handler(remove_both);
  first_entry.add(loop, first.ends[0], EPOLLIN, handler);
  second_entry.add(loop, second.ends[0], EPOLLIN, handler);
  loop.run();
  EXPECT_EQ(calls, 1);
}

TEST(EventLoop, RetiredObjectsLiveUntilTheEndOfTheTurn) {
  event_loop loop;
  auto object = std::make_shared<int>(1);
  const std::weak_ptr<int> watched = object;
  bool alive_in_turn = false;
  loop.post([&] {
    loop.retire(std::move(object));
    alive_in_turn = !watched.expired();
    loop.post([&] {
      EXPECT_TRUE(watched.expired());
      loop.stop();
    });
  });
  loop.run();
  EXPECT_TRUE(alive_in_turn);
}

TEST(Listener, RefusesWhatIsNotAnAddress) {
  for (const auto* const address : {"", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", ":80", "h:70000"})
    EXPECT_THROW((void)listening_socket::open(address, {}), error) << address;
}

TEST(Listener, SharesAPortOnlyIfAsked) {
  const auto alone = listening_socket::open("127.0.0.1:0", {});
  using sharing = listening_socket::sharing;
  EXPECT_THROW((void)listening_socket::open(alone.address(), {.port = sharing::next}), error);
  const auto first = listening_socket::open("127.0.0.1:0", {.port = sharing::first});
  const auto second = listening_socket::open(first.address(), {.port = sharing::next});
  EXPECT_EQ(first.address(), second.address());
  // Another server of the same user, which also has several loops.
  EXPECT_THROW((void)listening_socket::open(first.address(), {.port = sharing::first}), error);
  EXPECT_EQ(listening_socket::open("[::1]:0", {}).address().substr(0, 6), "[::1]:");
}

TEST(Listener, UnixSocketReplacesAStaleOneOnly) {
  const test::temporary_directory directory("socket");
  const std::string path = directory.path() / "s";
  {
    const auto open = listening_socket::open(path, {});
    struct stat status{};
    ASSERT_EQ(::stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777U, 0600U);
    EXPECT_THROW((void)listening_socket::open(path, {}), error) << "it is in use";
  }
  EXPECT_NE(::access(path.c_str(), F_OK), 0) << "removed with the listener";
  // A socket whose process has died.
  const int dead = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(dead, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ::close(dead);
  EXPECT_EQ(listening_socket::open(path, {}).address(), path);
  // A file that is not a socket stays.
  const std::string file = directory.path() / "file";
  ::close(::open(file.c_str(), O_CREAT | O_WRONLY, 0600));
  EXPECT_THROW((void)listening_socket::open(file, {}), error);
  EXPECT_EQ(::access(file.c_str(), F_OK), 0);
}

TEST(Connector, ReportsWhyThereIsNoConnection) {
  event_loop loop;
  std::string reason;
  connector::target nowhere{.address = "127.0.0.1:1", .addresses = resolve("127.0.0.1:1", "x")};
  connector attempt(loop, nowhere, steady::now() + 60s,
                    [&](std::unique_ptr<socket_stream> stream, const error* problem) {
                      EXPECT_EQ(stream, nullptr);
                      reason = problem->message();
                      loop.stop();
                    });
  loop.run();
  EXPECT_EQ(reason, "cannot connect to the server at 127.0.0.1:1: Connection refused");
}

TEST(Connector, ConnectsAndCanBeAbandoned) {
  event_loop loop;
  const auto server = listening_socket::open("127.0.0.1:0", {});
  const connector::target target{.address = server.address(),
                                 .addresses = resolve(server.address(), "x")};
  bool connected = false;
  auto abandoned = std::make_unique<connector>(
      loop, target, steady::now() + 60s,
      [](std::unique_ptr<socket_stream>, const error*) { ADD_FAILURE() << "abandoned"; });
  abandoned.reset();
  connector attempt(loop, target, steady::now() + 60s,
                    [&](std::unique_ptr<socket_stream> stream, const error* problem) {
                      connected = stream != nullptr && problem == nullptr;
                      loop.stop();
                    });
  loop.run();
  EXPECT_TRUE(connected);
}

}  // namespace
