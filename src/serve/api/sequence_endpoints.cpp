#include "serve/api/sequence_endpoints.hpp"

#include <holdfast/error.hpp>

#include "sequence/id_range.hpp"
#include "serve/api/call_limit.hpp"
#include "serve/api/counter_rates.hpp"
#include "serve/api/endpoint_table.hpp"
#include "serve/api/json_reader.hpp"
#include "serve/api/json_writer.hpp"
#include "serve/api/sequence_cache.hpp"
#include "serve/api/store_location.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

using namespace std::chrono_literals;

constexpr std::int64_t max_count = 1'000'000;
constexpr std::int64_t max_listed_ids = 1000;
/// A worker waits no longer for a block, whatever the options say: the others need the worker.
constexpr auto longest_wait_for_block = 5s;

[[noreturn]] void refuse_member(std::string_view name, const std::string& problem) {
  throw error(errc::invalid_argument, problem, {.path = std::string(name)});
}

std::int64_t required_integer(json_object& body, std::string_view name) {
  const auto value = body.integer(name);
  if (!value) refuse_member(name, "is missing; give an integer of 64 bits");
  return *value;
}

// ---- drawing

std::int64_t count_of(const api_request& request) {
  if (request.body.empty()) return 1;
  auto body = json_object::parse(request.body);
  const auto count = body.integer("count").value_or(1);
  body.finish();
  if (count < 1 || count > max_count)
    refuse_member("count", "must be an integer from 1 to 1000000");
  return count;
}

/// Sequences belong to no tenant. A token of a tenant needs a scope that names the sequence.
void check_tenant(const api_request& request) {
  if (!request.caller.tenant.empty() && request.caller.scopes.empty())
    throw refused_request{.detail = "a token with a tenant needs the scope sequence:NAME:next"};
}

/// `["1","2",...]`. A thousand ids are most of the work of their request, so they are written
/// without the checks of json_writer.
std::string ids_json(std::int64_t first, std::int64_t step, std::int64_t count) {
  constexpr std::size_t longest = 20 + 3;  // with quotes and a comma
  std::string json(2 + static_cast<std::size_t>(count) * longest, '[');
  char* position = json.data() + 1;
  auto id = static_cast<std::uint64_t>(first);
  for (std::int64_t i = 0; i < count; ++i, id += static_cast<std::uint64_t>(step)) {
    if (i > 0) *position++ = ',';
    *position++ = '"';
    position = std::to_chars(position, position + 20, static_cast<std::int64_t>(id)).ptr;
    *position++ = '"';
  }
  *position++ = ']';
  json.resize(static_cast<std::size_t>(position - json.data()));
  return json;
}

server_response ids_response(std::int64_t first, std::int64_t step, std::int64_t count) {
  json_writer out;
  out.begin_object().key("first").wide(first).key("step").wide(step).member("count", count);
  if (count <= max_listed_ids) out.key("ids").raw(ids_json(first, step, count));
  out.end_object();
  return json_response(200, out.take());
}

server_response draw_from(open_sequence& sequence, std::int64_t count,
                          std::chrono::steady_clock::time_point deadline) {
  const auto block = sequence.ids.next_n(count, deadline);
  return ids_response(block.first(), block.step(), count);
}

server_response draw_from(open_sequence& sequence, std::int64_t count) {
  const auto wait =
      std::min<std::chrono::milliseconds>(sequence.options.wait, longest_wait_for_block);
  return draw_from(sequence, count, std::chrono::steady_clock::now() + wait);
}

std::optional<server_response> draw_now(sequence_cache& cache, const api_request& request) {
  check_tenant(request);
  const auto count = count_of(request);
  const auto sequence = cache.find(request.path("name"));
  if (!sequence) return std::nullopt;
  try {
    // With this deadline it does not wait.
    if (count > 1) return draw_from(*sequence, count, std::chrono::steady_clock::now());
    const auto id = sequence->ids.try_next();
    if (!id) return std::nullopt;
    return ids_response(*id, sequence->options.increment, 1);
  } catch (const error&) {
    return std::nullopt;  // a worker waits, opens it again, or finds the same error
  }
}

server_response draw(sequence_cache& cache, call_limit& calls, const api_request& request) {
  check_tenant(request);
  const auto count = count_of(request);
  const auto& name = request.path("name");
  const auto call = calls.begin();
  const auto sequence = cache.open(name);
  try {
    return draw_from(*sequence, count);
  } catch (const error& e) {
    // It was closed meanwhile, or its definition was changed, or its counter was lost and raised.
    const bool may_be_outdated =
        sequence->closed || e.code() == errc::invalid_argument || e.code() == errc::tampered;
    if (!may_be_outdated) throw;
    if (!sequence->closed) cache.close(name);
  }
  return draw_from(*cache.open(name), count);
}

// ---- looking

void write_state(json_writer& out, const counter_state& state) {
  out.key("counter").begin_object().key("last").wide(state.last).key("epoch").wide(state.epoch);
  out.end_object();
}

server_response list_sequences(services& shared, const api_request& request) {
  const auto& service = shared.find_sequences();
  const auto limit = static_cast<std::size_t>(request.query_integer("limit", 100, 1, 1000));
  // One more shows whether another page follows.
  auto counters = service.blocks->list(limit + 1, request.query("after").value_or(""));
  const bool has_more = counters.size() > limit;
  if (has_more) counters.resize(limit);
  json_writer out;
  out.begin_object().key("items").begin_array();
  for (const auto& counter : counters) {
    out.begin_object().member("name", counter.name);
    write_state(out, counter.state);
    out.end_object();
  }
  out.end_array().key("next");
  if (has_more) out.text(counters.back().name);
  else out.null();
  out.end_object();
  return json_response(200, out.take());
}

