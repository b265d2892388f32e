#include "serve/gateway/route_runtime.hpp"

#include <holdfast/error.hpp>

#include "base/url.hpp"
#include "failover/memory_recall.hpp"
#include "serve/api/decision_recorder.hpp"
#include "serve/gateway/gateway_request.hpp"
#include "serve/gateway/revalidation.hpp"

#include <algorithm>
#include <exception>
#include <random>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve::gateway {

namespace {

constexpr std::chrono::seconds default_deadline{5};
/// For the first line of a payload, with all fields.
constexpr std::size_t line_reserve = std::size_t{48} << 10U;

/// For the engine, which logs its type.
class failed_request : public std::exception {
 public:
  [[nodiscard]] const char* what() const noexcept override { return "the upstream failed"; }
};

[[noreturn]] void refuse_route(const route& rules, const std::string& message) {
  throw error(errc::invalid_argument, "gateway.routes." + rules.name + ": " + message,
              {.path = "gateway.routes." + rules.name});
}

void check_point(const route& rules, const point_options& options, payload_form form) {
  const auto refuse = [&](const std::string& key, const std::string& reason) {
    refuse_route(rules, "failover.points." + rules.name + "." + key + " " + reason);
  };
  if (options.soft_timeout) refuse("soft-timeout", "has no effect on a route; remove it");
  if (!options.vary.empty()) refuse("vary", "has no effect on a route; set gateway.routes.*.vary");
  if (!options.key_generator.empty())
    refuse("key-generator", "has no effect on a route; remove it");
  if (!options.expiry.name().empty()) refuse("expiry", "must be a time, not a policy");
  const auto content = form == payload_form::text ? rules.max_payload / 3 * 4 : rules.max_payload;
  if (options.max_payload < content + line_reserve)
    refuse("max-payload", "must be at least " + std::to_string(content + line_reserve) +
                              " for gateway.routes.*.max-payload");
}

std::string name_of(miss_reason reason) {
  auto name = std::string(to_string(reason));
  std::ranges::replace(name, '_', '-');
  return name;
}

}  // namespace

std::string_view to_string(outcome result) noexcept {
  switch (result) {
    case outcome::live:
      return "live";
    case outcome::stale:
      return "stale";
    case outcome::fresh:
      return "fresh";
    case outcome::unserved:
      return "unserved";
    case outcome::refused:
      return "refused";
    case outcome::cut:
      break;
  }
  return "cut";
}

upstream_target parse_upstream(const std::string& text) {
  const auto refuse = [] {
    throw error(errc::invalid_argument,
                "an upstream is http://host:port or https://host:port, without a path");
  };
  // Without a scheme, parse_url would advise how to write the URL of a database.
  const bool secure = text.starts_with("https://");
  if (!secure && !text.starts_with("http://")) refuse();
  const auto parsed = parse_url(text);
  if (parsed.host.empty() || !parsed.path.empty() || parsed.user || parsed.password ||
      !parsed.parameters.empty())
    refuse();
  const unsigned usual_port = secure ? 443 : 80;
  const auto port = parsed.port.value_or(usual_port);
  const bool is_v6 = parsed.host.find(':') != std::string::npos && !parsed.host.starts_with('[');
  const auto host = is_v6 ? '[' + parsed.host + ']' : parsed.host;
  return {.url = text,
          .address = host + ':' + std::to_string(port),
          .host = port == usual_port ? host : host + ':' + std::to_string(port),
          .secure = secure};
}

route_runtime::route_runtime(const route& configured, std::size_t position, const engine& owner,
                             route_point registered)
    : rules(configured),
      index(position),
      point(std::move(registered)),
      options(owner.resolved(configured.name)),
      deadline(options.deadline.value_or(default_deadline)) {
  for (const auto& url : rules.upstreams) {
    try {
      targets.push_back(parse_upstream(url));
    } catch (const error& problem) {
      refuse_route(rules, std::string("upstream: ") + problem.message());
    }
  }
  if (targets.empty()) refuse_route(rules, "needs an upstream");
  if (options.retry)
    retry = std::make_unique<failover::retry_plan>(*options.retry, std::random_device{}());
}

std::string_view route_runtime::refusal_detail(const engine& owner) const {
  // The status of a point is too much work for each request.
  if (!options.breaker) return "limit";
  if (options.concurrency_limit == 0) return "breaker-open";
  return owner.status(rules.name).breaker == breaker_state::open ? "breaker-open" : "limit";
}

