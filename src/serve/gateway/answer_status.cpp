#include "serve/gateway/answer_status.hpp"

#include "base/local_host.hpp"

#include <chrono>
#include <string>

namespace HOLDFAST_NAMESPACE::detail::serve::gateway {

namespace {

std::string unix_time(timestamp time) {
  return "@" +
         std::to_string(std::chrono::floor<std::chrono::seconds>(time).time_since_epoch().count());
}

bool is_told(const route& rules, std::string_view client_address) {
  switch (rules.audience) {
    case status_audience::all:
      return true;
    case status_audience::loopback:
      return client_address == "unix" || is_local_host(std::string(client_address));
    case status_audience::none:
      break;
  }
  return false;
}

}  // namespace

void add_cache_status(const route& rules, std::string_view client_address,
                      const http::cache_status& status, std::string_view previous,
                      server_response& response) {
  if (is_told(rules, client_address))
    response.fields.add("Cache-Status", http::to_field(status, previous));
  else if (!previous.empty()) response.fields.add("Cache-Status", previous);
}

std::string holdfast_answer_field(const kept_answer_facts& facts) {
  auto field = "stored;as-of=" + unix_time(facts.as_of) + ";expires=" + unix_time(facts.expires) +
               ";cause=" + std::string(to_string(facts.cause));
  if (!facts.ref.empty()) field += ";ref=\"" + facts.ref + "\"";
  return field;
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve::gateway
