#include "outbox/checks.hpp"

#include <holdfast/error.hpp>
#include <holdfast/key/redis.hpp>

#include "base/utf8.hpp"
#include "base/uuid.hpp"

#include <algorithm>
#include <bit>
#include <set>
#include <string>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::outbox {

namespace {

using std::chrono::milliseconds;

constexpr std::size_t longest_name = 256;
constexpr std::size_t most_headers = 64;
constexpr std::size_t longest_header = 4096;
constexpr std::int64_t largest_increment = 1'000'000'000'000'000;

[[noreturn]] void refuse(const std::string& reason, errc code = errc::invalid_argument) {
  throw error(code, reason);
}

/// Returns the beginning of a text for a message, cut between characters.
std::string excerpt(std::string_view text) {
  return std::string(text.substr(0, prefix_size(text, 64)));
}

/// Whether a well-formed text has a character that breaks a line, controls a terminal, ends a C
/// string or changes the order in which the others are shown.
bool has_control_character(std::string_view text, bool tab_allowed) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte < 0x20 && !(tab_allowed && byte == '\t')) || byte == 0x7F) return true;
    if (byte >= 0xC0 && controls_display(short_code_point(text.substr(i)))) return true;
  }
  return false;
}

/// `application/json`, `text/json; charset=utf-8`, `application/cloudevents+json`.
bool is_json_type(std::string_view content_type) {
  content_type = content_type.substr(0, content_type.find(';'));
  while (content_type.ends_with(' ')) content_type.remove_suffix(1);
  std::string type(content_type);
  std::ranges::transform(type, type.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return type.ends_with("/json") || type.ends_with("+json");
}

bool opens_container(char c) { return c == '{' || c == '['; }

bool is_field_write(commit_write::kind action) {
  return action == commit_write::kind::set_field || action == commit_write::kind::erase_field ||
         action == commit_write::kind::add_to_field;
}

/// Refuses two writes to the same value. All writes are checked before the first one is executed,
/// so a write must not change what another one was checked against.
void check_writes(const std::vector<commit_write>& writes) {
  std::set<std::pair<std::string_view, std::string_view>> targets;
  std::set<std::string_view> written_whole;
  std::set<std::string_view> written_by_field;
  for (const auto& write : writes) {
    const bool by_field = is_field_write(write.action);
    if (by_field && write.field.empty())
      refuse("a commit writes a field of '" + excerpt(write.key) + "' without its name: set field");
    (by_field ? written_by_field : written_whole).insert(write.key);
    const auto field = by_field ? std::string_view(write.field) : std::string_view();
    if (!targets.emplace(write.key, field).second ||
        (written_whole.contains(write.key) && written_by_field.contains(write.key))) {
      refuse("a commit writes '" + excerpt(write.key) + "' twice; combine the writes into one");
    }
    if (write.number > largest_increment || write.number < -largest_increment)
      refuse("a commit adds a number of more than 15 digits");
  }
}

}  // namespace

void check_name(std::string_view name, std::string_view text, bool may_be_empty) {
  const std::string subject = "the " + std::string(name);
  if (text.empty() && !may_be_empty) refuse(subject + " is empty");
  if (text.size() > longest_name)
    refuse(subject + " has " + std::to_string(text.size()) + " bytes; at most 256 are allowed");
  if (!is_utf8(text)) refuse(subject + " is not well-formed UTF-8");
  if (has_control_character(text, false)) refuse(subject + " has a control character; remove it");
}

void check_duration(std::string_view name, milliseconds duration, milliseconds minimum) {
  if (duration >= minimum && duration <= longest_time) return;
  refuse("the " + std::string(name) + " of " + std::to_string(duration.count()) +
         " ms is not between " + std::to_string(minimum.count()) + " ms and ten years");
}

void check_id(std::string_view id) {
  if (!is_uuid(id)) refuse("'" + excerpt(id) + "' is not an event id: use a UUID in lower case");
}

