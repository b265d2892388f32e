#include "serve/server_connection.hpp"

#include "http/writer.hpp"
#include "net/tls.hpp"
#include "serve/loop_worker.hpp"

#include <algorithm>
#include <exception>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

using net::steady;
using std::chrono::milliseconds;

constexpr milliseconds drain_time{2'000};
/// At the end of the server: for the request of a client that has just connected.
constexpr milliseconds time_for_first_request{500};
/// More output than this is not produced before some of it was sent.
constexpr std::size_t max_output = std::size_t{1} << 20U;
/// Buffers that are larger than this are freed when they are empty.
constexpr std::size_t kept_capacity = std::size_t{4} << 10U;

/// 1 KiB per second is the slowest transfer.
milliseconds time_for(std::size_t bytes) { return milliseconds(bytes); }

bool has_safe_method(std::string_view method) noexcept {
  return method == "GET" || method == "HEAD" || method == "OPTIONS" || method == "TRACE";
}

void release_if_large(std::string& text) {
  text.clear();
  if (text.capacity() > kept_capacity) std::string().swap(text);
}

}  // namespace

server_connection::server_connection(loop_worker& worker, std::uint64_t id,
                                     std::unique_ptr<net::socket_stream> stream, std::string peer)
    : worker_(worker),
      id_(id),
      peer_(std::move(peer)),
      stream_(std::move(stream)),
      timer_(worker.loop()),
      idle_since_(worker.loop().now()) {
  if (!stream_->is_handshaking()) state_ = state::reading;
  timer_.set_callback([this] { on_deadline(); });
}

server_connection::~server_connection() { release_buffers(); }

const connection_buffers& server_connection::buffers() const noexcept {
  return buffers_ ? *buffers_ : worker_.empty_buffers();
}

connection_buffers& server_connection::own_buffers() {
  if (!buffers_) buffers_ = worker_.take_buffers();
  return *buffers_;
}

void server_connection::release_buffers() noexcept {
  if (!buffers_) return;
  auto& own = *buffers_;
  own.reader.reset();
  release_if_large(own.input);
  release_if_large(own.head_text);
  release_if_large(own.content);
  release_if_large(own.output);
  own.output_sent = 0;
  own.unsent.clear();
  own.pending.clear();
  worker_.keep_buffers(std::move(buffers_));
}

void server_connection::start() {
  registration_.add(worker_.loop(), stream_->descriptor(), EPOLLIN, *this);
  // Also for a client that connects and sends nothing.
  head_deadline_ = worker_.loop().now() + worker_.shared().options.head_timeout;
  timer_.set(head_deadline_);
}

bool server_connection::is_idle() const noexcept {
  return state_ == state::reading && buffers().pending.empty() && buffers().output.empty() &&
         !head_started_ && !in_content_;
}

void server_connection::close() {
  if (state_ == state::closed) return;
  state_ = state::closed;
  for (const auto& request : buffers().pending) {
    if (request.counted) --worker_.shared().waiting;
    if (request.stream) request.stream->mark_closed();
    if (request.head_sent) --worker_.shared().streams;
  }
  report_gone();
  if (buffers_) {
    for (const auto& gone : std::exchange(buffers_->unsent, {})) gone();
    buffers_->pending.clear();
  }
  timer_.cancel();
  registration_.remove();
  // The client must not take a part of an answer for all of it.
  if (!buffers().output.empty()) stream_->reset_on_close();
  worker_.remove(*this);
}

void server_connection::report_gone() {
  if (!buffers_) return;
  // They may answer, which changes the pending requests.
  std::vector<std::function<void()>> watching;
  for (auto& request : buffers_->pending) {
    if (request.gone) watching.push_back(std::exchange(request.gone, nullptr));
  }
  for (const auto& gone : watching) gone();
}

bool server_connection::is_watched() const noexcept {
  return std::ranges::any_of(buffers().pending,
                             [](const pending_request& request) { return bool(request.gone); });
}

