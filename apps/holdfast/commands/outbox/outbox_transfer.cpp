#include "commands/outbox/outbox_transfer.hpp"

#include <holdfast/error.hpp>

#include "base/base64.hpp"
#include "base/utf8.hpp"
#include "commands/outbox/record_pages.hpp"
#include "commands/outbox/sorted_lines.hpp"
#include "terminal/json_fields.hpp"
#include "terminal/text.hpp"
#include "terminal/time_text.hpp"

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>
#include <vector>

namespace holdfast::cli {

namespace {

using std::chrono::milliseconds;

void append_member(std::string& json, std::string_view name, std::string_view value) {
  if (!value.empty()) json.append(",").append(json_string(name) + ":" + json_string(value));
}
void append_member(std::string& json, std::string_view name, std::int64_t value) {
  if (value != 0) json.append(",").append(json_string(name) + ":" + std::to_string(value));
}

/// The members of an event, without braces. Begins with its type.
std::string event_members(const event& e) {
  std::string json = "\"type\":" + json_string(e.type);
  append_member(json, "id", e.id);
  append_member(json, "key", e.key);
  append_member(json, "content_type", e.content_type);
  append_member(json, "delay_ms", e.delay.count());
  append_member(json, "ttl_ms", e.time_to_live.count());
  append_member(json, "schema", e.schema);
  append_member(json, "aggregate_type", e.aggregate_type);
  append_member(json, "aggregate_id", e.aggregate_id);
  append_member(json, "payload_ref", e.payload_ref);
  if (!e.headers.empty()) {
    json += ",\"headers\":{";
    for (const auto& [name, value] : e.headers)
      json.append(json.back() == '{' ? "" : ",")
          .append(json_string(name) + ":" + json_string(value));
    json += "}";
  }
  if (detail::is_utf8(e.payload)) return json + ",\"payload\":" + json_string(e.payload);
  std::string encoded(detail::base64_size(e.payload.size()), '\0');
  detail::encode_base64(std::as_bytes(std::span(e.payload)), encoded.data());
  append_member(json, "payload_base64", encoded);
  return json;
}

bool is_parked(const outbox_record& record) {
  return record.state == event_state::parked || record.state == event_state::blocking;
}

std::string event_line(const outbox_record& record) {
  const auto& details = record.details;
  std::string json = "{\"kind\":\"event\"," + event_members(details.event);
  append_member(json, "state", to_string(record.state));
  append_member(json, "created_at", iso_time(details.created_at));
  if (record.until && !is_parked(record)) append_member(json, "until", iso_time(*record.until));
  append_member(json, "attempts", std::int64_t{details.attempts});
  append_member(json, "last_error", details.last_error);
  return json + "}";
}

/// Lines that are sorted in memory; more are sorted in temporary files.
constexpr std::size_t export_memory = std::size_t{64} << 20U;

/// The order of an export.
enum export_group : std::uint8_t { parked_events, other_events, tickets };

std::string read_payload(const json_fields& fields) {
  if (fields.has("payload_ref"))
    throw error(errc::unsupported_type,
                "the payload of this event is outside of the outbox; publish it with its bytes");
  if (!fields.has("payload_base64")) return fields.optional_text("payload");
  const auto encoded = fields.text("payload_base64");
  const auto size = detail::decoded_base64_size(encoded);
  std::string bytes(size.value_or(0), '\0');
  if (!size || !detail::decode_base64(encoded, std::as_writable_bytes(std::span(bytes)).data()))
    throw error(errc::invalid_argument, "\"payload_base64\" is not Base64");
  return bytes;
}

event read_event(const json_fields& fields) {
  event e{.type = fields.text("type"),
          .key = fields.optional_text("key"),
          .payload = read_payload(fields),
          .id = fields.optional_text("id")};
  if (fields.has("content_type")) e.content_type = fields.text("content_type");
  e.delay = milliseconds(fields.integer_or("delay_ms", 0));
  e.time_to_live = milliseconds(fields.integer_or("ttl_ms", 0));
  e.schema = fields.optional_text("schema");
  e.aggregate_type = fields.optional_text("aggregate_type");
  e.aggregate_id = fields.optional_text("aggregate_id");
  if (!fields.has("headers")) return e;
  const auto headers = fields.object("headers");
  for (const auto& [name, value] : headers.all())
    e.headers.emplace(std::string(name), headers.text(name));
  return e;
}

milliseconds remaining_until(const std::string& time, timestamp now) {
  const auto remaining = std::chrono::duration_cast<milliseconds>(parse_iso_time(time) - now);
  return std::max(remaining, milliseconds(0));
}

overlap_policy overlap_of(const std::string& text) {
  if (text == "queue") return overlap_policy::queue;
  if (text == "skip") return overlap_policy::skip;
  throw error(errc::invalid_argument, "\"overlap\" is neither queue nor skip");
}

catch_up_policy catch_up_of(const std::string& text) {
  for (const auto policy : {catch_up_policy::none, catch_up_policy::last, catch_up_policy::all})
    if (text == to_string(policy)) return policy;
  throw error(errc::invalid_argument, "\"catch_up\" is none of none, last and all");
}

}  // namespace

outbox_export_result export_outbox(const outbox& source,
                                   const std::function<void(const std::string&)>& write) {
  outbox_export_result result;
  // Tickets first: one that becomes an event meanwhile is then exported twice, with the same id,
  // and not left out.
  sorted_lines lines(export_memory);
  for_each_record(source, scan_what::tickets, [&](const outbox_record& record) {
    event becomes = record.details.event;
    const std::string ticket = std::exchange(becomes.id, {});
    std::string json = "{\"kind\":\"ticket\",\"ticket\":" + json_string(ticket);
    append_member(json, "expires_at", iso_time(record.until.value_or(timestamp())));
    lines.add({tickets, 0, static_cast<std::int64_t>(result.tickets)},
              json + ",\"event\":{" + event_members(becomes) + "}}");
    ++result.tickets;
    return true;
  });
  for_each_record(source, scan_what::all, [&](const outbox_record& record) {
    lines.add({is_parked(record) ? parked_events : other_events, record.details.lane,
               record.details.sequence},
              event_line(record));
    ++result.events;
    return true;
  });
  lines.write_all(write);
  for (const auto& one : source.admin().recurring()) {
    const auto& options = one.options;
    std::string json = "{\"kind\":\"recurring\",\"name\":" + json_string(one.name);
    append_member(json, "cron", one.cron);
    append_member(json, "zone", options.zone);
    append_member(json, "overlap", to_string(options.overlap));
    append_member(json, "catch_up", to_string(options.catch_up));
    append_member(json, "catch_up_limit", static_cast<std::int64_t>(options.catch_up_limit));
    append_member(json, "tolerance_ms", options.tolerance.count());
    write(json + ",\"event\":{" + event_members(one.event) + "}}");
    ++result.recurring;
  }
  return result;
}

std::string to_text(const outbox_import_result& result) {
  std::string text = "published " + grouped(result.events);
  const auto append = [&](std::uint64_t count, std::string_view name) {
    if (count != 0) text.append(", ").append(name).append(" ").append(grouped(count));
  };
  append(result.duplicates, "duplicates");
  append(result.parked, "parked");
  append(result.skipped, "skipped");
  append(result.refused, "refused");
  append(result.tickets, "tickets");
  append(result.recurring, "recurring");
  return text;
}

std::string to_json(const outbox_import_result& result) {
  return "{\"published\":" + std::to_string(result.events) +
         ",\"duplicates\":" + std::to_string(result.duplicates) +
         ",\"parked\":" + std::to_string(result.parked) +
         ",\"skipped\":" + std::to_string(result.skipped) +
         ",\"refused\":" + std::to_string(result.refused) +
         ",\"tickets\":" + std::to_string(result.tickets) +
         ",\"recurring\":" + std::to_string(result.recurring) + "}";
}

struct outbox_importer::state {
  static constexpr std::size_t batch_size = 200;

