#include "support/cutting_proxy.hpp"

#include "support/free_port.hpp"
#include "support/proxy_connection.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <deque>
#include <functional>
#include <future>
#include <list>
#include <mutex>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::test {
namespace {

using clock = std::chrono::steady_clock;

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

proxy_socket make_socket() {
  const int number = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (number < 0) throw std::system_error(errno, std::generic_category(), "socket");
  const int on = 1;
  ::setsockopt(number, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return proxy_socket(number);
}

// None when somebody has the port.
proxy_socket listen_on(std::uint16_t port) {
  auto result = make_socket();
  const int on = 1;
  ::setsockopt(result.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const auto address = loopback(port);
  if (::bind(result.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(result.get(), 128) != 0)
    result.close(false);
  return result;
}

}  // namespace

// Everything belongs to one thread; the controls are tasks for it.
class cutting_proxy::loop {
 public:
  explicit loop(std::uint16_t target)
      : wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), target_(target) {
    if (!wake_.open()) throw std::system_error(errno, std::generic_category(), "eventfd");
    for (int attempt = 0; attempt < 100 && !listener_.open(); ++attempt) {
      port_ = free_port();
      listener_ = listen_on(port_);
    }
    if (!listener_.open()) throw std::runtime_error("cutting_proxy: no port to listen on");
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread([this] { run(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  [[nodiscard]] std::uint16_t port() const { return port_; }

  // Runs it on the loop's thread and waits for the result.
  template <class Question>
  std::invoke_result_t<Question> ask(Question question) {
    // Shared: the answer is there before the task has quite ended.
    const auto task =
        std::make_shared<std::packaged_task<std::invoke_result_t<Question>()>>(std::move(question));
    auto answer = task->get_future();
    {
      const std::lock_guard lock(mutex_);
      tasks_.emplace_back([task] { (*task)(); });
    }
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(wake_.get(), &one, sizeof one);
    return answer.get();
  }

  ~loop() {
    ask([this] { stopping_ = true; });
    thread_.join();
  }

  // ---- for tasks

  proxy_rules& rules(flow where) { return rules_[static_cast<std::size_t>(where)]; }

  void end(proxy_connection& connection, ending how, side whose) {
    ++cuts_;
    connection.connecting = false;
    if (whose != side::server) connection.client.close(how == ending::reset);
    if (whose != side::client) connection.server.close(how == ending::reset);
    // The other side may still send; it goes nowhere.
    for (auto& stream : connection.streams) stream.discard();
  }

  void end_all(ending how, side whose) {
    for (auto& connection : connections_) end(connection, how, whose);
    connections_.remove_if([](const auto& one) { return one.over(); });
  }

  void forget_all() {
    for (auto& connection : connections_) {
      for (auto& stream : connection.streams) stream.discard();
    }
  }

  void refuse(bool on) {
    if (on) {
      listener_.close(false);
      return;
    }
    for (int attempt = 0; attempt < 100 && !listener_.open(); ++attempt) {
      listener_ = listen_on(port_);
      if (!listener_.open()) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    if (!listener_.open()) throw std::runtime_error("cutting_proxy: somebody else took the port");
  }

  struct pending_cut {
    ending how = ending::reset;
    side whose = side::both;
  };
  std::array<pending_cut, 2> pending_cuts_{};
  bool accepting_ = true;
  std::uint64_t cuts_ = 0;
  std::uint64_t accepted_ = 0;
  void set_target(std::uint16_t target) { target_ = target; }
  [[nodiscard]] std::size_t open_connections() const { return connections_.size(); }

 private:
  void run() {
    while (!stopping_) {
      wait();
      run_tasks();
      const auto now = clock::now();
      if (listener_.open() && accepting_) accept_all();
      for (auto& connection : connections_) serve(connection, now);
      connections_.remove_if([](const auto& one) { return one.over(); });
    }
    for (auto& connection : connections_) {
      connection.client.close(true);
      connection.server.close(true);
    }
  }

  // Until a socket that we want something from is ready, the next delayed byte is due, or a task is
  // there.
  void wait() {
    std::vector<pollfd> polled{{.fd = wake_.get(), .events = POLLIN, .revents = 0}};
    if (listener_.open() && accepting_)
      polled.push_back({.fd = listener_.get(), .events = POLLIN, .revents = 0});
    const auto now = clock::now();
    std::optional<clock::time_point> due;
    for (auto& connection : connections_) {
      if (connection.connecting) {
        polled.push_back({.fd = connection.server.get(), .events = POLLOUT, .revents = 0});
        continue;
      }
      for (std::size_t i = 0; i < 2; ++i) {
        auto& stream = connection.streams[i];
        // Each want is an entry of its own: a socket that nobody wants anything from must not wake
        // us with its hang-up.
        if (stream.wants_to_read(rules_[i]))
          polled.push_back({.fd = stream.from->get(), .events = POLLIN, .revents = 0});
        if (stream.wants_to_write(rules_[i], now)) {
          polled.push_back({.fd = stream.to->get(), .events = POLLOUT, .revents = 0});
        } else if (const auto next = stream.next_due(rules_[i])) {
          due = due ? std::min(*due, *next) : *next;
        }
      }
    }
    int timeout = -1;
    if (due)
      timeout = static_cast<int>(std::max<std::int64_t>(
          0, std::chrono::ceil<std::chrono::milliseconds>(*due - now).count()));
    ::poll(polled.data(), polled.size(), timeout);
  }

  void run_tasks() {
    std::uint64_t count = 0;
    [[maybe_unused]] const auto got = ::read(wake_.get(), &count, sizeof count);
    for (;;) {
      std::function<void()> task;
      {
        const std::lock_guard lock(mutex_);
        if (tasks_.empty()) return;
        task = std::move(tasks_.front());
        tasks_.pop_front();
      }
      task();
    }
  }

  void accept_all() {
    for (;;) {
      proxy_socket client(
          ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!client.open()) return;
      const int on = 1;
      ::setsockopt(client.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      ++accepted_;
      auto server = make_socket();
      const auto address = loopback(target_);
      if (::connect(server.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) !=
              0 &&
          errno != EINPROGRESS) {
        client.close(true);
        continue;
      }
      connections_.emplace_back(std::move(client), std::move(server));
    }
  }

  void serve(proxy_connection& connection, clock::time_point now) {
    if (connection.connecting && !finish_connecting(connection)) return;
    for (std::size_t i = 0; i < 2; ++i) {
      auto& stream = connection.streams[i];
      auto& rules = rules_[i];
      const auto before = rules.bytes;
      bool good = !stream.wants_to_read(rules) || stream.read(rules, now);
      good = good && (!stream.wants_to_write(rules, now) || stream.write(rules, now));
      if (!good) {
        broken(connection, i);
        return;
      }
      if (rules.budget == std::uint64_t{0} && (rules.bytes != before || !stream.queue.empty())) {
        rules.budget.reset();
        end(connection, pending_cuts_[i].how, pending_cuts_[i].whose);
        return;
      }
    }
  }

  bool finish_connecting(proxy_connection& connection) {
    pollfd ready{.fd = connection.server.get(), .events = POLLOUT, .revents = 0};
    if (::poll(&ready, 1, 0) == 0) return false;
    int problem = 0;
    socklen_t size = sizeof problem;
    ::getsockopt(connection.server.get(), SOL_SOCKET, SO_ERROR, &problem, &size);
    connection.connecting = false;
    if (problem == 0) return true;
    connection.client.close(true);
    connection.server.close(false);
    return false;
  }

  // One side reset the connection. The other one learns it, unless the network swallows that, too.
  void broken(proxy_connection& connection, std::size_t where) {
    const bool swallowed = rules_[where].drop || connection.streams[where].lost;
    connection.streams[where].from->close(false);
    if (!swallowed) connection.streams[where].to->close(true);
    for (auto& stream : connection.streams) stream.lost = true;
  }

  proxy_socket wake_;
  proxy_socket listener_{};
  std::uint16_t port_ = 0;
  std::uint16_t target_;
  bool stopping_ = false;
  std::array<proxy_rules, 2> rules_{};
  std::list<proxy_connection> connections_{};

  std::mutex mutex_{};  // guards tasks_
  std::deque<std::function<void()>> tasks_{};
  std::thread thread_{};
};

cutting_proxy::cutting_proxy(std::uint16_t target) : loop_(std::make_unique<loop>(target)) {}
cutting_proxy::~cutting_proxy() = default;

std::uint16_t cutting_proxy::port() const noexcept { return loop_->port(); }

void cutting_proxy::retarget(std::uint16_t target) {
  loop_->ask([&] { loop_->set_target(target); });
}

void cutting_proxy::delay(flow where, std::chrono::milliseconds time) {
  loop_->ask([&] { loop_->rules(where).delay = time; });
}

void cutting_proxy::hold(flow where, bool on) {
  loop_->ask([&] { loop_->rules(where).hold = on; });
}

void cutting_proxy::drop(flow where, bool on) {
  loop_->ask([&] { loop_->rules(where).drop = on; });
}

void cutting_proxy::accept(bool on) {
  loop_->ask([&] { loop_->accepting_ = on; });
}

void cutting_proxy::refuse(bool on) {
  loop_->ask([&] { loop_->refuse(on); });
}

void cutting_proxy::cut(ending how, side whose) {
  loop_->ask([&] { loop_->end_all(how, whose); });
}

void cutting_proxy::forget() {
  loop_->ask([&] { loop_->forget_all(); });
}

void cutting_proxy::cut_after(flow where, std::uint64_t bytes, ending how, side whose) {
  loop_->ask([&] {
    loop_->rules(where).budget = bytes;
    loop_->pending_cuts_[static_cast<std::size_t>(where)] = {.how = how, .whose = whose};
  });
}

bool cutting_proxy::cut_done() const {
  return loop_->ask([&] {
    return !loop_->rules(flow::to_server).budget && !loop_->rules(flow::to_client).budget;
  });
}

std::uint64_t cutting_proxy::bytes(flow where) const {
  return loop_->ask([&] { return loop_->rules(where).bytes; });
}

std::uint64_t cutting_proxy::connections() const {
  return loop_->ask([&] { return loop_->accepted_; });
}

std::uint64_t cutting_proxy::cuts() const {
  return loop_->ask([&] { return loop_->cuts_; });
}

std::size_t cutting_proxy::open_connections() const {
  return loop_->ask([&] { return loop_->open_connections(); });
}

}  // namespace holdfast::test