void server_connection::watch_client(std::uint64_t number, std::function<void()> gone) {
  const auto first = next_number_ - buffers().pending.size();
  // Answered already.
  if (state_ != state::closed && (number < first || number >= next_number_)) return;
  if (state_ == state::closed || input_ended_ || half_closed_) {
    gone();
    return;
  }
  buffers_->pending[static_cast<std::size_t>(number - first)].gone = std::move(gone);
  if (!processing_) settle();
}

void server_connection::finish() {
  finishing_ = true;
  if (state_ == state::reading && !is_unanswered()) {
    // What has arrived is answered. Afterwards the connection drains.
    receive();
    if (state_ == state::reading || state_ == state::closing) settle();
    if (state_ == state::closed || state_ == state::draining) return;
  }
  const bool is_fresh = next_number_ == 0 && buffers().pending.empty() && !half_closed_;
  if (is_fresh && !is_unanswered() && (state_ == state::reading || state_ == state::handshake)) {
    head_deadline_ = std::min(head_deadline_, worker_.loop().now() + time_for_first_request);
    timer_.set(deadline());
    return;
  }
  // A request that has begun is still read; its answer says that it is the last.
  if (!is_unanswered()) {
    close();
    return;
  }
  if (!is_streaming()) return;
  buffers_->pending.back().close = true;
  if (state_ == state::reading) state_ = state::closing;
  settle();
}

void server_connection::on_events(std::uint32_t events) {
  if ((events & EPOLLERR) != 0 || ((events & EPOLLHUP) != 0 && (events & EPOLLIN) == 0)) {
    close();
    return;
  }
  if ((events & EPOLLRDHUP) != 0 && is_streaming()) {
    close();
    return;
  }
  if (state_ == state::handshake) {
    try {
      const auto events_to_await = stream_->handshake();
      if (events_to_await != 0) {
        registration_.change(events_to_await);
        return;
      }
      certificate_ = stream_->client_certificate();
    } catch (const std::exception&) {
      close();
      return;
    }
    state_ = state::reading;
    registration_.change(EPOLLIN);
    return;
  }
  if ((events & EPOLLRDHUP) != 0 && !std::exchange(half_closed_, true)) report_gone();
  if (state_ == state::closed) return;
  if ((events & EPOLLIN) != 0) receive();
  if (state_ != state::closed) settle();
}

void server_connection::receive() {
  const auto buffer = worker_.scratch();
  const auto result = stream_->read(buffer);
  if (result.status == net::io_status::closed) {
    input_ended_ = true;
    if (state_ == state::draining) close();
    else state_ = state::closing;
    report_gone();
    return;
  }
  if (result.status == net::io_status::done && state_ == state::reading)
    take_bytes({buffer.data(), result.bytes});
}

/// Processes bytes where they were received, and keeps only what is incomplete.
void server_connection::take_bytes(std::string_view bytes) {
  auto& own = own_buffers();
  if (own.input.empty()) {
    const auto consumed = process(bytes);
    own.input.assign(bytes.substr(consumed));
    return;
  }
  own.input.append(bytes);
  own.input.erase(0, process(own.input));
}

std::size_t server_connection::process(std::string_view bytes) {
  auto& own = *buffers_;
  processing_ = true;
  held_ = false;
  std::size_t offset = 0;
  const auto& options = worker_.shared().options;
  while (state_ == state::reading && offset < bytes.size()) {
    if (!in_content_) {
      if (own.pending.size() >= options.max_pipelined || own.output.size() >= max_output) {
        head_started_ = false;  // it waits for the server, so its time limit does not run
        break;
      }
      const auto status = own.reader.read_head(bytes.substr(offset));
      if (status == http::read_status::failed) {
        refuse(http::status_for(own.reader.problem()), http::describe(own.reader.problem()));
        break;
      }
      if (status == http::read_status::incomplete) {
        if (!std::exchange(head_started_, true))
          head_deadline_ = worker_.loop().now() + options.head_timeout;
        break;
      }
      if (must_wait()) {
        // The head is complete and is read again later. Its time limit does not run until then.
        head_started_ = false;
        own.reader.reset();
        break;
      }
      offset += own.reader.head_size();
      if (!begin_request()) break;
    }
    if (!read_content(bytes, offset)) break;
  }
  processing_ = false;
  // What follows the last request is not looked at.
  return state_ == state::reading ? offset : bytes.size();
}