  outbox target;
  outbox_import_options options;
  simdjson::dom::parser parser{};
  std::vector<event> batch{};
  outbox_import_result result{};
  const std::string owner = new_event_id();
  bool parks = false;

  state(outbox outbox_to_fill, outbox_import_options chosen)
      : target(std::move(outbox_to_fill)), options(std::move(chosen)) {}

  void add_event(const json_fields& fields) {
    event e = read_event(fields);
    const timestamp now = system_clock()->now();
    const auto state = fields.optional_text("state");
    const bool was_parked = state == "parked" || state == "blocking";
    if (was_parked && options.parked == parked_import::skip) {
      ++result.skipped;
      return;
    }
    if (fields.has("until") && state != "claimed")
      e.delay = remaining_until(fields.text("until"), now);
    // The time to live counts from the publication.
    if (e.time_to_live.count() != 0 && fields.has("created_at") && !was_parked) {
      const auto age =
          std::chrono::duration_cast<milliseconds>(now - parse_iso_time(fields.text("created_at")));
      e.time_to_live = std::max(e.time_to_live - age, milliseconds(1));
    }
    if (was_parked && options.parked == parked_import::park)
      return park(std::move(e), state == "blocking", fields.optional_text("last_error"));
    batch.push_back(std::move(e));
    if (batch.size() == batch_size) publish();
  }

