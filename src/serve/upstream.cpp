#include "serve/upstream.hpp"

#include <holdfast/error.hpp>

#include "http/writer.hpp"
#include "serve/response_collector.hpp"

#include <array>
#include <deque>
#include <limits>
#include <unordered_map>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve {

using net::io_status;
using net::steady;

namespace {

/// For so long after a refused connection no other one is tried: requests fail with its reason.
/// While a server is down, that saves each of them a socket. See decision 0118.
constexpr std::chrono::milliseconds refusal_is_shared{10};

class upstream_exchange;

/// A connection, with the exchange that uses it, or idle. It stays registered in between: two
/// system calls less for each request, and an idle one that the server closes is gone at once.
class upstream_connection final : public net::event_handler {
 public:
  /// Throws errc::unavailable if the loop cannot watch it.
  upstream_connection(upstream_state& owner, std::unique_ptr<net::socket_stream> stream);

  void on_events(std::uint32_t events) override;
  [[nodiscard]] net::socket_stream& stream() noexcept { return *stream_; }
  void watch(std::uint32_t events) noexcept { registration_.change(events); }
  void pause() noexcept { registration_.remove(); }
  /// Throws as the constructor.
  void resume();

  /// Null: it is idle, until `idle_until`.
  upstream_exchange* user = nullptr;
  steady::time_point idle_until{};

 private:
  upstream_state& owner_;
  std::unique_ptr<net::socket_stream> stream_;
  net::registration registration_{};
};

/// One request and its response.
class upstream_exchange final {
 public:
  upstream_exchange(upstream_state& state, std::uint64_t number, std::string text,
                    std::string_view method, const http::limits& limits,
                    steady::time_point deadline, upstream::callback done);

  /// Uses an idle connection, or opens one.
  void start();
  void on_events(std::uint32_t events);
  /// Ends the exchange without its callback.
  void abandon() noexcept;
  /// Before `start`.
  void set_receiver(response_receiver& receiver) noexcept { collector_.set_receiver(&receiver); }
  void pause() noexcept {
    paused_ = true;
    if (connection_) connection_->pause();
  }
  void resume();
  void set_deadline(steady::time_point deadline) {
    deadline_ = deadline;
    timer_.cancel();
    timer_.set(deadline_);
  }

 private:
  void connect();
  void use(std::unique_ptr<net::socket_stream> stream);
  void use(std::unique_ptr<upstream_connection> connection);
  void send();
  void receive();
  [[nodiscard]] bool is_repeatable() const noexcept {
    return method_ == "GET" || method_ == "HEAD";
  }
  [[nodiscard]] bool may_repeat() const noexcept;
  void repeat();
  void keep_connection();
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
  bool paused_ = false;
  bool received_ = false;
  std::shared_ptr<net::connector> connector_{};
  std::unique_ptr<upstream_connection> connection_{};
  net::timer timer_;
};

}  // namespace

struct upstream_state : std::enable_shared_from_this<upstream_state> {
  upstream_state(net::event_loop& owner, upstream_options settings)
      : loop(owner), options(std::move(settings)), sweep(owner) {
    sweep.set_callback([this] { close_old(); });
  }

  net::event_loop& loop;
  upstream_options options;
  std::uint64_t next_number = 1;
  std::unordered_map<std::uint64_t, std::shared_ptr<upstream_exchange>> active{};
  std::deque<std::uint64_t> waiting{};  // numbers; those that were cancelled are skipped
  std::deque<std::unique_ptr<upstream_connection>> idle{};  // the oldest first
  std::size_t in_use = 0;                                   // connections of exchanges
  steady::time_point refused_until{};
  std::string refusal{};
  net::timer sweep;