/// Only safe requests run at the same time: events that a client publishes one after the other keep
/// their order (RFC 9112, 9.3.2).
bool server_connection::must_wait() noexcept {
  const auto& own = *buffers_;
  held_ = !own.pending.empty() &&
          !(own.pending.back().safe && has_safe_method(own.reader.head().method));
  return held_;
}

bool server_connection::begin_request() {
  auto& own = *buffers_;
  head_started_ = false;
  in_content_ = true;
  own.content_deadline = worker_.loop().now() + worker_.shared().options.transfer_timeout;
  if (const auto& limit = worker_.shared().options.max_body;
      limit && own.reader.head().content != http::framing::none)
    own.reader.body().set_limit(limit(own.reader.head().method, own.reader.head().target));
  // Refuses content that is announced to be too large.
  if (own.reader.body().read({}).status == http::read_status::failed) {
    refuse(http::status_for(own.reader.problem()), http::describe(own.reader.problem()));
    return false;
  }
  continue_due_ = own.reader.head().expects_continue;
  return true;
}

/// Returns false if processing must stop: the content is incomplete, or the request was refused.
bool server_connection::read_content(std::string_view bytes, std::size_t& offset) {
  auto& own = *buffers_;
  const std::size_t head_end = offset;
  for (;;) {
    const auto piece = own.reader.body().read(bytes.substr(offset));
    offset += piece.consumed;
    own.content.append(piece.content);
    if (piece.consumed > 0) continue_due_ = false;
    if (piece.status == http::read_status::failed) {
      refuse(http::status_for(own.reader.problem()), http::describe(own.reader.problem()));
      return false;
    }
    if (piece.status == http::read_status::complete) {
      dispatch();
      return state_ == state::reading;
    }
    if (offset < bytes.size()) continue;
    if (own.head_text.empty()) {
      own.head_text.assign(bytes.substr(head_end - own.reader.head_size(), own.reader.head_size()));
      own.reader.rebind(own.head_text);
    }
    return false;
  }
}

void server_connection::dispatch() {
  auto& own = *buffers_;
  auto& shared = worker_.shared();
  const auto& head = own.reader.head();
  ++shared.requests;
  const bool close_after = !head.keep_alive || finishing_ || shared.draining ||
                           next_number_ + 1 >= shared.options.max_requests_per_connection;
  const auto target =
      http::target::parse(head.form == http::target_form::asterisk ? "/" : head.target);
  in_content_ = false;
  continue_due_ = false;
  if (!target || head.form == http::target_form::authority) {
    if (target || head.form != http::target_form::authority)
      refuse(400, "the path has a character or an encoding that is not allowed");
    else refuse(501, "CONNECT is not supported");
    return;
  }
  const auto number = next_number_++;
  own.pending.push_back({.head_only = head.method == "HEAD",
                         .safe = has_safe_method(head.method),
                         .close = close_after,
                         .old_version = head.minor_version == 0});
  if (close_after) state_ = state::closing;
  if (shared.waiting >= shared.options.max_waiting) {
    ++shared.overloaded;
    auto busy = problem_response(503, "the server is busy; repeat the request later");
    busy.fields.add("Retry-After", "1");
    answer(number, std::move(busy));
  } else {
    ++shared.waiting;
    own.pending.back().counted = true;
    try {
      shared.handle(server_request{.method = head.method,
                                   .target = *target,
                                   .host = head.host,
                                   .fields = head.fields,
                                   .body = own.content,
                                   .peer = peer_,
                                   .absolute_target = head.form == http::target_form::absolute,
                                   .secure = stream_->has_tls(),
                                   .certificate = certificate_.get(),
                                   .context = worker_.context()},
                    responder(worker_.shared_from_this(), id_, number));
    } catch (const std::exception& failure) {
      // The responder has answered 500.
      if (shared.options.on_failure) shared.options.on_failure(failure.what());
    } catch (...) {
      if (shared.options.on_failure) shared.options.on_failure("the handler threw");
    }
  }
  own.reader.reset();
  release_if_large(own.content);
  release_if_large(own.head_text);
}

