#include "serve/api/outbox_claims.hpp"

#include <holdfast/error.hpp>

#include "serve/api/claim_polls.hpp"
#include "serve/api/endpoint_table.hpp"
#include "serve/api/json_reader.hpp"
#include "serve/api/outbox_access.hpp"
#include "serve/api/problem_mapping.hpp"

#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

constexpr std::chrono::milliseconds longest_wait = std::chrono::seconds(60);

/// A claim, and how long it may wait.
struct waiting_claim {
  claim_request claim{};
  std::chrono::milliseconds wait{};
};

waiting_claim read_claim(const outbox_service& service, const api_request& request) {
  auto body = json_object::parse(request.body);
  claim_request claim;
  claim.lane = checked_lane(service, body.integer("lane").value_or(0));
  claim.most = checked_count(body, "most", claim.most);
  claim.run = checked_count(body, "run", claim.run);
  claim.lease = body.duration("lease").value_or(claim.lease);
  claim.owner = body.text("owner").value_or("");
  const auto wait = body.duration("wait").value_or(std::chrono::milliseconds(0));
  body.finish();
  if (wait > longest_wait)
    throw error(errc::invalid_argument, "must be at most 60s", {.path = "wait"});
  return {.claim = std::move(claim), .wait = wait};
}

/// On a loop thread: reads the request, and leaves the rest to others.
void start_claim(services& shared, claim_polls& polls, const std::shared_ptr<api_request>& request,
                 responder answer) {
  try {
    if (auto refusal = refuse_tenant(*request)) {
      answer.answer(*std::move(refusal));
      return;
    }
    auto& service = shared.find_outbox(request->path("outbox"));
    auto [claim, wait] = read_claim(service, *request);
    polls.start(service, std::move(claim), wait, request, std::move(answer));
  } catch (...) {
    answer.answer(problem_of(std::current_exception(), request->caller, request->reference));
  }
}

}  // namespace

void add_outbox_claim_endpoints(endpoint_table& table, services& shared, claim_polls& polls) {
  table.add(
      {.method = "POST",
       .path = "/v1/outboxes/{outbox}/claims",
       .summary = "Claims due events of a lane; with wait, waits until there are some",
       .roles = {role::application},
       .scope = "outbox:{outbox}:work",
       .for_tenants = true,
       .accepts = {"application/json"},
       .statuses = {200, 504},
       .start = [&shared, &polls](const std::shared_ptr<api_request>& request, responder answer) {
         start_claim(shared, polls, request, std::move(answer));
       }});
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
