#include "serve/api/api_dispatcher.hpp"

#include <holdfast/error.hpp>

#include "serve/api/problem_mapping.hpp"
#include "serve/api/request_checks.hpp"
#include "serve/api/server_refusal.hpp"

#include <array>
#include <exception>
#include <random>
#include <utility>
#include <variant>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

/// Content of a request that no endpoint takes is read up to this size, so that the client gets the
/// answer that says why.
constexpr std::uint64_t unrouted_body = std::uint64_t{64} << 10U;

std::uint64_t random_start() {
  std::random_device source;
  return (std::uint64_t{source()} << 32U) ^ source();
}

/// A bijection, so that different numbers stay different (the finaliser of SplitMix64).
std::uint64_t scrambled(std::uint64_t value) noexcept {
  value = (value ^ (value >> 30U)) * 0xBF58476D1CE4E5B9U;
  value = (value ^ (value >> 27U)) * 0x94D049BB133111EBU;
  return value ^ (value >> 31U);
}

/// The path with the names of the parameters: values of a query may be payloads.
std::string path_for_log(const http::target& target) {
  std::string text(target.path());
  char separator = '?';
  http::for_each_parameter(target.query(), [&](std::string_view name, std::string_view) {
    text.append(1, separator).append(name);
    separator = '&';
  });
  return text;
}

bool is_safe(std::string_view method) noexcept {
  return method == "GET" || method == "HEAD" || method == "OPTIONS";
}

/// Copies the fields, whose text belongs to the connection.
void own_fields(const http::fields& source, api_request& request) {
  std::string text;
  http::fields copy;
  for (std::size_t i = 0; i < source.size(); ++i) {
    const auto [name, value] = source[i];
    copy.add(text.size(), name.size(), text.size() + name.size(), value.size());
    text.append(name).append(value);
  }
  request.field_text = std::make_shared<const std::string>(std::move(text));
  copy.set_text(*request.field_text);
  request.fields = std::move(copy);
}

server_response allow_response(int status, const std::string& allowed) {
  auto response = status == 204 ? server_response{.status = 204}
                                : problem_response(405, "this path has the methods " + allowed);
  response.fields.add("Allow", allowed);
  return response;
}

}  // namespace

/// One request, from its arrival to its answer.
struct api_dispatcher::exchange {
  std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
  std::shared_ptr<api_request> request = std::make_shared<api_request>();
  const endpoint* row = nullptr;
  // The endpoint owns the request, and may move from it.
  std::string reference{};
  std::string method{};
  std::string path{};
  std::string caller_name{};
  std::string address{};
  std::size_t content_bytes = 0;
};

api_dispatcher::api_dispatcher(const endpoint_table& table, authenticator& identity,
                               dispatcher_options options)
    : router_(table),
      identity_(identity),
      options_(std::move(options)),
      workers_(make_thread_pool({.threads = options_.threads,
                                 .queue = options_.queue,
                                 .name = "hf-api",
                                 .linger = std::chrono::milliseconds(0),
                                 .log = options_.log})),
      hosts_(std::make_shared<const host_names>(std::vector<std::string>{},
                                                std::vector<std::string>{})),
      reference_(random_start()) {}

api_dispatcher::~api_dispatcher() = default;

std::string api_dispatcher::next_reference() noexcept {
  static constexpr std::string_view digits = "0123456789abcdefghjkmnpqrstvwxyz";
  auto number = scrambled(reference_.fetch_add(1, std::memory_order_relaxed));
  std::string text(13, '0');
  for (char& c : text) {
    c = digits[number % 32];
    number /= 32;
  }
  return text;
}

void api_dispatcher::set_hosts(host_names hosts) {
  auto replacement = std::make_shared<const host_names>(std::move(hosts));
  const std::scoped_lock lock(hosts_mutex_);
  hosts_.swap(replacement);
}

bool api_dispatcher::admits_host(const server_request& request) const {
  std::shared_ptr<const host_names> hosts;
  {
    const std::scoped_lock lock(hosts_mutex_);
    hosts = hosts_;
  }
  return hosts->admits(request.host, request.peer);
}

std::uint64_t api_dispatcher::max_body(std::string_view method,
                                       std::string_view target) const noexcept {
  try {
    const auto parsed = http::target::parse(target);
    const auto matched = parsed ? router_.find(method, parsed->path()) : route{};
    if (matched.row != nullptr && !matched.row->accepts.empty()) return matched.row->max_body;
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
    // The same failure answers the request when it is complete.
  }
  return unrouted_body;
}

void api_dispatcher::dispatch(const server_request& request, responder answer) {
  auto current = std::make_shared<exchange>();
  current->reference = next_reference();
  current->method = request.method;
  current->path = path_for_log(request.target);
  current->address = request.peer;
  current->content_bytes = request.body.size();
  answer.set_completion(
      [this, current](server_response& response) { complete(*current, response); });
  try {
    if (auto refusal = prepare(request, *current)) {
      answer.answer(*std::move(refusal));
      return;
    }
  } catch (...) {
    answer.answer(
        problem_of(std::current_exception(), current->request->caller, current->reference));
    return;
  }
  if (current->row->immediate) {
    run(current, std::move(answer));
    return;
  }
  if (auto response = answer_now(*current)) {
    answer.answer(*std::move(response));
    return;
  }
  if (current->row->answer) {
    post(current, std::move(answer));
    return;
  }
  try {
    current->row->start(current->request, std::move(answer));
  } catch (const std::exception& failure) {
    // The responder was destroyed, and has answered 500.
    report_defect(*current, failure.what());
  }
}

