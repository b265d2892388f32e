#include "serve/api/health_answers.hpp"

#include "serve/api/endpoint.hpp"
#include "serve/api/json_writer.hpp"

#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve {

server_response liveness_answer(std::size_t hung_loops) {
  if (hung_loops == 0) return json_response(200, R"({"healthy":true})");
  return problem_response(503, std::to_string(hung_loops) + " loops do not react");
}

server_response readiness_answer(const std::vector<std::string>& missing) {
  json_writer out;
  out.begin_object().member("ready", missing.empty()).key("missing").begin_array();
  for (const auto& name : missing) out.text(name);
  auto answer = json_response(missing.empty() ? 200 : 503, out.end_array().end_object().take());
  if (!missing.empty()) answer.fields.add("Retry-After", "1");
  return answer;
}

server_response metrics_answer(std::string text) {
  server_response answer;
  answer.fields.add("Content-Type", "text/plain; version=0.0.4; charset=utf-8");
  answer.body = std::move(text);
  return answer;
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