void check_fields(const event& event) {
  check_name("type of an event", event.type, false);
  check_name("key of an event", event.key, true);
  check_name("content type of an event", event.content_type, true);
  check_name("schema of an event", event.schema, true);
  check_name("aggregate type of an event", event.aggregate_type, true);
  check_name("aggregate id of an event", event.aggregate_id, true);
  if (event.headers.size() > most_headers) refuse("an event has more than 64 headers");
  for (const auto& [name, value] : event.headers) {
    check_name("name of a header", name, false);
    if (value.size() > longest_header)
      refuse("the header '" + name + "' is longer than 4096 bytes");
    if (!is_utf8(value)) refuse("the header '" + name + "' is not well-formed UTF-8");
    if (has_control_character(value, true))
      refuse("the header '" + name + "' has a control character; remove it");
  }
  check_duration("time to live of an event", event.time_to_live, milliseconds(0));
  if (is_json_type(event.content_type) && nests_too_deep(event.payload)) {
    refuse(
        "the payload of an event nests deeper than 1024; flatten it, or set a content type other "
        "than JSON");
  }
}

void check_event(const event& event, const outbox_options& options) {
  if (!event.id.empty()) check_id(event.id);
  check_fields(event);
  if (!event.payload_ref.empty() || !event.payload_sha256.empty() || event.payload_size != 0) {
    refuse(
        "payload_ref, payload_sha256 and payload_size are set by the outbox: put the bytes into "
        "payload");
  }
  check_duration("delay of an event", event.delay, milliseconds(0));
  if (options.claim_check) return;
  if (const auto problem = inline_size_problem(event.payload.size(), options))
    refuse(*problem, errc::too_large);
}

void check_options(const outbox_options& options) {
  if (!options.prefix.empty()) (void)key::redis_prefix(options.prefix);
  if (!std::has_single_bit(options.lanes) || options.lanes > 256) {
    refuse("outbox_options::lanes is " + std::to_string(options.lanes) +
           "; it must be a power of two up to 256");
  }
  check_duration("dedup window", options.dedup_window, milliseconds(0));
  check_duration("overdue quota", options.quota.overdue, milliseconds(0));
  check_duration("timeout of the durability", options.safe.timeout, milliseconds(1));
  if (options.inline_limit > largest_inline)
    refuse("an inline_limit above 16 MiB would stall the server; use a claim check");
  if (options.max_deliveries == 0) refuse("max_deliveries is 0: no event could ever be delivered");
}

void check_commit(const commit_request& request, std::string_view prefix) {
  if (request.conditions.size() + request.writes.size() + request.events.size() >
      max_events_per_call)
    refuse("a commit has more than 1000 conditions, writes and events");
  const std::string data_prefix = std::string(prefix) + ":data:";
  const auto check_key = [&](const std::string& key) {
    if (!key.starts_with(data_prefix) || key.size() == data_prefix.size())
      refuse("the key '" + excerpt(key) + "' does not belong to the lane: use outbox::key_of");
  };
  for (const auto& condition : request.conditions) check_key(condition.key);
  for (const auto& write : request.writes) check_key(write.key);
  check_writes(request.writes);
  if (!request.once.empty()) check_id(request.once);
  if (request.fence != 0 && request.once.empty())
    refuse("a commit with a fence needs the id of the event in `once`");
}

std::optional<std::string> inline_size_problem(std::size_t size, const outbox_options& options) {
  // With a claim check the limit may have been higher when the event was published, but never above
  // 16 MiB.
  const auto limit = options.claim_check ? largest_inline : options.inline_limit;
  if (size <= limit) return std::nullopt;
  return "a payload of " + std::to_string(size) + " bytes is larger than the limit of " +
         std::to_string(limit) +
         ": raise inline_limit, or set outbox_options::claim_check to keep such payloads outside "
         "the outbox";
}

bool nests_too_deep(std::string_view json) {
  if (static_cast<std::size_t>(std::ranges::count_if(json, opens_container)) <= deepest_json)
    return false;
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (in_string) {
      if (c == '\\') ++i;
      else if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (opens_container(c)) {
      if (++depth > deepest_json) return true;
    } else if ((c == '}' || c == ']') && depth > 0) {
      --depth;
    }
  }
  return false;
}

/// FNV-1a, then the first half of the finalizer of MurmurHash3, which mixes the low bits. Never
/// change it: a key that moves to another lane loses its order.
std::size_t lane_of(std::string_view key_or_id, std::size_t lanes) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : key_or_id) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3U;
  }
  hash ^= hash >> 33U;
  hash *= 0xff51afd7ed558ccdU;
  hash ^= hash >> 33U;
  return static_cast<std::size_t>(hash & (lanes - 1));
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