gateway_runtime::gateway_runtime(runtime_options options, const gateway_runtime* previous)
    : options_(std::move(options)),
      table_(std::move(options_.routes)),
      keys_(options_.secret),
      tls_(options_.upstream_tls),
      workers_(previous != nullptr ? previous->workers_
                                   : make_thread_pool({.threads = options_.workers,
                                                       .queue = options_.queue,
                                                       .name = "hf-gateway",
                                                       .linger = {},
                                                       .log = options_.log})),
      points_(previous != nullptr ? previous->points_
                                  : std::make_shared<std::map<std::string, route_point>>()) {
  for (const auto& rules : table_.routes()) {
    auto registered = points_->find(rules.name);
    if (registered == points_->end())
      registered = points_->emplace(rules.name, make_route_point(*options_.engine, rules)).first;
    auto added = std::make_unique<route_runtime>(rules, routes_.size(), *options_.engine,
                                                 registered->second);
    check_point(rules, added->options, options_.form);
    const auto& overridden = rules.overridden;
    if (overridden.must_revalidate || overridden.proxy_revalidate || overridden.no_cache ||
        overridden.s_maxage)
      logger(options_.log)
          .write(log_level::warning,
                 "a route of the gateway gives stale answers although directives "
                 "of the upstream forbid it (serve-despite)",
                 {{.name = "route", .value = rules.name}});
    for (std::size_t i = 0; i < outcome_count && options_.metrics; ++i)
      added->counters[i] = options_.metrics->counter(
          "holdfast_gateway_requests_total",
          {{.name = "route", .value = rules.name},
           {.name = "outcome", .value = to_string(static_cast<outcome>(i))}},
          "Requests to the gateway, by route and outcome");
    for (auto& place : added->targets) {
      try {
        place.addresses = net::resolve(place.address, "the upstream");
      } catch (const error& problem) {
        logger(options_.log)
            .write(log_level::warning, problem.message(), {{.name = "route", .value = rules.name}});
      }
    }
    routes_.push_back(std::move(added));
  }
}

route_runtime* gateway_runtime::find(std::string_view host, std::string_view path) noexcept {
  const auto* const rules = table_.find(host, path);
  return rules == nullptr ? nullptr
                          : routes_[static_cast<std::size_t>(rules - table_.routes().data())].get();
}

void gateway_runtime::record(const answered_call& call) noexcept {
  const auto index = static_cast<std::size_t>(call.result);
  if (call.target.counters[index]) call.target.counters[index]->add();
  if (options_.access == nullptr) return;
  try {
    const auto path = masked_target(call.path);
    options_.access->add({.method = call.method,
                          .path = path,
                          .endpoint = call.target.rules.name,
                          .status = call.status,
                          .content_bytes = call.received,
                          .answer_bytes = static_cast<std::size_t>(call.sent),
                          .duration = call.duration,
                          .address = call.address,
                          .outcome = to_string(call.result)});
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
    // No memory for a line of the log.
  }
}

void gateway_runtime::record_refusal(const server_request& request, int status) noexcept {
  if (options_.access == nullptr) return;
  try {
    const auto path = masked_target(request.target.text());
    options_.access->add({.method = request.method,
                          .path = path,
                          .status = status,
                          .content_bytes = request.body.size(),
                          .address = request.peer,
                          .outcome = to_string(outcome::refused)});
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
    // As above.
  }
}

bool gateway_runtime::is_trusted(std::string_view address) const noexcept {
  return std::ranges::find(options_.trusted_proxies, address) != options_.trusted_proxies.end();
}

bool gateway_runtime::keeping_waits(const route_runtime& target) const noexcept {
  const bool queued = target.options.write_behind.value_or(false);
  if (queued) return !options_.queue_never_waits;
  return options_.engine->store()->waits();
}

std::optional<timestamp> gateway_runtime::invalidation_time(const route_runtime& target,
                                                            const std::string& key) const {
  if (key.empty()) return std::nullopt;
  try {
    const auto entry = target.point.peek(arguments_of(key));
    return entry ? std::optional(entry->as_of()) : std::nullopt;
  } catch (const std::exception&) {
    return timestamp::max();  // nothing is known to be valid
  }
}

namespace {

kept_response kept_from(answer<point_value>& source) {
  return {.response = std::move(source.value().response),
          .facts = {.as_of = source.as_of(),
                    .expires = source.expires(),
                    .cause = source.cause().code(),
                    .ref = decision_ref(source.provenance().decision)}};
}

}  // namespace

/// Copies the rows that a recovery needs. Returns whether memory has all of them.
bool gateway_runtime::is_in_memory(const route_runtime& target, const gateway_request& request) {
  try {
    (void)target.point.peek(arguments_of(request.key_text));
    if (!request.invalidation_key.empty())
      (void)target.point.peek(arguments_of(request.invalidation_key));
  } catch (const std::exception&) {
    return false;
  }
  return failover::memory_recall::current()->is_complete();
}