  /// `check`: asks the system whether the server has closed it. Without that, the closing may not
  /// have been seen yet.
  std::unique_ptr<upstream_connection> take_idle(bool check) {
    while (!idle.empty()) {
      auto candidate = std::move(idle.back());
      idle.pop_back();
      if (candidate->idle_until > loop.now() && (!check || candidate->stream().is_idle()))
        return candidate;
    }
    return nullptr;
  }
  void keep(std::unique_ptr<upstream_connection> connection) {
    connection->user = nullptr;
    connection->idle_until = loop.now() + options.idle_timeout;
    idle.push_back(std::move(connection));
    sweep.set(idle.front()->idle_until);
  }
  /// Destroys an idle connection.
  void close_idle(const upstream_connection& closed) {
    std::erase_if(idle, [&](const auto& connection) { return connection.get() == &closed; });
  }
  void note_refusal(std::string reason) {
    refused_until = loop.now() + refusal_is_shared;
    refusal = std::move(reason);
  }
  void close_old() {
    while (!idle.empty() && idle.front()->idle_until <= loop.now()) idle.pop_front();
    if (!idle.empty()) sweep.set(idle.front()->idle_until);
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
  [[nodiscard]] upstream_exchange* find(std::uint64_t number) const noexcept {
    const auto entry = active.find(number);
    return entry == active.end() ? nullptr : entry->second.get();
  }
  void cancel(std::uint64_t number) noexcept {
    const auto entry = active.find(number);
    if (entry == active.end()) return;
    const auto exchange = entry->second;
    exchange->abandon();
  }
};

namespace {

upstream_connection::upstream_connection(upstream_state& owner,
                                         std::unique_ptr<net::socket_stream> stream)
    : owner_(owner), stream_(std::move(stream)) {
  resume();
}

void upstream_connection::resume() {
  registration_.add(owner_.loop, stream_->descriptor(), EPOLLIN, *this);
}

/// May destroy this object.
void upstream_connection::on_events(std::uint32_t events) {
  if (user != nullptr) user->on_events(events);
  else if (!stream_->is_idle()) owner_.close_idle(*this);
}

upstream_exchange::upstream_exchange(upstream_state& state, std::uint64_t number, std::string text,
                                     std::string_view method, const http::limits& limits,
                                     steady::time_point deadline, upstream::callback done)
    : state_(state),
      number_(number),
      method_(method),
      text_(std::move(text)),
      deadline_(deadline),
      done_(std::move(done)),
      collector_(limits, method_),
      timer_(state.loop) {
  timer_.set_callback([this] { fail(exchange_status::late, "the deadline has passed"); });
  timer_.set(deadline_);
}

void upstream_exchange::start() {
  started_ = true;
  ++state_.in_use;
  if (auto connection = state_.take_idle(!is_repeatable())) {
    on_idle_connection_ = true;
    use(std::move(connection));
  } else {
    connect();
  }
}

void upstream_exchange::connect() {
  if (state_.loop.now() < state_.refused_until) {
    fail(exchange_status::unreachable, state_.refusal);
    return;
  }
  const auto until = std::min(deadline_, state_.loop.now() + state_.options.connect_timeout);
  connector_ = std::make_shared<net::connector>(
      state_.loop, state_.options.server, until,
      [this](std::unique_ptr<net::socket_stream> stream, const error* problem) {
        if (finished_) return;  // cancelled in this turn of the loop
        state_.loop.retire(std::exchange(connector_, nullptr));
        if (stream) {
          use(std::move(stream));
          return;
        }
        const bool late = problem->code() == errc::timeout;
        if (!late) state_.note_refusal(problem->message());
        fail(late ? exchange_status::late : exchange_status::unreachable, problem->message());
      });
}

void upstream_exchange::use(std::unique_ptr<net::socket_stream> stream) {
  try {
    use(std::make_unique<upstream_connection>(state_, std::move(stream)));
  } catch (const error& problem) {
    fail(exchange_status::unreachable, problem.message());
  }
}

void upstream_exchange::use(std::unique_ptr<upstream_connection> connection) {
  connection_ = std::move(connection);
  connection_->user = this;
  send();
}

void upstream_exchange::send() {
  while (sent_ < text_.size()) {
    const auto result = connection_->stream().write(std::string_view(text_).substr(sent_));
    if (result.status == io_status::done) {
      collector_.set_sent();
      sent_ += result.bytes;
      continue;
    }
    if (result.status != io_status::closed) {
      connection_->watch(EPOLLIN | EPOLLOUT);
      return;
    }
    // The server may have answered before it had the whole request.
    if (collector_.sent()) break;
    connection_.reset();
    // It had closed the idle connection, and nothing was sent: a new one is safe.
    if (std::exchange(on_idle_connection_, false)) connect();
    else fail(exchange_status::unreachable, "the server closed the connection");
    return;
  }
  connection_->watch(EPOLLIN);
}

void upstream_exchange::receive() {
  std::array<char, 16'384> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init): 16 KiB
  auto& stream = connection_->stream();
  // TLS may have more bytes that make no event.
  do {
    const auto result = stream.read(buffer);
    if (result.status == io_status::closed && may_repeat()) {
      repeat();
      return;
    }
    if (result.status == io_status::closed) {
      collector_.end(stream.close_reason(), result.in_order);
      finish();
      return;
    }
    if (result.status != io_status::done) return;
    received_ = true;
    const bool over = collector_.add({buffer.data(), result.bytes});
    if (finished_) return;  // the receiver has cancelled the call
    if (over) {
      finish();
      return;
    }
  } while (stream.has_tls() && !paused_);
}

/// The server may close a connection because it was idle, while a request is on its way (RFC 9112,
/// section 9.3.1). Such a request did not fail.
bool upstream_exchange::may_repeat() const noexcept {
  return on_idle_connection_ && !received_ && is_repeatable();
}

void upstream_exchange::repeat() {
  on_idle_connection_ = false;
  connection_.reset();
  sent_ = 0;
  connect();
}

void upstream_exchange::resume() {
  if (!std::exchange(paused_, false) || finished_ || !connection_) return;
  try {
    connection_->resume();
  } catch (const error& problem) {
    fail(exchange_status::cut, problem.message());
  }
}

void upstream_exchange::on_events(std::uint32_t events) {
  if ((events & EPOLLOUT) != 0) send();
  if (!finished_ && !paused_ && connection_ && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0)
    receive();
}

void upstream_exchange::abandon() noexcept {
  if (std::exchange(finished_, true)) return;
  timer_.cancel();
  connection_.reset();
  done_ = nullptr;
  collector_.set_receiver(nullptr);
  if (connector_) state_.loop.retire(std::exchange(connector_, nullptr));
  const auto self = state_.active.extract(number_);
  if (!self.empty()) state_.loop.retire(std::move(self.mapped()));
  if (!started_) return;
  --state_.in_use;
  if (state_.waiting.empty()) return;
  // Later, because the caller may be about to destroy the upstream.
  state_.loop.post([weak = state_.weak_from_this()] {
    if (const auto state = weak.lock()) state->start_waiting();
  });
}

void upstream_exchange::keep_connection() {
  try {
    if (paused_) connection_->resume();
    state_.keep(std::move(connection_));
  } catch (const error&) {
    connection_.reset();  // the loop cannot watch it
  }
}

void upstream_exchange::finish() {
  if (finished_) return;
  if (collector_.reusable() && sent_ == text_.size() && connection_) keep_connection();
  auto done = std::exchange(done_, nullptr);
  auto response = collector_.take_response();
  abandon();
  if (done) done(std::move(response));
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

void upstream_call::pause() noexcept {
  const auto state = state_.lock();
  if (auto* const exchange = state ? state->find(number_) : nullptr) exchange->pause();
}

void upstream_call::resume() {
  const auto state = state_.lock();
  if (auto* const exchange = state ? state->find(number_) : nullptr) exchange->resume();
}

void upstream_call::set_deadline(steady::time_point deadline) {
  const auto state = state_.lock();
  if (auto* const exchange = state ? state->find(number_) : nullptr)
    exchange->set_deadline(deadline);
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

namespace {

/// The head with the content, as it is sent.
std::string text_of(const client_request& request, const std::string& host) {
  std::string text;
  const bool has_content = !request.body.empty() || request.method == "POST" ||
                           request.method == "PUT" || request.method == "PATCH";
  http::append_request_head(
      text, request.method, request.target, host, request.fields,
      {.kind = has_content ? http::content_framing::length : http::content_framing::none,
       .bytes = request.body.size()});
  text += request.body;
  return text;
}

/// Queues an exchange. It starts later, so that nothing is called before the caller has its call.
upstream_call add_exchange(const std::shared_ptr<upstream_state>& state,
                           std::shared_ptr<upstream_exchange> exchange, std::uint64_t number) {
  state->active.emplace(number, std::move(exchange));
  state->waiting.push_back(number);
  state->loop.post([weak = std::weak_ptr(state)] {
    if (const auto owner = weak.lock()) owner->start_waiting();
  });
  return {state, number};
}

}  // namespace

upstream_call upstream::send(const client_request& request, steady::time_point deadline,
                             callback done) {
  auto text = text_of(request, state_->options.host);
  const auto number = state_->next_number++;
  return add_exchange(
      state_,
      std::make_shared<upstream_exchange>(*state_, number, std::move(text), request.method,
                                          state_->options.limits, deadline, std::move(done)),
      number);
}

upstream_call upstream::stream(const client_request& request, steady::time_point deadline,
                               response_receiver& receiver) {
  auto text =
      text_of(request, request.host.empty() ? state_->options.host : std::string(request.host));
  const auto number = state_->next_number++;
  auto limits = state_->options.limits;
  limits.body = std::numeric_limits<std::uint64_t>::max();
  auto exchange = std::make_shared<upstream_exchange>(
      *state_, number, std::move(text), request.method, limits, deadline,
      [&receiver](client_response end) { receiver.on_end(std::move(end)); });
  exchange->set_receiver(receiver);
  return add_exchange(state_, std::move(exchange), number);
}

void upstream::set_addresses(std::vector<net::socket_address> addresses) {
  state_->refused_until = {};
  state_->options.server.addresses = std::move(addresses);
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
