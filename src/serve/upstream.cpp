#include "serve/upstream.hpp"

#include <holdfast/error.hpp>

#include "http/writer.hpp"
#include "serve/response_collector.hpp"

#include <array>
#include <deque>
#include <unordered_map>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve {

using net::io_status;
using net::steady;

namespace {

/// One request and its response.
class upstream_exchange final : public net::event_handler {
 public:
  upstream_exchange(upstream_state& state, std::uint64_t number, std::string text,
                    std::string_view method, steady::time_point deadline, upstream::callback done);

  /// Uses an idle connection, or opens one.
  void start();
  void on_events(std::uint32_t events) override;
  /// Ends the exchange without its callback.
  void abandon() noexcept;

 private:
  void connect();
  void use(std::unique_ptr<net::socket_stream> stream);
  void send();
  void receive();
  void finish();
  void fail(exchange_status result, std::string reason) {
    collector_.fail(result, std::move(reason));
    finish();
  }

  upstream_state& state_;
  std::uint64_t number_;
  std::string method_;
  std::string text_;
  std::size_t sent_ = 0;
  steady::time_point deadline_;
  upstream::callback done_;
  response_collector collector_;
  bool on_idle_connection_ = false;
  bool started_ = false;
  bool finished_ = false;
  std::shared_ptr<net::connector> connector_{};
  std::unique_ptr<net::socket_stream> stream_{};
  net::registration registration_{};
  net::timer timer_;
};

}  // namespace

struct upstream_state : std::enable_shared_from_this<upstream_state> {
  struct idle_connection {
    std::unique_ptr<net::socket_stream> stream{};
    steady::time_point until{};
  };

  upstream_state(net::event_loop& owner, upstream_options settings)
      : loop(owner), options(std::move(settings)), sweep(owner) {
    sweep.set_callback([this] { close_old(); });
  }

  net::event_loop& loop;
  upstream_options options;
  std::uint64_t next_number = 1;
  std::unordered_map<std::uint64_t, std::shared_ptr<upstream_exchange>> active{};
  std::deque<std::uint64_t> waiting{};  // numbers; those that were cancelled are skipped
  std::deque<idle_connection> idle{};   // the oldest first
  std::size_t in_use = 0;               // connections of exchanges
  net::timer sweep;

  std::unique_ptr<net::socket_stream> take_idle() {
    while (!idle.empty()) {
      auto candidate = std::move(idle.back());
      idle.pop_back();
      if (candidate.until > loop.now() && candidate.stream->is_idle())
        return std::move(candidate.stream);
    }
    return nullptr;
  }
  void keep(std::unique_ptr<net::socket_stream> stream) {
    idle.push_back({std::move(stream), loop.now() + options.idle_timeout});
    sweep.set(idle.front().until);
  }
  void close_old() {
    while (!idle.empty() && idle.front().until <= loop.now()) idle.pop_front();
    if (!idle.empty()) sweep.set(idle.front().until);
  }
  /// A connection is free: the next request that waits may use it.
  void start_waiting() {
    while (in_use < options.max_connections && !waiting.empty()) {
      const auto number = waiting.front();
      waiting.pop_front();
      const auto entry = active.find(number);
      if (entry == active.end()) continue;
      const auto exchange = entry->second;
      exchange->start();
    }
  }
  void cancel(std::uint64_t number) noexcept {
    const auto entry = active.find(number);
    if (entry == active.end()) return;
    const auto exchange = entry->second;
    exchange->abandon();
  }
};