void write_limits(json_writer& out, const sequence_options& options,
                  const sequence::id_range& range) {
  out.key("start").wide(options.start).key("increment").wide(options.increment);
  out.key("end").wide(range.id(range.limit())).member("cycle", options.cycle);
}

server_response show_sequence(services& shared, sequence_cache& cache, counter_rates& rates,
                              const api_request& request) {
  const auto& name = request.path("name");
  const auto& service = shared.find_sequences();
  const auto options = cache.options_of(name);
  const auto state = service.blocks->peek(name);
  if (!state) throw error(errc::not_found, "there is no sequence of this name");
  const sequence::id_range range(options);
  const auto last = std::min(state->last, range.limit());
  const auto remaining = range.limit() - last;
  const auto rate = rates.record(name, state->last, std::chrono::steady_clock::now());
  json_writer out;
  out.begin_object().member("name", name).key("last");
  if (last == 0) out.null();
  else out.wide(range.id(last));
  write_state(out, *state);
  out.key("remaining").wide(remaining);
  write_limits(out, options, range);
  out.key("definition");
  if (const auto definition = service.blocks->definition(name)) out.text(*definition);
  else out.null();
  out.key("rate");
  if (rate) out.number(*rate);
  else out.null();
  out.key("secondsLeft");
  if (rate && *rate > 0 && !options.cycle) out.number(static_cast<double>(remaining) / *rate);
  else out.null();
  out.end_object();
  return json_response(200, out.take());
}

// ---- changing

template <class Change>
server_response audited(services& shared, const api_request& request, const char* action,
                        Change change) {
  const auto record = [&](std::uint64_t count, std::string result) {
    if (shared.audit != nullptr)
      shared.audit->record(request.caller, action, request.path("name"), count, std::move(result));
  };
  try {
    auto response = change();
    record(1, "done");
    return response;
  } catch (const error& e) {
    record(0, (e.code() == errc::duplicate ? "refused: " : "failed: ") +
                  std::string(to_string(e.code())));
    throw;
  }
}

server_response ensure_sequence(services& shared, sequence_cache& cache,
                                const api_request& request) {
  auto body = json_object::parse(request.body);
  const auto id = required_integer(body, "id");
  body.finish();
  const auto& name = request.path("name");
  return audited(shared, request, "sequence.ensure", [&] {
    const auto last = cache.open(name)->ids.ensure_at_least(id);
    cache.close(name);  // its lease may have ids below
    json_writer out;
    out.begin_object().key("last");
    if (last) out.wide(*last);
    else out.null();
    out.end_object();
    return json_response(200, out.take());
  });
}

server_response reset_sequence(services& shared, sequence_cache& cache,
                               const api_request& request) {
  auto body = json_object::parse(request.body);
  const counter_state expected{.last = required_integer(body, "last"),
                               .epoch = required_integer(body, "epoch")};
  const auto next = required_integer(body, "next");
  body.finish();
  if (expected.last < 0 || expected.epoch < 1)
    refuse_member(expected.last < 0 ? "last" : "epoch",
                  "is not that of a counter; GET the sequence shows it");
  const auto& name = request.path("name");
  return audited(shared, request, "sequence.reset", [&] {
    if (!shared.find_sequences().blocks->peek(name))
      throw error(errc::not_found, "there is no sequence of this name");
    cache.open(name)->ids.reset_unsafe(next, expected);
    cache.close(name);
    json_writer out;
    out.begin_object().key("next").wide(next).end_object();
    return json_response(200, out.take());
  });
}

}  // namespace

void add_sequence_endpoints(endpoint_table& table, services& shared,
                            const std::shared_ptr<sequence_cache>& cache) {
  const auto rates = std::make_shared<counter_rates>();
  const auto calls = std::make_shared<call_limit>();
  table.add(
      {.method = "GET",
       .path = "/v1/sequences",
       .summary = "The sequences with their counters",
       .roles = {role::viewer, role::operator_},
       .query = {{"after", parameter_type::text, "The member `next` of the page before"},
                 {"limit", parameter_type::integer, "1 to 1000, 100 if missing"}},
       .answer = [&shared](api_request& request) { return list_sequences(shared, request); }});
  table.add({.method = "GET",
             .path = "/v1/sequences/{name}",
             .summary = "The last id of a sequence, its limits, rate and definition",
             .roles = {role::viewer, role::operator_},
             .answer = [&shared, cache, rates](api_request& request) {
               return show_sequence(shared, *cache, *rates, request);
             }});
  table.add({.method = "POST",
             .path = "/v1/sequences/{name}/next",
             .summary = "Draws ids",
             .roles = {role::application},
             .scope = "sequence:{name}:next",
             .for_tenants = true,
             .accepts = {"application/json"},
             .statuses = {200, 422, 504},
             .answer = answer_refusals(
                 [cache, calls](api_request& request) { return draw(*cache, *calls, request); }),
             .answer_now = answer_refusals(
                 [cache](api_request& request) { return draw_now(*cache, request); })});
  table.add({.method = "POST",
             .path = "/v1/sequences/{name}/ensure",
             .summary = "Makes sure that no id up to this one is drawn from now on",
             .roles = {role::operator_},
             .accepts = {"application/json"},
             .statuses = {200, 422},
             .answer = [&shared, cache](api_request& request) {
               return ensure_sequence(shared, *cache, request);
             }});
  table.add({.method = "POST",
             .path = "/v1/sequences/{name}/reset",
             .summary = "Sets a sequence back, so that ids can repeat",
             .roles = {role::admin},
             .accepts = {"application/json"},
             .statuses = {200, 409, 422},
             .answer = [&shared, cache](api_request& request) {
               return reset_sequence(shared, *cache, request);
             }});
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