/// Answers in place of the handler, and reads nothing more.
void server_connection::refuse(int status, std::string_view detail) {
  ++worker_.shared().refused;
  const auto number = next_number_++;
  own_buffers().pending.push_back({.close = true});
  state_ = state::closing;
  head_started_ = in_content_ = continue_due_ = false;
  answer(number, problem_response(status, detail));
}

void server_connection::answer(std::uint64_t number, server_response response) {
  const auto first = next_number_ - buffers().pending.size();
  if (state_ == state::closed || number < first || number >= next_number_) return;
  auto& own = *buffers_;
  auto& request = own.pending[static_cast<std::size_t>(number - first)];
  if (request.response) return;
  if (std::exchange(request.counted, false)) --worker_.shared().waiting;
  if (number == first && own.pending.size() == 1) {
    append_answer(request, response);
    own.pending.clear();
  } else {
    request.response = std::make_unique<server_response>(std::move(response));
    send_due_answers();
  }
  if (!processing_) settle();
}

void server_connection::begin_stream(std::uint64_t number, server_response head,
                                     std::shared_ptr<stream_queue> queue) {
  const auto first = next_number_ - buffers().pending.size();
  if (state_ == state::closed || number < first || number >= next_number_) {
    queue->mark_closed();
    return;
  }
  auto& request = buffers_->pending[static_cast<std::size_t>(number - first)];
  const bool raw = queue->options.content_length || queue->options.until_close;
  if (request.old_version && !raw) {  // has no chunked coding
    queue->mark_closed();
    answer(number, problem_response(505, "this answer is a stream; use HTTP/1.1"));
    return;
  }
  if (std::exchange(request.counted, false)) --worker_.shared().waiting;
  request.response = std::make_unique<server_response>(std::move(head));
  request.stream = std::move(queue);
  if (number == first) send_due_answers();
  if (!processing_ && state_ != state::closed) settle();
}

void server_connection::continue_stream() {
  if (is_streaming() && !processing_) settle();
}

void server_connection::send_due_answers() {
  auto& own = *buffers_;
  std::size_t sent = 0;
  while (sent < own.pending.size() && own.pending[sent].response) {
    auto& request = own.pending[sent];
    if (!request.stream) {
      append_answer(request, *request.response);
    } else {
      // Earlier requests must leave the list first: close() looks at the stream of the first.
      own.pending.erase(own.pending.begin(),
                        own.pending.begin() + static_cast<std::ptrdiff_t>(sent));
      sent = 0;
      if (!append_stream(own.pending.front())) return;
    }
    ++sent;
  }
  own.pending.erase(own.pending.begin(), own.pending.begin() + static_cast<std::ptrdiff_t>(sent));
}

void server_connection::append_answer(pending_request& request, const server_response& response) {
  auto& own = *buffers_;
  if (request.gone) own.unsent.push_back(std::move(request.gone));
  const auto before = own.output.size();
  if (response.close || finishing_) {
    // The requests that were read are answered; the last of them says that there are no more.
    own.pending.back().close = true;
    if (state_ == state::reading) state_ = state::closing;
  }
  const bool last = request.close;
  http::append_status_line(own.output, response.status);
  append_fields(response);
  if (last) own.output += "Connection: close\r\n";
  else if (request.old_version) own.output += "Connection: keep-alive\r\n";
  const bool no_content = response.status == 204 || response.status == 304;
  const bool no_length = no_content || (request.head_only && response.unknown_length);
  const auto length = request.head_only ? response.head_length : std::nullopt;
  http::append_end_of_head(
      own.output, {.kind = no_length ? http::content_framing::none : http::content_framing::length,
                   .bytes = length.value_or(response.body.size())});
  if (!no_content && !request.head_only) own.output += response.body;
  extend_output_deadline(before);
  idle_since_ = worker_.loop().now();
  if (last && state_ == state::reading) state_ = state::closing;
}