  void publish() {
    if (batch.empty()) return;
    const auto receipts = target.publish_all(std::exchange(batch, {}), options.durability);
    for (const auto& receipt : receipts) {
      if (receipt.status == publish_status::added) ++result.events;
      else if (receipt.status == publish_status::duplicate) ++result.duplicates;
      else if (result.refused++ == 0 && receipt.problem) result.problem = receipt.problem->what();
    }
  }

  /// An event can be parked only by who claimed it. In an outbox without other events, the next
  /// claim returns this one.
  void park(event e, bool blocks, const std::string& reason) {
    if (!e.id.empty() && target.find(e.id)) {
      ++result.duplicates;
      return;
    }
    if (!std::exchange(parks, true) && has_other_events())
      throw error(errc::invalid_argument,
                  "parked events can be imported only into an outbox without other events; give "
                  "--parked skip or --parked deliver");
    e.delay = {};
    e.time_to_live = {};
    const auto lane = target.lane_of(e.key.empty() ? e.id : e.key);
    const auto lock = target.lock(lane, owner, std::chrono::minutes(1));
    if (!lock.held) refuse_worker();
    const auto receipt = target.publish(std::move(e), options.durability);
    const auto claim = target.claim({.lane = lane, .most = 1, .owner = owner});
    if (claim.events.size() != 1 || claim.events.front().event.id != receipt.id) refuse_worker();
    (void)target.park(claim.fence, claim.events.front(),
                      blocks ? park_policy::block : park_policy::skip, reason);
    (void)target.unlock(lane, owner);
    ++result.parked;
  }

  [[nodiscard]] bool has_other_events() const {
    const auto stats = target.admin().stats();
    return stats.events != stats.parked || stats.paused;
  }

  [[noreturn]] static void refuse_worker() {
    throw error(errc::unavailable,
                "a parked event could not be claimed: another worker is running, or the outbox is "
                "paused; stop the workers and run it again");
  }

  void add_ticket(const json_fields& fields) {
    const auto after = remaining_until(fields.text("expires_at"), system_clock()->now());
    (void)target.schedule(fields.text("ticket"), after, read_event(fields.object("event")));
    ++result.tickets;
  }

  void add_recurring(const json_fields& fields) {
    const recurrence_options recurring{
        .zone = fields.optional_text("zone"),
        .overlap = overlap_of(fields.text("overlap")),
        .catch_up = catch_up_of(fields.text("catch_up")),
        .catch_up_limit = static_cast<std::size_t>(fields.integer("catch_up_limit")),
        .tolerance = milliseconds(fields.integer_or("tolerance_ms", 0))};
    (void)target.recur(fields.text("name"), fields.text("cron"), recurring,
                       read_event(fields.object("event")));
    ++result.recurring;
  }
};

outbox_importer::outbox_importer(outbox target, outbox_import_options options)
    : state_(std::make_unique<state>(std::move(target), std::move(options))) {}
outbox_importer::~outbox_importer() = default;

void outbox_importer::add(std::string_view line) {
  const auto fields = json_fields::of_line(state_->parser, line);
  const auto kind = fields.has("kind") ? fields.text("kind") : "event";
  if (kind == "event") state_->add_event(fields);
  else if (kind == "ticket") state_->add_ticket(fields);
  else if (kind == "recurring") state_->add_recurring(fields);
  else
    throw error(errc::invalid_argument,
                "\"kind\" is '" + kind + "', and not event, ticket or recurring");
}

void outbox_importer::flush() { state_->publish(); }

const outbox_import_result& outbox_importer::result() const noexcept { return state_->result; }

}  // namespace holdfast::cli
