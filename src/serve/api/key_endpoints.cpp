#include "serve/api/key_endpoints.hpp"

#include <holdfast/error.hpp>
#include <holdfast/key/batch.hpp>

#include "serve/api/endpoint_table.hpp"
#include "serve/api/json_reader.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

constexpr std::size_t max_case_bytes = std::size_t{1} << 20U;
constexpr std::size_t max_batch_bytes = std::size_t{16} << 20U;
/// The answer of an invalid line is much longer than the line, so bytes alone do not bound it.
constexpr std::size_t max_cases = 100'000;

template <class Value, std::size_t Size>
Value choose(const api_request& request, std::string_view parameter,
             const std::array<std::pair<std::string_view, Value>, Size>& choices, bool required) {
  const auto text = request.query(parameter);
  if (!text && !required) return choices.front().second;
  const auto it = std::ranges::find(choices, text.value_or(""),
                                    [](const auto& choice) { return choice.first; });
  if (it != choices.end()) return it->second;
  std::string names;
  for (const auto& choice : choices) names.append(names.empty() ? "" : ", ").append(choice.first);
  throw error(errc::invalid_argument, "must be one of " + names, {.path = std::string(parameter)});
}

holdfast::key::batch_options batch_options_of(const api_request& request) {
  constexpr std::array<std::pair<std::string_view, holdfast::key::scheme>, 4> schemes{
      {{"failover", holdfast::key::scheme::failover},
       {"cachekit-auto", holdfast::key::scheme::cachekit_auto},
       {"interop", holdfast::key::scheme::interop},
       {"interop-value", holdfast::key::scheme::interop_value}}};
  constexpr std::array<std::pair<std::string_view, holdfast::key::dialect>, 3> dialects{
      {{"current", holdfast::key::dialect::current},
       {"py_0_17", holdfast::key::dialect::py_0_17},
       {"v1_0", holdfast::key::dialect::v1_0}}};
  constexpr std::array<std::pair<std::string_view, holdfast::key::style>, 2> styles{
      {{"escaped", holdfast::key::style::escaped}, {"exact", holdfast::key::style::exact}}};
  holdfast::key::batch_options options;
  options.scheme = choose(request, "scheme", schemes, true);
  options.dialect = choose(request, "dialect", dialects, false);
  options.style = choose(request, "style", styles, false);
  return options;
}

errc code_named(std::string_view name) {
  for (int code = 0; code < static_cast<int>(errc::internal); ++code) {
    if (to_string(static_cast<errc>(code)) == name) return static_cast<errc>(code);
  }
  return errc::internal;
}

/// A batch describes the error of a case in its line. The error of a single case is the answer.
void throw_if_refused(const std::string& line) {
  auto answer = json_object::parse(line);
  auto refusal = answer.object("error");
  if (!refusal) return;
  throw error(code_named(refusal->text("code").value_or("")),
              refusal->text("message").value_or("the case is invalid"),
              {.path = refusal->text("path").value_or("")});
}

server_response answer_case(holdfast::key::batch& batch, const std::string& body) {
  if (body.size() > max_case_bytes)
    throw error(errc::too_large,
                "a case has at most 1 MiB; send several as application/x-ndjson, with at most 16 "
                "MiB together");
  std::string line;
  batch.run(body, line);
  throw_if_refused(line);
  line.pop_back();  // the line break
  return json_response(200, std::move(line));
}

server_response answer_lines(holdfast::key::batch& batch, std::string_view body) {
  std::string answers;
  for (std::size_t count = 0; !body.empty(); ++count) {
    if (count == max_cases)
      throw error(errc::too_large, "there are more than 100,000 lines; send several requests");
    const auto line = body.substr(0, body.find('\n'));
    batch.run(line, answers);
    body.remove_prefix(std::min(body.size(), line.size() + 1));
  }
  server_response response;
  response.fields.add("Content-Type", "application/x-ndjson");
  response.body = std::move(answers);
  return response;
}

bool is_lines(const api_request& request) {
  const auto type = request.fields.find("content-type").value_or("");
  return http::equals_ignoring_case(http::trim(type.substr(0, type.find(';'))),
                                    "application/x-ndjson");
}

}  // namespace

void add_key_endpoints(endpoint_table& table, [[maybe_unused]] services& shared) {
  table.add(
      {.method = "POST",
       .path = "/v1/keys",
       .summary = "Makes the key of a case, or of each line, as `holdfast key batch` does",
       .roles = {role::operator_, role::application},
       .scope = "key:make",
       .for_tenants = true,
       .query = {{"scheme", parameter_type::text,
                  "failover, cachekit-auto, interop or interop-value"},
                 {"style", parameter_type::text, "escaped or exact, for failover"},
                 {"dialect", parameter_type::text, "current, py_0_17 or v1_0, for cachekit-auto"}},
       .accepts = {"application/json", "application/x-ndjson"},
       .statuses = {200, 422},
       .max_body = max_batch_bytes,
       .answer = [](api_request& request) {
         holdfast::key::batch batch(batch_options_of(request));
         return is_lines(request) ? answer_lines(batch, request.body)
                                  : answer_case(batch, request.body);
       }});
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