void server_connection::append_fields(const server_response& response) {
  if (!response.has_date) buffers_->output.append(worker_.date_line());
  buffers_->output.append(response.fields.text());
}

void server_connection::extend_output_deadline(std::size_t before) {
  auto& own = *buffers_;
  if (before == 0)
    own.output_deadline = worker_.loop().now() + worker_.shared().options.transfer_timeout;
  own.output_deadline += time_for(own.output.size() - before);
}

void server_connection::append_stream_head(pending_request& request) {
  auto& own = *buffers_;
  const auto before = own.output.size();
  const auto& response = *request.response;
  if (response.close || finishing_) {
    own.pending.back().close = true;
    if (state_ == state::reading) state_ = state::closing;
  }
  if (request.close && state_ == state::reading) state_ = state::closing;
  const auto& options = request.stream->options;
  request.raw_content = options.content_length.has_value() || request.old_version;
  if (request.raw_content && !options.content_length) {
    own.pending.back().close = true;
    request.close = true;
    state_ = state::closing;
  }
  http::append_status_line(own.output, response.status);
  append_fields(response);
  if (request.close) own.output += "Connection: close\r\n";
  else if (request.old_version) own.output += "Connection: keep-alive\r\n";
  if (!request.raw_content)
    http::append_end_of_head(own.output, {.kind = http::content_framing::chunked});
  else
    http::append_end_of_head(own.output,
                             {.kind = options.content_length ? http::content_framing::length
                                                             : http::content_framing::none,
                              .bytes = options.content_length.value_or(0)});
  if (!request.head_only) append_piece(request, response.body);
  extend_output_deadline(before);
  request.head_sent = true;
  ++worker_.shared().streams;
}

void server_connection::append_piece(const pending_request& request, std::string_view piece) {
  if (request.raw_content) buffers_->output.append(piece);
  else http::append_chunk(buffers_->output, piece);
}

bool server_connection::append_stream(pending_request& request) {
  auto& own = *buffers_;
  if (!request.head_sent) append_stream_head(request);
  auto& queue = *request.stream;
  if (finishing_ && !queue.options.completes) queue.end_by_server();
  own.heartbeat_due = worker_.loop().now() + queue.options.heartbeat_interval;
  const auto before = own.output.size();
  const auto content = queue.take_content();
  if (content.status == stream_queue::status::cut && !request.head_only) {
    if (queue.was_too_slow()) ++worker_.shared().slow_streams;
    stream_->reset_on_close();
    close();
    return false;
  }
  if (!request.head_only) append_piece(request, content.text);
  if (content.status == stream_queue::status::open && !request.head_only) {
    extend_output_deadline(before);
    return false;
  }
  if (!request.head_only && !request.raw_content) http::append_last_chunk(own.output);
  extend_output_deadline(before);
  queue.mark_closed();
  --worker_.shared().streams;
  request.head_sent = false;
  idle_since_ = worker_.loop().now();
  return true;
}

void server_connection::flush() {
  auto& own = *buffers_;
  while (own.output_sent < own.output.size()) {
    const auto result = stream_->write(std::string_view(own.output).substr(own.output_sent));
    if (result.status == net::io_status::closed) {
      close();
      return;
    }
    if (result.status != net::io_status::done) return;
    own.output_sent += result.bytes;
  }
  release_if_large(own.output);
  own.output_sent = 0;
  own.unsent.clear();
}

bool server_connection::wants_input() const noexcept {
  if (state_ == state::draining) return true;
  return state_ == state::reading && !input_ended_ && !is_streaming() &&
         !(held_ && !buffers().pending.empty()) && buffers().output.size() < max_output &&
         buffers().pending.size() < worker_.shared().options.max_pipelined;
}

