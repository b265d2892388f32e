#include "serve/api/outbox_publish.hpp"

#include <holdfast/error.hpp>

#include "http/syntax.hpp"
#include "serve/api/cloud_events.hpp"
#include "serve/api/endpoint_table.hpp"
#include "serve/api/event_reader.hpp"
#include "serve/api/json_slices.hpp"
#include "serve/api/outbox_access.hpp"
#include "serve/api/outbox_json.hpp"

#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

constexpr std::size_t max_batch = 1000;
/// As the outbox sends to its backend in one call.
constexpr std::size_t max_publish_body = std::size_t{4} << 20U;

/// The events of a request, and whether the client asked for one receipt or for a list.
struct publish_request {
  std::vector<event> events{};
  bool is_batch = false;
};

/// The content type without its parameters.
std::string_view media_type_of(const http::fields& fields) {
  auto type = fields.find("Content-Type").value_or("");
  type = type.substr(0, type.find(';'));
  while (type.ends_with(' ') || type.ends_with('\t')) type.remove_suffix(1);
  return type;
}

/// Adds the index to the path of an error, unless it has one.
[[noreturn]] void rethrow_at(const error& problem, std::size_t index) {
  auto path = problem.path();
  if (!path.starts_with('['))
    path = "[" + std::to_string(index) + "]" + (path.empty() ? "" : ".") + path;
  throw error(problem.code(), problem.message(), {.path = std::move(path)});
}

template <class ReadOne>
publish_request read_batch(std::string_view body, ReadOne read_one) {
  auto objects = json_object::parse_array(body);
  if (objects.empty())
    throw error(errc::invalid_argument, "the batch is empty; send at least one event");
  if (objects.size() > max_batch)
    throw error(errc::too_large, "the batch has " + std::to_string(objects.size()) +
                                     " events; send at most 1000 at once");
  const auto slices = element_slices(body);
  publish_request result{.is_batch = true};
  result.events.reserve(objects.size());
  for (std::size_t i = 0; i < objects.size(); ++i) {
    try {
      result.events.push_back(read_one(objects[i], slices.at(i), i));
    } catch (const error& problem) {
      rethrow_at(problem, i);
    }
  }
  return result;
}

publish_request read_plain(std::string_view body, const event_ids& ids) {
  const auto start = body.find_first_not_of(" \t\r\n");
  if (start != std::string_view::npos && body[start] == '[') {
    return read_batch(body, [&](json_object& object, std::string_view source, std::size_t index) {
      auto event = read_event(object, source);
      if (event.id.empty()) event.id = ids.from_key(index);
      return event;
    });
  }
  auto object = json_object::parse(body);
  publish_request result;
  result.events.push_back(read_event(object, body));
  auto& event = result.events.front();
  if (event.id.empty()) event.id = ids.from_key();
  return result;
}

publish_request read_publish_request(api_request& request) {
  const event_ids ids(request.caller.name, read_idempotency_key(request.fields));
  const auto type = media_type_of(request.fields);
  publish_request result;
  if (http::equals_ignoring_case(type, cloud_event_batch_type)) {
    return read_batch(request.body, [&](json_object& object, std::string_view source, std::size_t) {
      return read_cloud_event(object, source, ids);
    });
  }
  if (http::equals_ignoring_case(type, cloud_event_type)) {
    auto object = json_object::parse(request.body);
    result.events.push_back(read_cloud_event(object, request.body, ids));
  } else if (is_binary_cloud_event(request.fields)) {
    result.events.push_back(read_binary_cloud_event(request.fields, std::move(request.body), ids));
  } else if (http::equals_ignoring_case(type, "application/json")) {
    result = read_plain(request.body, ids);
  }
  return result;
}

bool sees_backend(const caller& actor) noexcept {
  return actor.role == role::operator_ || actor.role == role::admin;
}

/// A quota is reached: the client must wait until events were delivered.
bool is_quota(const error& problem) noexcept {
  return problem.code() == errc::too_large && problem.transient();
}

void write_receipt(json_writer& out, const receipt& receipt, bool with_detail) {
  out.begin_object().member("id", receipt.id);
  out.member("status",
             receipt.status == publish_status::in_doubt ? "inDoubt" : to_string(receipt.status));
  if (receipt.problem)
    write_problem(out.key("problem"), *receipt.problem, with_detail || is_quota(*receipt.problem));
  out.end_object();
}

server_response answer_one(const receipt& receipt) {
  if (receipt.safe() || !receipt.problem) {
    json_writer out;
    write_receipt(out, receipt, false);
    return json_response(receipt.status == publish_status::added ? 201 : 200, out.take());
  }
  const auto& problem = *receipt.problem;
  if (is_quota(problem)) {
    auto response = problem_response(429, problem.message());
    response.fields.add("Retry-After", "1");
    return response;
  }
  throw error(problem.code(), problem.message(),
              {.path = receipt.id,
               .backend_code = problem.backend_code(),
               .transient = problem.transient(),
               .in_doubt = receipt.status == publish_status::in_doubt});
}

/// The outbox names the event of several; a batch of one has an index, too.
std::vector<receipt> publish_events(const outbox_service& service, publish_request content) {
  const bool is_batch_of_one = content.is_batch && content.events.size() == 1;
  try {
    return service.outbox.publish_all(std::move(content.events));
  } catch (const error& original) {
    const auto problem = with_client_advice(original, service);
    const bool is_of_event =
        problem.code() == errc::invalid_argument || problem.code() == errc::too_large;
    if (!is_batch_of_one || !is_of_event || !problem.path().empty()) throw error(problem);
    throw error(problem.code(), problem.message(), {.path = "[0]"});
  }
}

server_response publish(const outbox_service& service, api_request& request) {
  auto content = read_publish_request(request);
  if (content.events.empty())
    return problem_response(415,
                            "send application/json, application/cloudevents+json, "
                            "application/cloudevents-batch+json, or a CloudEvent in binary mode "
                            "with ce-specversion, ce-id, ce-source and ce-type");
  const bool is_batch = content.is_batch;
  const auto receipts = publish_events(service, std::move(content));
  if (!is_batch) return answer_one(receipts.front());
  json_writer out;
  out.begin_object().key("items").begin_array();
  for (const auto& receipt : receipts) write_receipt(out, receipt, sees_backend(request.caller));
  out.end_array().end_object();
  return json_response(207, out.take());
}

}  // namespace

void add_outbox_publish_endpoints(endpoint_table& table, services& shared) {
  table.add({.method = "POST",
             .path = "/v1/outboxes/{outbox}/events",
             .summary = "Publishes one event, or a batch of at most 1000",
             .roles = {role::application},
             .scope = "outbox:{outbox}:publish",
             .for_tenants = true,
             // Binary mode: the content is the payload, of any type.
             .accepts = {"application/json", cloud_event_type, cloud_event_batch_type, "*/*"},
             .statuses = {201, 200, 207, 409, 422, 504},
             .max_body = max_publish_body,
             .answer = on_outbox(shared, publish)});
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
