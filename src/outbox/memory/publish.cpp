// Publishing on an outbox in memory, and commits of events together with the caller's keys.

#include <holdfast/error.hpp>

#include "outbox/memory/backend.hpp"

#include <charconv>

namespace HOLDFAST_NAMESPACE::detail::outbox {
namespace {

using caller_data = memory_lane::by_name<memory_lane::datum>;

[[noreturn]] void refuse_type(const std::string& key) {
  throw error(errc::invalid_argument, "the key '" + key +
                                          "' has another type than the commit expects; nothing "
                                          "was written");
}

std::int64_t parse_number(const std::string& text, const std::string& key) {
  std::int64_t number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  // Comparing with to_string refuses leading zeros, as INCRBY of Redis does.
  if (code != std::errc{} || end != text.data() + text.size() || text.size() > 15 ||
      text != std::to_string(number)) {
    throw error(errc::invalid_argument,
                "the value of '" + key +
                    "' is not a whole number of at most 15 digits; nothing was written");
  }
  return number;
}

bool writes_field(commit_write::kind kind) {
  return kind == commit_write::kind::set_field || kind == commit_write::kind::erase_field ||
         kind == commit_write::kind::add_to_field;
}

bool adds_number(commit_write::kind kind) {
  return kind == commit_write::kind::add || kind == commit_write::kind::add_to_field;
}

/// The string of a key or, with a field, the field of a hash. Throws if the key has another type.
std::optional<std::string> value_of(const caller_data& data, const std::string& key,
                                    const std::string& field) {
  const auto datum = data.find(key);
  if (datum == data.end()) return std::nullopt;
  if (field.empty()) {
    if (const auto* text = std::get_if<std::string>(&datum->second)) return *text;
    refuse_type(key);
  }
  const auto* fields = std::get_if<memory_lane::hash>(&datum->second);
  if (fields == nullptr) refuse_type(key);
  const auto value = fields->find(field);
  if (value == fields->end()) return std::nullopt;
  return value->second;
}

bool holds(const caller_data& data, const commit_condition& condition) {
  switch (condition.test) {
    case commit_condition::kind::exists:
      return data.contains(condition.key);
    case commit_condition::kind::absent:
      return !data.contains(condition.key);
    case commit_condition::kind::equals:
      return value_of(data, condition.key, condition.field) == condition.value;
    case commit_condition::kind::missing:
      return !value_of(data, condition.key, condition.field);
  }
  return false;
}

/// Throws if the write would fail.
void check_write(const caller_data& data, const commit_write& write) {
  const auto datum = data.find(write.key);
  if (datum == data.end() || write.action == commit_write::kind::erase) return;
  if (writes_field(write.action) != std::holds_alternative<memory_lane::hash>(datum->second))
    refuse_type(write.key);
  if (!adds_number(write.action)) return;
  if (const auto text = value_of(data, write.key, write.field))
    (void)parse_number(*text, write.key);
}

void apply_write(caller_data& data, const commit_write& write) {
  const auto fields = [&]() -> memory_lane::hash& {
    auto& datum = data.try_emplace(write.key, memory_lane::hash{}).first->second;
    return std::get<memory_lane::hash>(datum);
  };
  const auto sum = [&](const std::string& field) {
    const auto text = value_of(data, write.key, field).value_or("0");
    return std::to_string(parse_number(text, write.key) + write.number);
  };
  switch (write.action) {
    case commit_write::kind::set:
      data[write.key] = write.value;
      break;
    case commit_write::kind::erase:
      data.erase(write.key);
      break;
    case commit_write::kind::set_field:
      fields()[write.field] = write.value;
      break;
    case commit_write::kind::erase_field:
      if (!data.contains(write.key)) break;
      fields().erase(write.field);
      if (fields().empty()) data.erase(write.key);
      break;
    case commit_write::kind::add:
      data[write.key] = sum({});
      break;
    case commit_write::kind::add_to_field: {
      auto text = sum(write.field);
      fields()[write.field] = std::move(text);
      break;
    }
  }
}

}  // namespace

std::vector<receipt> memory_backend::publish(std::size_t lane_number, std::span<const event> events,
                                             const publish_terms& terms) {
  require(terms.durability);
  const std::scoped_lock guard(mutex_);
  auto& lane = lane_at(lane_number);
  const auto first_before = lane.pending.first_score();
  auto receipts = lane.add_all(events, terms, now_ms());
  wake_if_earlier(lane, first_before);
  return receipts;
}

committed memory_backend::commit(std::size_t lane_number, const commit_request& request,
                                 const publish_terms& terms) {
  require(terms.durability);
  const std::scoped_lock guard(mutex_);
  auto& lane = lane_at(lane_number);
  const auto now = now_ms();
  const std::string effect = "e:" + request.once;
  if (!request.once.empty()) {
    if (terms.dedup_window.count() == 0)
      throw error(errc::invalid_argument, "effect_once requires dedup_window > 0");
    if (lane.is_remembered(effect, terms, now)) return {.status = commit_status::applied};
    if (request.fence != 0 &&
        lane.held_claim(request.once, request.once_key, request.fence, true) == nullptr)
      return {.status = commit_status::stale};
  }
  for (std::size_t i = 0; i < request.conditions.size(); ++i) {
    if (!holds(lane.data, request.conditions[i]))
      return {.status = commit_status::condition_failed, .failed = i};
  }
  for (const auto& write : request.writes) check_write(lane.data, write);
  committed result;
  result.receipts = lane.add_all(request.events, terms, now);
  for (const auto& receipt : result.receipts) {
    if (receipt.status == publish_status::refused && receipt.problem) throw error(*receipt.problem);
  }
  for (const auto& write : request.writes) apply_write(lane.data, write);
  if (!request.once.empty()) {
    lane.done.put(effect, lane.entries.contains(request.once) ? memory_lane::unexpiring : now);
    lane.trim_done(terms, now);
  }
  if (!request.events.empty()) request_wake(lane);
  return result;
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
