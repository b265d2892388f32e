#include "serve/api/call_endpoints.hpp"

#include "serve/api/call_points.hpp"
#include "serve/api/decision_recorder.hpp"
#include "serve/api/endpoint_table.hpp"
#include "serve/api/json_reader.hpp"
#include "serve/api/point_json.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

/// The failure that a program reports.
struct reported_failure : std::runtime_error {
  reported_failure() : std::runtime_error("a program reported that its upstream failed") {}
};

run_time_arguments arguments_of(json_object& body) {
  auto args = body.raw_elements("args");
  if (!args)
    throw error(errc::invalid_argument, "args is missing: the arguments of the call, as typed JSON",
                {.path = "args"});
  return read_arguments(*args);
}

/// The start of the call, by the clock of the program.
std::optional<timestamp> start_of(json_object& body, timestamp now) {
  constexpr auto tolerated_skew = std::chrono::minutes(5);
  const auto as_of = body.time("asOf");
  if (!as_of) return std::nullopt;
  if (*as_of > now + tolerated_skew)
    throw error(errc::out_of_range,
                "asOf is more than 5 minutes in the future; compare the clocks of the machines",
                {.path = "asOf"});
  return std::min(*as_of, now);
}

std::optional<json_answer> answer_of(json_object& body, const point_options& rules, timestamp start,
                                     timestamp now) {
  const bool absent = body.boolean("absent").value_or(false);
  if (absent == body.has("payload"))
    throw error(errc::invalid_argument,
                "send either payload, or \"absent\": true if the upstream has nothing",
                {.path = "payload"});
  const auto expires = body.time("expires");
  if (expires && *expires <= std::max(now, start))
    throw error(errc::out_of_range, "expires is in the past, or not after asOf",
                {.path = "expires"});
  if (absent) return std::nullopt;
  json_answer answer{.json = body.raw("payload").value_or("null"), .expires = expires};
  if (answer.json.size() > rules.max_payload)
    throw error(errc::too_large,
                "the payload is larger than max-payload of the point, " +
                    std::to_string(rules.max_payload) + " bytes",
                {.path = "payload"});
  return answer;
}

server_response take_answer(services& shared, call_points& points, const api_request& request) {
  auto body = json_object::parse(request.body);
  const auto arguments = arguments_of(body);
  const auto& name = request.path("point");
  auto point = points.get(name);
  const auto rules = shared.engine->resolved(name);
  const auto now = shared.clock->now();
  const auto start = start_of(body, now);
  auto value = answer_of(body, rules, start.value_or(now), now);
  const bool has_expiry = body.has("expires");
  body.finish();
  if (!has_expiry && start && rules.expiry.after(*start) <= now)
    throw error(errc::out_of_range, "the answer has expired: asOf and the expiry of the point",
                {.path = "asOf"});
  auto call = point.begin(arguments);
  if (start) call.set_start(std::min(*start, call.as_of()));
  const auto answer = call.succeed(std::move(value));
  if (answer.expires() == timestamp{})
    throw error(
        errc::unsupported_type,
        "the answer was not kept: the call has no key, because the store has tenants or the "
        "point varies by its caller",
        {.path = "args"});
  json_writer out;
  out.begin_object()
      .member("point", name)
      .member("asOf", answer.as_of())
      .member("expires", answer.expires())
      .member("queued", rules.write_behind.value_or(false))
      .end_object();
  return json_response(200, out.take());
}

enum class reported_cause : std::uint8_t { failed, late };

reported_cause cause_of(json_object& body) {
  const auto text = body.text("cause").value_or("failed");
  if (text == "failed") return reported_cause::failed;
  if (text == "late" || text == "timeout") return reported_cause::late;
  throw error(errc::invalid_argument, "the cause must be failed or late", {.path = "cause"});
}

/// The stored payload is JSON, unless another program wrote it.
bool is_json(const std::string& text) {
  try {
    (void)json_object::parse("{\"payload\":" + text + "}");
    return true;
  } catch (const error&) {
    return false;
  }
}

