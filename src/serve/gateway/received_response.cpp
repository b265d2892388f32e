#include "serve/gateway/received_response.hpp"

#include "http/date.hpp"
#include "serve/gateway/forwarding.hpp"

#include <chrono>

namespace HOLDFAST_NAMESPACE::detail::serve::gateway {

void received_response::read_head(const http::response_head& head, timestamp now) {
  status = head.status;
  fields = passed_response(head.fields);
  if (!fields.has("date"))
    fields.add("Date", http::format_date(std::chrono::floor<std::chrono::seconds>(now)));
  if (const auto text = head.fields.find("content-length")) length = http::parse_digits(*text);
}

bool received_response::is_event_stream() const {
  const auto type = fields.find("content-type");
  return type && http::equals_ignoring_case(type->substr(0, 17), "text/event-stream");
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve::gateway