std::optional<stored_response> gateway_runtime::confirmable(const route_runtime& target,
                                                            const gateway_request& request) {
  if (!request.is_protected || !target.has_validators.load(std::memory_order_relaxed))
    return std::nullopt;
  try {
    failover::memory_recall recalled;
    (void)target.point.peek(arguments_of(request.key_text));
    const auto* const row = recalled.first_row();
    if (row == nullptr || !row->payload || row->payload_class != stored_response_class ||
        row->expire_on < now())
      return std::nullopt;
    auto response = decode(*row->payload);
    if (is_confirmable(target.rules, request, response)) return response;
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
    // It cannot be read, so the upstream sends the whole.
  }
  return std::nullopt;
}

std::optional<recovery_result> gateway_runtime::recover_from_memory(const route_runtime& target,
                                                                    pending_value& call,
                                                                    const gateway_request& request,
                                                                    cause_code cause) {
  failover::memory_recall recalled;
  if (!is_in_memory(target, request)) return std::nullopt;
  recalled.use();
  return recover(target, std::move(call), request.facts, request.invalidation_key, cause);
}

std::optional<recovery_result> gateway_runtime::read_from_memory(const route_runtime& target,
                                                                 const gateway_request& request,
                                                                 cause_code cause) {
  failover::memory_recall recalled;
  if (!is_in_memory(target, request)) return std::nullopt;
  recalled.use();
  return read(target, request, cause);
}

recovery_result gateway_runtime::recover(const route_runtime& target, pending_value call,
                                         const request_facts& request,
                                         const std::string& invalidation_key, cause_code cause) {
  recovery_scope scope(target.rules, request, now(), invalidation_time(target, invalidation_key));
  (void)take_last_decision();
  try {
    auto answer = cause == cause_code::late ? call.fail_late()
                                            : call.fail(std::make_exception_ptr(failed_request()));
    if (answer.has_value() && answer.source() == origin::stored) return {.kept = kept_from(answer)};
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
    // The exception of the failure: nothing can be served.
  }
  if (!scope.refusal().empty()) return {.refusal = scope.refusal()};
  const auto ref = take_last_decision();
  const auto reported = options_.decisions ? options_.decisions->find(ref) : std::nullopt;
  if (!reported || reported->miss == miss_reason::none) return {.refusal = "not-found"};
  return {.refusal = name_of(reported->miss)};
}

recovery_result gateway_runtime::read(const route_runtime& target, const gateway_request& request,
                                      cause_code cause) {
  try {
    auto answer = target.point.peek(arguments_of(request.key_text));
    if (!answer || !answer->has_value()) return {.refusal = "not-found"};
    recovery_scope scope(target.rules, request.facts, now(),
                         invalidation_time(target, request.invalidation_key));
    if (!scope.admits(answer->value(), answer->as_of())) return {.refusal = scope.refusal()};
    return {.kept = kept_response{
                .response = std::move(answer->value().response),
                .facts = {.as_of = answer->as_of(), .expires = answer->expires(), .cause = cause}}};
  } catch (const std::exception&) {
    return {.refusal = "read-failed"};
  }
}

recovery_result gateway_runtime::rehearse(const route_runtime& target, pending_value& call,
                                          const gateway_request& request) {
  recovery_scope scope(target.rules, request.facts, now(),
                       invalidation_time(target, request.invalidation_key));
  auto answer = call.rehearse();
  if (!answer) return {.refusal = scope.refusal()};
  if (answer->has_value()) return {.kept = kept_from(*answer)};
  // What is kept says that there is nothing, and the call has ended with that.
  call = target.point.begin(arguments_of(request.key_text));
  return {.refusal = "not-found"};
}

bool gateway_runtime::is_stored(const route_runtime& target, const std::string& key_text,
                                timestamp as_of) {
  try {
    const auto answer = target.point.peek(arguments_of(key_text));
    return answer && answer->as_of() >= as_of;
  } catch (const std::exception&) {
    return false;
  }
}

std::optional<invalidation> gateway_runtime::invalidation_of(std::string_view host,
                                                             std::string_view text) {
  const auto target = http::target::parse(text);
  if (!target) return std::nullopt;
  const auto* const match = find(host, target->path());
  if (match == nullptr || !match->options.enabled) return std::nullopt;
  const auto source = source_of(*target, host);
  return invalidation{.target = match,
                      .key_texts = route_keys::of_target(match->rules, source),
                      .masked = masked_target(target_text(match->rules, source))};
}

void gateway_runtime::invalidate(const std::vector<invalidation>& targets) {
  for (const auto& entry : targets) {
    const auto& target = *entry.target;
    const auto expires = longest_expiry(target.rules, target.options.expiry, now());
    for (const auto& key : entry.key_texts)
      target.point.prime(arguments_of(key),
                         point_value{.response = {.target = entry.masked, .invalid = "invalidated"},
                                     .expires = expires,
                                     .form = options_.form});
  }
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve::gateway
