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

namespace HOLDFAST_NAMESPACE::outboxes {
namespace {

[[noreturn]] void refuse(const std::string& why, errc code = errc::invalid_argument) { throw error(code, why); }

/// A part of a text for a message, cut between characters.
std::string shown(std::string_view text) { return std::string(text.substr(0, code_point_prefix(text, 64))); }

constexpr std::size_t most_headers = 64;
constexpr std::size_t longest_header = 4096;

/// Whether a well-formed text has a character that breaks a line, drives a terminal, ends a C string or hides the order of the others.
bool has_control_character(std::string_view text, bool tab_allowed) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte < 0x20 && !(tab_allowed && byte == '\t')) || byte == 0x7f) return true;
    if (byte >= 0xc0 && controls_display(short_code_point(text.substr(i)))) return true;
  }
  return false;
}

/// `application/json`, `text/json; charset=utf-8`, `application/cloudevents+json`.
bool is_json_type(std::string_view content_type) {
  content_type = content_type.substr(0, content_type.find(';'));
  while (content_type.ends_with(' ')) content_type.remove_suffix(1);
  std::string type(content_type);
  std::ranges::transform(type, type.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return type.ends_with("/json") || type.ends_with("+json");
}

}  // namespace

bool nests_too_deep(std::string_view json) {
  const auto opens = [](char c) { return c == '{' || c == '['; };
  if (static_cast<std::size_t>(std::ranges::count_if(json, opens)) <= deepest_json) return false;
  std::size_t depth = 0;
  bool in_text = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (in_text) {
      if (c == '\\') ++i;
      else if (c == '"') in_text = false;
    } else if (c == '"') {
      in_text = true;
    } else if (opens(c)) {
      if (++depth > deepest_json) return true;
    } else if ((c == '}' || c == ']') && depth > 0) {
      --depth;
    }
  }
  return false;
}

void check_name(std::string_view what, std::string_view text, bool may_be_empty) {
  const std::string name(what);
  if (text.empty() && !may_be_empty) refuse("the " + name + " is empty: give it one");
  if (text.size() > longest_name) refuse("the " + name + " has " + std::to_string(text.size()) + " bytes; at most 256 are allowed");
  if (!is_utf8(text)) refuse("the " + name + " is not well-formed UTF-8");
  if (has_control_character(text, false)) refuse("the " + name + " has a control character; leave it out");
}

void check_duration(std::string_view what, std::chrono::milliseconds time, std::chrono::milliseconds least) {
  if (time < least || time > longest_time) {
    refuse("the " + std::string(what) + " of " + std::to_string(time.count()) + " ms is not between " + std::to_string(least.count()) +
           " ms and ten years");
  }
}

void check_id(std::string_view id) {
  if (!is_uuid(id)) refuse("'" + shown(id) + "' is not the id of an event: a UUID in lower case is needed");
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
    if (value.size() > longest_header) refuse("the header '" + name + "' is longer than 4096 bytes");
    if (!is_utf8(value)) refuse("the header '" + name + "' is not well-formed UTF-8");
    if (has_control_character(value, true)) refuse("the header '" + name + "' has a control character; leave it out");
  }
  check_duration("time to live of an event", event.time_to_live, std::chrono::milliseconds(0));
  if (is_json_type(event.content_type) && nests_too_deep(event.payload)) {
    refuse("the payload of an event nests deeper than 1024; flatten it, or give it another content type than JSON");
  }
}

std::optional<std::string> inline_size_problem(std::size_t size, const outbox_options& options) {
  // With a claim check the limit may have been higher when the event was published, but never above 16 MiB.
  const auto limit = options.claim_check ? largest_inline : options.inline_limit;
  if (size <= limit) return std::nullopt;
  return "a payload of " + std::to_string(size) + " bytes is larger than the limit of " + std::to_string(limit) +
         ": raise inline_limit, or give outbox_options::claim_check a place for such payloads";
}

void check_event(const event& what, const outbox_options& options) {
  if (!what.id.empty()) check_id(what.id);
  check_fields(what);
  if (!what.payload_ref.empty() || !what.payload_sha256.empty() || what.payload_size != 0) {
    refuse("payload_ref, payload_sha256 and payload_size are set by the outbox: put the bytes into payload");
  }
  check_duration("delay of an event", what.delay, std::chrono::milliseconds(0));
  if (options.claim_check) return;
  if (const auto problem = inline_size_problem(what.payload.size(), options)) refuse(*problem, errc::too_large);
}

void check_options(const outbox_options& options) {
  (void)key::redis_prefix(options.prefix);
  if (!std::has_single_bit(options.lanes) || options.lanes > 256) {
    refuse("an outbox of " + std::to_string(options.lanes) + " lanes: a power of two up to 256 is needed");
  }
  check_duration("dedup window", options.dedup_window, std::chrono::milliseconds(0));
  check_duration("overdue quota", options.quota.overdue, std::chrono::milliseconds(0));
  check_duration("timeout of the durability", options.safe.timeout, std::chrono::milliseconds(1));
  if (options.inline_limit > largest_inline) refuse("an inline_limit above 16 MiB would stall the server; use a claim check");
  if (options.max_deliveries == 0) refuse("max_deliveries is 0: no event could ever be delivered");
}

void check_commit(const commit_request& request, std::string_view prefix) {
  if (request.conditions.size() + request.writes.size() + request.events.size() > most_in_a_call) {
    refuse("a commit of more than 1000 conditions, writes and events");
  }
  const auto check_key = [&](const std::string& key) {
    const std::string data = std::string(prefix) + ":data:";
    if (!key.starts_with(data) || key.size() == data.size()) {
      refuse("the key '" + shown(key) + "' is not one of the lane's: make it with outbox::key_of");
    }
  };
  for (const auto& condition : request.conditions) check_key(condition.key);
  // Everything is checked before anything is written, so no write may change what another one was checked against.
  std::set<std::pair<std::string_view, std::string_view>> places;
  std::set<std::string_view> whole, in_parts;
  for (const auto& write : request.writes) {
    check_key(write.key);
    const bool part = write.what == commit_write::kind::set_field || write.what == commit_write::kind::erase_field ||
                      write.what == commit_write::kind::add_to_field;
    if (part && write.field.empty()) refuse("a commit writes a field of '" + shown(write.key) + "' without saying which: give its name");
    (part ? in_parts : whole).insert(write.key);
    if (!places.emplace(write.key, part ? std::string_view(write.field) : std::string_view()).second ||
        (whole.contains(write.key) && in_parts.contains(write.key))) {
      refuse("a commit writes '" + shown(write.key) + "' twice; say what it becomes in the end");
    }
    if (write.number > 1'000'000'000'000'000 || write.number < -1'000'000'000'000'000)
      refuse("a commit adds a number of more than 15 digits");
  }
  if (!request.once.empty()) check_id(request.once);
  if (request.fence != 0 && request.once.empty()) refuse("a commit with a fence needs the event in `once`");
}

std::string kept_error(std::string_view text) {
  std::string kept(text.substr(0, longest_error));
  std::replace(kept.begin(), kept.end(), '\0', ' ');  // PostgreSQL has no text with one
  while (!kept.empty() && !is_utf8(kept) && kept.size() + 4 > longest_error) kept.pop_back();
  if (is_utf8(kept)) return kept;
  for (auto& c : kept) {
    if ((static_cast<unsigned char>(c) & 0x80U) != 0) c = '?';
  }
  return kept;
}

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

}  // namespace HOLDFAST_NAMESPACE::outboxes