namespace {

upstream_exchange::upstream_exchange(upstream_state& state, std::uint64_t number, std::string text,
                                     std::string_view method, steady::time_point deadline,
                                     upstream::callback done)
    : state_(state),
      number_(number),
      method_(method),
      text_(std::move(text)),
      deadline_(deadline),
      done_(std::move(done)),
      collector_(state.options.limits, method_),
      timer_(state.loop) {
  timer_.set_callback([this] { fail(exchange_status::late, "the deadline has passed"); });
  timer_.set(deadline_);
}

void upstream_exchange::start() {
  started_ = true;
  ++state_.in_use;
  if (auto stream = state_.take_idle()) {
    on_idle_connection_ = true;
    use(std::move(stream));
  } else {
    connect();
  }
}

void upstream_exchange::connect() {
  const auto until = std::min(deadline_, state_.loop.now() + state_.options.connect_timeout);
  connector_ = std::make_shared<net::connector>(
      state_.loop, state_.options.server, until,
      [this](std::unique_ptr<net::socket_stream> stream, const error* problem) {
        if (finished_) return;  // cancelled in this turn of the loop
        state_.loop.retire(std::exchange(connector_, nullptr));
        if (stream) use(std::move(stream));
        else
          fail(problem->code() == errc::timeout ? exchange_status::late
                                                : exchange_status::unreachable,
               problem->message());
      });
}

void upstream_exchange::use(std::unique_ptr<net::socket_stream> stream) {
  stream_ = std::move(stream);
  try {
    registration_.add(state_.loop, stream_->descriptor(), EPOLLIN, *this);
  } catch (const error& problem) {
    fail(exchange_status::unreachable, problem.message());
    return;
  }
  send();
}

void upstream_exchange::send() {
  while (sent_ < text_.size()) {
    const auto result = stream_->write(std::string_view(text_).substr(sent_));
    if (result.status == io_status::done) {
      collector_.set_sent();
      sent_ += result.bytes;
      continue;
    }
    if (result.status != io_status::closed) {
      registration_.change(EPOLLIN | EPOLLOUT);
      return;
    }
    // The server may have answered before it had the whole request.
    if (collector_.sent()) break;
    registration_.remove();
    stream_.reset();
    // It had closed the idle connection, and nothing was sent: a new one is safe.
    if (std::exchange(on_idle_connection_, false)) connect();
    else fail(exchange_status::unreachable, "the server closed the connection");
    return;
  }
  registration_.change(EPOLLIN);
}

void upstream_exchange::receive() {
  std::array<char, 16'384> buffer{};
  const auto result = stream_->read(buffer);
  if (result.status == io_status::closed) {
    collector_.end(stream_->close_reason(), result.in_order);
    finish();
  } else if (result.status == io_status::done && collector_.add({buffer.data(), result.bytes})) {
    finish();
  }
}

void upstream_exchange::on_events(std::uint32_t events) {
  if ((events & EPOLLOUT) != 0) send();
  if (!finished_ && stream_ && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) receive();
}

void upstream_exchange::abandon() noexcept {
  if (std::exchange(finished_, true)) return;
  timer_.cancel();
  registration_.remove();
  stream_.reset();
  done_ = nullptr;
  if (connector_) state_.loop.retire(std::exchange(connector_, nullptr));
  const auto self = state_.active.extract(number_);
  if (!self.empty()) state_.loop.retire(std::move(self.mapped()));
  if (!started_) return;
  --state_.in_use;
  // Later, because the caller may be about to destroy the upstream.
  state_.loop.post([weak = state_.weak_from_this()] {
    if (const auto state = weak.lock()) state->start_waiting();
  });
}

void upstream_exchange::finish() {
  if (finished_) return;
  registration_.remove();
  if (collector_.reusable() && sent_ == text_.size() && stream_) state_.keep(std::move(stream_));
  auto done = std::exchange(done_, nullptr);
  auto response = collector_.take_response();
  abandon();
  done(std::move(response));
}

}  // namespace

upstream_call& upstream_call::operator=(upstream_call&& other) noexcept {
  if (this == &other) return *this;
  cancel();
  state_ = std::move(other.state_);
  number_ = other.number_;
  return *this;
}

void upstream_call::cancel() noexcept {
  if (const auto state = state_.lock()) state->cancel(number_);
  state_.reset();
}

upstream::upstream(net::event_loop& loop, upstream_options options)
    : state_(std::make_shared<upstream_state>(loop, std::move(options))) {}

upstream::~upstream() {
  while (!state_->active.empty()) state_->cancel(state_->active.begin()->first);
  // Exchanges that were retired refer to the state until the end of the turn.
  state_->idle.clear();
  state_->sweep.cancel();
  state_->loop.retire(std::move(state_));
}

std::size_t upstream::connections() const noexcept { return state_->in_use + state_->idle.size(); }

upstream_call upstream::send(const client_request& request, steady::time_point deadline,
                             callback done) {
  std::string text;
  const bool has_content = !request.body.empty() || request.method == "POST" ||
                           request.method == "PUT" || request.method == "PATCH";
  http::append_request_head(
      text, request.method, request.target, state_->options.host, request.fields,
      {.kind = has_content ? http::content_framing::length : http::content_framing::none,
       .bytes = request.body.size()});
  text += request.body;
  const auto number = state_->next_number++;
  auto exchange = std::make_shared<upstream_exchange>(*state_, number, std::move(text),
                                                      request.method, deadline, std::move(done));
  state_->active.emplace(number, std::move(exchange));
  state_->waiting.push_back(number);
  // Later, so that the callback cannot run before the caller has its call.
  state_->loop.post([weak = std::weak_ptr(state_)] {
    if (const auto state = weak.lock()) state->start_waiting();
  });
  return {state_, number};
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