/// Fills the request of the API, or returns the answer that refuses it.
std::optional<server_response> api_dispatcher::prepare(const server_request& request,
                                                       exchange& current) {
  if (!admits_host(request)) {
    ++foreign_hosts_;
    return problem_response(
        421, "this server does not answer for this Host; add it to serve.names if it should");
  }
  auto matched = router_.find(request.method, request.target.path());
  if (request.method == "OPTIONS" && !matched.allowed.empty())
    return allow_response(204, matched.allowed);
  if (matched.allowed.empty())
    return problem_response(404, "there is no such path; GET /v1/openapi.json lists them");
  if (matched.row == nullptr) return allow_response(405, matched.allowed);
  current.row = matched.row;
  auto& target = *current.request;
  target.reference = current.reference;
  target.method = request.method;
  target.target = request.target;
  target.path_parameters = std::move(matched.parameters);
  own_fields(request.fields, target);
  if (auto refusal = identify(request, current)) return refusal;
  if (auto refusal = check_permission(*current.row, target)) return refusal;
  if (auto refusal = read_query(*current.row, target)) return refusal;
  target.body = std::move(request.body);
  return check_content(*current.row, target);
}

std::optional<server_response> api_dispatcher::identify(const server_request& request,
                                                        exchange& current) const {
  auto identified = identity_.identify(request);
  auto& client = current.request->caller;
  if (auto* const refusal = std::get_if<server_response>(&identified)) {
    // A public endpoint also answers a client with an expired token: it may be there to sign in.
    const bool is_public = current.row->roles.empty();
    if (!is_public || !(refusal->status == 401 || is_safe(request.method)))
      return std::move(*refusal);
  } else {
    client = std::get<caller>(std::move(identified));
  }
  if (client.address.empty()) client.address = request.peer;
  if (client.identified) current.caller_name = client.name;
  return std::nullopt;
}

std::optional<server_response> api_dispatcher::answer_now(const exchange& current) {
  if (!current.row->answer_now) return std::nullopt;
  try {
    return current.row->answer_now(*current.request);
  } catch (const error& failure) {
    if (failure.code() == errc::internal) report_defect(current, failure.what());
    return problem_of(failure, current.request->caller, current.reference);
  } catch (const std::exception& failure) {
    report_defect(current, failure.what());
    return problem_of(std::current_exception(), current.request->caller, current.reference);
  }
}

void api_dispatcher::post(const std::shared_ptr<exchange>& current, responder answer) {
  // A task must be copyable.
  auto shared = std::make_shared<responder>(std::move(answer));
  auto task = [this, current, shared] { run(current, std::move(*shared)); };
  if (workers_->post(std::move(task))) return;
  ++overloaded_;
  shared->answer(problem_of(server_refusal(errc::unavailable, "busy_server",
                                           "the server is busy; repeat the request later"),
                            current->request->caller, current->reference));
}

void api_dispatcher::run(const std::shared_ptr<exchange>& current, responder answer) {
  const auto client = current->request->caller;
  try {
    answer.answer(current->row->answer(*current->request));
  } catch (const error& failure) {
    if (failure.code() == errc::internal) report_defect(*current, failure.what());
    answer.answer(problem_of(failure, client, current->reference));
  } catch (const std::exception& failure) {
    report_defect(*current, failure.what());
    answer.answer(problem_of(std::current_exception(), client, current->reference));
  }
}

/// Adds the fields of every answer, and reports it.
void api_dispatcher::complete(const exchange& current, server_response& response) const noexcept {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> common{
      {{"Cache-Control", "no-store"},
       {"X-Content-Type-Options", "nosniff"},
       {"Cross-Origin-Resource-Policy", "same-origin"}}};
  try {
    response.fields.add("Holdfast-Request", current.reference);
    for (const auto& [name, value] : common) {
      if (!response.fields.has(name)) response.fields.add(name, value);
    }
    if (!options_.on_answer) return;
    options_.on_answer({.reference = current.reference,
                        .method = current.method,
                        .path = current.path,
                        .endpoint = current.row != nullptr ? current.row->path : std::string_view{},
                        .status = response.status,
                        .content_bytes = current.content_bytes,
                        .answer_bytes = response.body.size(),
                        .duration = std::chrono::duration_cast<std::chrono::microseconds>(
                            std::chrono::steady_clock::now() - current.begin),
                        .caller = current.caller_name,
                        .address = current.address});
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
    // No memory: the answer is sent without these fields.
  }
}

void api_dispatcher::report_defect(const exchange& current, const char* message) noexcept {
  ++defects_;
  if (!options_.log) return;
  try {
    const std::array<log_field, 3> fields{{{"reference", current.reference},
                                           {"method", current.method},
                                           {"endpoint", current.row->path}}};
    const std::string text = std::string("an endpoint failed: ") + message;
    options_.log({.level = log_level::error, .message = text, .fields = fields});
  } catch (...) {  // NOLINT(bugprone-empty-catch)
    // The log must not break the answer.
  }
}

dispatcher_counts api_dispatcher::counts() const {
  return {.overloaded = overloaded_,
          .foreign_hosts = foreign_hosts_,
          .defects = defects_,
          .workers = workers_->count()};
}

std::size_t api_dispatcher::close(std::chrono::steady_clock::time_point deadline) {
  const auto report = workers_->close(deadline);
  return report.dropped + report.still_running;
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