/// RFC 9651, for clients that do not read the content.
std::string answer_field(const answer<json_answer>& served, const std::string& ref) {
  const auto seconds = [](timestamp time) {
    return "@" + std::to_string(
                     std::chrono::floor<std::chrono::seconds>(time).time_since_epoch().count());
  };
  auto field = "stored;as-of=" + seconds(served.as_of()) + ";expires=" + seconds(served.expires()) +
               ";cause=" + std::string(to_string(served.cause().code()));
  if (!ref.empty()) field += ";ref=\"" + ref + "\"";
  return field;
}

server_response describe_kept(const answer<json_answer>& kept, timestamp now) {
  const auto ref = decision_ref(kept.provenance().decision);
  json_writer out;
  out.begin_object().key("payload");
  if (!kept.has_value()) out.null();
  else if (is_json(kept->json)) out.raw(kept->json);
  else out.text(kept->json);
  out.member("absent", !kept.has_value())
      .member("asOf", kept.as_of())
      .member("expires", kept.expires())
      .member("age", point_duration(std::max(kept.age(now), std::chrono::microseconds::zero())))
      .member("cause", to_string(kept.cause().code()))
      .member("ref", ref)
      .end_object();
  auto response = json_response(200, out.take());
  response.fields.add("Holdfast-Answer", answer_field(kept, ref));
  return response;
}

[[noreturn]] void throw_unserved(services& shared) {
  const auto ref = take_last_decision();
  const auto reported = shared.decisions ? shared.decisions->find(ref) : std::nullopt;
  if (!reported)
    throw error(errc::not_found, "nothing that is kept can be served for this call",
                {.path = "args"});
  throw error(errc::not_found, explain(*reported) + " See GET /v1/explain/" + ref + ".",
              {.path = "args"});
}

server_response recover_answer(services& shared, call_points& points, const api_request& request) {
  auto body = json_object::parse(request.body);
  const auto arguments = arguments_of(body);
  const auto cause = cause_of(body);
  body.finish();
  (void)take_last_decision();
  auto call = points.get(request.path("point")).begin(arguments);
  std::optional<answer<json_answer>> kept;
  try {
    kept = cause == reported_cause::late ? call.fail_late()
                                         : call.fail(std::make_exception_ptr(reported_failure()));
  } catch (const reported_failure&) {
    throw_unserved(shared);
  } catch (const error& failure) {
    // The exceptions of the engine for a late or refused call.
    if (failure.code() != errc::timeout && failure.code() != errc::unavailable) throw;
    throw_unserved(shared);
  }
  if (kept->source() != origin::stored) throw_unserved(shared);
  return describe_kept(*kept, shared.clock->now());
}

}  // namespace

void add_call_endpoints(endpoint_table& table, services& shared,
                        const std::shared_ptr<call_points>& points) {
  table.add({.method = "POST",
             .path = "/v1/points/{point}/answers",
             .summary = "Keeps an answer of the upstream, for the time when it fails",
             .roles = {role::application},
             .scope = "point:{point}:write",
             .accepts = {"application/json"},
             .request_schema =
                 R"({"type":"object","required":["args"],"properties":{"args":{"type":"array"},)"
                 R"("payload":{},"absent":{"type":"boolean"},"asOf":{"type":"string"},)"
                 R"("expires":{"type":"string"}}})",
             .statuses = {200, 409, 422},
             .answer = [&shared, points](api_request& request) {
               return take_answer(shared, *points, request);
             }});
  table.add({.method = "POST",
             .path = "/v1/points/{point}/recover",
             .summary = "Returns the last good answer, because the upstream failed",
             .roles = {role::application},
             .scope = "point:{point}:read",
             .accepts = {"application/json"},
             .request_schema =
                 R"({"type":"object","required":["args"],"properties":{"args":{"type":"array"},)"
                 R"("cause":{"enum":["failed","late","timeout"]}}})",
             .statuses = {200, 404, 409, 422},
             .answer = [&shared, points](api_request& request) {
               return recover_answer(shared, *points, request);
             }});
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
