#include "serve/api/outbox_json.hpp"

#include "base/base64.hpp"
#include "base/utf8.hpp"
#include "serve/api/json_slices.hpp"
#include "serve/auth/masking.hpp"

#include <optional>
#include <span>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

std::string base64_text(std::string_view bytes) {
  std::string text(base64_size(bytes.size()), '\0');
  encode_base64(std::as_bytes(std::span(bytes)), text.data());
  return text;
}

void write_payload(json_writer& out, const event& source, bool masked) {
  const auto& payload = source.payload;
  const bool json_type = source.content_type.empty() || is_json_type(source.content_type);
  if (payload.empty()) {
    out.key("payload");
    if (json_type) out.null();
    else out.text("");
  } else if (json_type && is_json(payload)) {
    // A payload that cannot be masked must not be shown.
    const auto masked_json = masked ? mask_json(payload) : std::nullopt;
    out.key("payload");
    if (!masked) out.raw(payload);
    else if (masked_json) out.raw(*masked_json);
    else out.text(mask_text);
  } else if (!json_type && is_utf8(payload)) {
    out.member("payload", payload);
  } else {
    out.member("payloadBase64", base64_text(payload));
  }
}

void write_headers(json_writer& out, const event& source, bool masked) {
  if (source.headers.empty()) return;
  out.key("headers").begin_object();
  for (const auto& [name, value] : source.headers)
    out.member(name, masked && is_sensitive_name(name) ? mask_text : std::string_view(value));
  out.end_object();
}

void write_text_member(json_writer& out, std::string_view name, const std::string& value) {
  if (!value.empty()) out.member(name, value);
}

}  // namespace

std::string duration_text(std::chrono::milliseconds duration) {
  return std::to_string(duration.count()) + "ms";
}

void write_claimed_event(json_writer& out, const claimed_event& event, payload_view view) {
  const auto& content = event.event;
  out.member("id", content.id)
      .member("type", content.type)
      .member("key", content.key)
      .member("contentType", content.content_type);
  if (view == payload_view::none) {
    const auto size = content.payload_size != 0 ? content.payload_size : content.payload.size();
    out.member("payloadBytes", std::uint64_t{size});
  } else {
    write_payload(out, content, view == payload_view::masked);
  }
  write_headers(out, content, view != payload_view::whole);
  write_text_member(out, "schema", content.schema);
  write_text_member(out, "aggregateType", content.aggregate_type);
  write_text_member(out, "aggregateId", content.aggregate_id);
  if (content.time_to_live.count() > 0)
    out.member("timeToLive", duration_text(content.time_to_live));
  out.member("lane", event.lane)
      .member("deliveries", event.deliveries)
      .member("attempts", event.attempts)
      .member("replays", event.replays)
      .member("createdAt", event.created_at)
      .key("sequence")
      .wide(event.sequence);
  write_text_member(out, "lastError", event.last_error);
}

void write_record(json_writer& out, const outbox_record& record, payload_view view) {
  out.begin_object();
  write_claimed_event(out, record.details, view);
  out.member("state", to_string(record.state));
  if (record.until) out.member("until", *record.until);
  write_text_member(out, "behind", record.behind);
  if (record.fence != 0) out.key("fence").wide(record.fence);
  out.end_object();
}

void write_claim(json_writer& out, const claimed& claim) {
  const auto status = [&] {
    switch (claim.status) {
      case claim_status::some:
        return "some";
      case claim_status::empty:
        return "empty";
      case claim_status::paused:
        return "paused";
      case claim_status::fenced:
        return "fenced";
    }
    return "empty";
  }();
  out.begin_object()
      .member("status", status)
      .member("lane", claim.lane)
      .key("fence")
      .wide(claim.fence);
  out.key("events").begin_array();
  for (const auto& event : claim.events) {
    out.begin_object();
    write_claimed_event(out, event, payload_view::whole);
    out.end_object();
  }
  out.end_array();
  if (!claim.left_out.empty()) {
    out.key("leftOut").begin_array();
    for (const auto& [id, key] : claim.left_out)
      out.begin_object().member("id", id).member("key", key).end_object();
    out.end_array();
  }
  if (!claim.parked.empty()) {
    out.key("parked").begin_array();
    for (const auto& [id, reason] : claim.parked)
      out.begin_object().member("id", id).member("reason", reason).end_object();
    out.end_array();
  }
  if (claim.next) out.member("next", duration_text(*claim.next));
  out.end_object();
}

void write_stats(json_writer& out, const outbox_stats& stats) {
  out.member("events", stats.events)
      .member("pending", stats.pending)
      .member("following", stats.following)
      .member("parked", stats.parked)
      .member("stuck", stats.stuck)
      .member("tickets", stats.tickets)
      .member("remembered", stats.remembered)
      .member("bytes", stats.bytes)
      .member("atLeast", stats.at_least)
      .member("paused", stats.paused)
      .member("overdue", duration_text(stats.overdue));
  out.key("totals").begin_object();
  out.member("published", stats.published)
      .member("duplicates", stats.duplicates)
      .member("claims", stats.claims)
      .member("acked", stats.acked)
      .member("retried", stats.retried)
      .member("parkings", stats.parkings)
      .member("stale", stats.stale)
      .member("fired", stats.fired)
      .member("orphans", stats.orphans)
      .end_object();
}

void write_problem(json_writer& out, const error& problem, bool with_detail) {
  out.begin_object().member("code", to_string(problem.code()));
  if (with_detail) out.member("detail", problem.what());
  out.member("transient", problem.transient()).member("inDoubt", problem.in_doubt()).end_object();
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
