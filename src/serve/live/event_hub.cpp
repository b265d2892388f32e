#include "serve/live/event_hub.hpp"

#include <holdfast/uuid.hpp>

#include "base/backoff.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

using std::chrono::milliseconds;

/// Clients return at different times, so that they do not come all at once.
constexpr milliseconds shortest_retry{500};
constexpr milliseconds longest_retry{5'000};

std::string bye_event() {
  const auto retry = random_duration(shortest_retry, longest_retry, thread_random());
  const auto text = std::to_string(retry.count());
  return "event: bye\nretry: " + text + "\ndata: {\"retryMs\":" + text + "}\n\n";
}

/// A line break in JSON is white space, but would end the line of the event.
void replace_line_breaks(std::string& json) {
  std::ranges::replace_if(json, [](char c) { return c == '\n' || c == '\r'; }, ' ');
}

}  // namespace

event_hub::event_hub(event_hub_options options)
    : options_(options), start_(uuid::v4().to_string().substr(0, 8)) {}

void event_hub::publish(std::string_view kind, std::string json) noexcept try {
  replace_line_breaks(json);
  const std::scoped_lock lock(mutex_);
  if (ended_) return;
  kept_event event{
      .number = last_number_ + 1, .for_admins = kind == "audit", .is_state = kind == "state"};
  event.text.append("id: ").append(start_).append(1, '-').append(std::to_string(event.number));
  event.text.append("\nevent: ").append(kind).append("\ndata: ").append(json).append("\n\n");
  if (event.text.size() > options_.max_queued / 2) {
    ++counts_.too_large;
    return;
  }
  last_number_ = event.number;
  ++counts_.published;
  for (auto& client : subscribers_) {
    if (!event.for_admins || client.admin) (void)client.stream.write(event.text);
  }
  remove_closed();
  remember(std::move(event));
} catch (...) {  // NOLINT(bugprone-empty-catch)
  // No memory: the event is lost. The next state is complete.
}

void event_hub::remember(kept_event event) {
  if (event.is_state) {
    for (auto& earlier : events_) {
      if (!earlier.is_state || earlier.text.empty()) continue;
      event_bytes_ -= earlier.text.size();
      std::string().swap(earlier.text);
    }
    last_state_ = event.text;
  }
  event_bytes_ += event.text.size();
  events_.push_back(std::move(event));
  while (events_.size() > options_.kept_events || event_bytes_ > options_.kept_bytes) {
    event_bytes_ -= events_.front().text.size();
    events_.pop_front();
  }
}

void event_hub::remove_closed() {
  std::erase_if(subscribers_, [](const subscriber& client) { return !client.stream.is_open(); });
}

std::optional<std::uint64_t> event_hub::number_of(std::string_view id) const {
  if (id.size() <= start_.size() + 1 || !id.starts_with(start_) || id[start_.size()] != '-')
    return std::nullopt;
  id.remove_prefix(start_.size() + 1);
  std::uint64_t number = 0;
  const auto [end, status] = std::from_chars(id.data(), id.data() + id.size(), number);
  if (status != std::errc{} || end != id.data() + id.size()) return std::nullopt;
  return number;
}

std::string event_hub::first_events(std::optional<std::string_view> last_event_id, bool admin) {
  const auto seen_number = last_event_id ? number_of(*last_event_id) : std::nullopt;
  const auto first_kept = last_number_ + 1 - events_.size();
  if (!seen_number || *seen_number > last_number_ || *seen_number + 1 < first_kept)
    return last_state_;
  std::string missed;
  for (const auto& event : events_) {
    if (event.number <= *seen_number || (event.for_admins && !admin)) continue;
    missed += event.text;
    if (missed.size() > options_.max_queued / 2) return last_state_;
  }
  ++counts_.resumed;
  return missed;
}

void event_hub::subscribe(const caller& client, std::optional<std::string_view> last_event_id,
                          responder answer) {
  if (!client.tenant.empty()) {
    answer.answer(problem_response(403, "the events of the server are not for a single tenant"));
    return;
  }
  std::unique_lock lock(mutex_);
  remove_closed();
  if (ended_ || subscribers_.size() >= options_.max_streams) {
    ++counts_.refused;
    lock.unlock();
    auto busy = problem_response(503, "there are too many event streams; close one, or retry");
    busy.fields.add("Retry-After", "5");
    answer.answer(std::move(busy));
    return;
  }
  const bool admin = client.role == role::admin;
  server_response head{.body = ": holdfast\n\n" + first_events(last_event_id, admin)};
  head.fields.add("Content-Type", "text/event-stream");
  head.fields.add("Cache-Control", "no-store");
  head.fields.add("X-Accel-Buffering", "no");  // nginx passes the events on at once
  // The lock is held, so that no event is lost or repeated between the first ones and the stream.
  auto stream = answer.begin_stream(std::move(head), {.max_queued = options_.max_queued,
                                                      .heartbeat = ": heartbeat\n\n",
                                                      .heartbeat_interval = options_.heartbeat,
                                                      .last_piece = bye_event()});
  subscribers_.push_back({.stream = std::move(stream),
                          .admin = admin,
                          .end = std::chrono::steady_clock::now() + options_.max_age});
}

void event_hub::end_old_streams() noexcept try {
  const auto now = std::chrono::steady_clock::now();
  const std::scoped_lock lock(mutex_);
  for (auto& client : subscribers_) {
    if (client.end <= now) client.stream.close(bye_event());
  }
  remove_closed();
} catch (...) {  // NOLINT(bugprone-empty-catch)
  // No memory: tried again in a second.
}

void event_hub::shut_down() noexcept try {
  const std::scoped_lock lock(mutex_);
  if (std::exchange(ended_, true)) return;
  for (auto& client : subscribers_) client.stream.close(bye_event());
} catch (...) {  // NOLINT(bugprone-empty-catch)
  // No memory: the server ends the streams when it stops.
}

event_hub_counts event_hub::counts() {
  const std::scoped_lock lock(mutex_);
  remove_closed();
  auto counts = counts_;
  counts.streams = subscribers_.size();
  return counts;
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