/// Sends what is due, goes on with requests that had to wait, and decides what to wait for.
void server_connection::settle() {
  if (buffers_) advance();
  if (state_ == state::closed) return;
  const bool has_nothing = buffers().pending.empty() && buffers().output.empty();
  if (state_ == state::closing && has_nothing) {
    if (input_ended_) {
      close();
      return;
    }
    stream_->shut_down_writing();
    state_ = state::draining;
    drain_deadline_ = worker_.loop().now() + drain_time;
    release_buffers();
  } else if (is_idle() && buffers().input.empty()) {
    release_buffers();
  }
  // After the last request, and during a stream, nothing is read, but the end of the client is to
  // be seen.
  const bool wants_end =
      is_streaming() || ((state_ == state::closing || held_) && !half_closed_ && is_watched());
  const bool has_output = !buffers().output.empty() ||
                          (is_streaming() && buffers().pending.front().stream->has_content());
  registration_.change((wants_input() ? std::uint32_t{EPOLLIN} : 0U) |
                       (wants_end ? std::uint32_t{EPOLLRDHUP} : 0U) |
                       (has_output ? std::uint32_t{EPOLLOUT} : 0U));
  timer_.set(deadline());
}

/// The part of `settle` for a connection that has requests. May close it.
void server_connection::advance() {
  auto& own = *buffers_;
  for (;;) {
    if (state_ == state::reading && continue_due_ && in_content_ && own.pending.empty()) {
      if (own.output.empty())
        own.output_deadline = worker_.loop().now() + worker_.shared().options.transfer_timeout;
      own.output += "HTTP/1.1 100 Continue\r\n\r\n";
      continue_due_ = false;
    }
    if (is_streaming() && (own.output.empty() || own.pending.front().stream->is_cut()))
      send_due_answers();
    if (state_ != state::closed && !own.output.empty()) flush();
    if (state_ == state::closed) return;
    // After the answers above, a request in the input may begin. An incomplete one needs more.
    if (state_ != state::reading || own.input.empty() || in_content_ || head_started_ ||
        !wants_input())
      return;
    const auto before = own.input.size();
    own.input.erase(0, process(own.input));
    if (own.input.size() == before && own.pending.empty() && own.output.empty()) return;
  }
}

steady::time_point server_connection::deadline() const noexcept {
  if (state_ == state::draining) return drain_deadline_;
  auto earliest = steady::time_point::max();
  if (!buffers().output.empty()) earliest = buffers().output_deadline;
  else if (is_streaming() && !buffers().pending.front().stream->options.heartbeat.empty())
    earliest = buffers().heartbeat_due;
  if (is_streaming()) return earliest;  // a request that follows is not read
  if (in_content_)
    earliest = std::min(earliest, buffers().content_deadline + time_for(buffers().content.size()));
  else if (head_started_) earliest = std::min(earliest, head_deadline_);
  else if (next_number_ == 0 && buffers().pending.empty()) earliest = head_deadline_;
  if (earliest == steady::time_point::max() && is_idle())
    earliest = idle_since_ + worker_.shared().options.idle_timeout;
  return earliest;
}

void server_connection::on_deadline() {
  if (is_streaming() && buffers().output.empty()) {
    auto& own = *buffers_;
    const auto& options = own.pending.front().stream->options;
    if (worker_.loop().now() >= own.heartbeat_due) {
      http::append_chunk(own.output, options.heartbeat);
      extend_output_deadline(0);
      own.heartbeat_due = worker_.loop().now() + options.heartbeat_interval;
    }
    settle();
    return;
  }
  const bool was_idle = is_idle();
  const bool unfinished_request = head_started_ || in_content_;
  if (!was_idle && state_ != state::draining) ++worker_.shared().late;
  const bool output_late =
      !buffers().output.empty() && worker_.loop().now() >= buffers().output_deadline;
  if (state_ == state::reading && unfinished_request && !output_late) {
    refuse(408, "the request did not arrive in time");
    return;
  }
  close();
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
