// Publishing over HTTP: JSON, CloudEvents in three modes, ids, and what is refused.

#include <holdfast/clock.hpp>

#include "base/uuid.hpp"
#include "support/outbox_api.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace {

using namespace holdfast;
using namespace holdfast::detail::serve;
using test::outbox_api;

constexpr const char* path = "/v1/outboxes/orders/events";

/// Sends content with fields of a test's choice.
client_response publish_with(outbox_api& api, const std::string& body,
                             const std::vector<std::pair<std::string, std::string>>& fields) {
  client_request request{.method = "POST", .target = path, .body = body};
  request.fields.add("Authorization", "Bearer app");
  for (const auto& [name, value] : fields) request.fields.add(name, value);
  http_client client("http://" + api.server->address(), {});
  return client.send(request, std::chrono::steady_clock::now() + std::chrono::seconds(60));
}

/// The only event of the outbox.
event only_event(const outbox_api& api) {
  const auto page = api.orders().admin().scan();
  EXPECT_EQ(page.records.size(), 1U);
  return page.records.empty() ? event{} : page.records.front().details.event;
}

TEST(OutboxPublish, KeepsEveryFieldOfAnEvent) {
  outbox_api api;
  const auto response =
      api.send("POST", "/events", "app",
               R"({"type":"order.paid","key":"order-7","id":"0190A1B2-0000-7000-8000-000000000001",
          "payload": {"euro": 30.10, "big": 12345678901234567},"headers":{"tenant":"acme"},
          "schema":"order/2","aggregateType":"order","aggregateId":"7","timeToLive":"7d"})");
  EXPECT_EQ(response.status, 201) << response.body;
  EXPECT_EQ(response.body, R"({"id":"0190a1b2-0000-7000-8000-000000000001","status":"added"})");
  const auto event = only_event(api);
  EXPECT_EQ(event.type, "order.paid");
  EXPECT_EQ(event.key, "order-7");
  EXPECT_EQ(event.payload, R"({"euro": 30.10, "big": 12345678901234567})");
  EXPECT_EQ(event.headers.at("tenant"), "acme");
  EXPECT_EQ(event.schema, "order/2");
  EXPECT_EQ(event.aggregate_type, "order");
  EXPECT_EQ(event.aggregate_id, "7");
  EXPECT_EQ(event.time_to_live, std::chrono::days(7));
}

TEST(OutboxPublish, APublishedIdIsADuplicate) {
  outbox_api api;
  const std::string body = R"({"type":"t","id":"0190a1b2-0000-7000-8000-000000000001"})";
  EXPECT_EQ(api.send("POST", "/events", "app", body).status, 201);
  const auto again = api.send("POST", "/events", "app", body);
  EXPECT_EQ(again.status, 200);
  EXPECT_EQ(outbox_api::json(again)["status"], "duplicate");
}

TEST(OutboxPublish, AnIdempotencyKeyIsTheId) {
  outbox_api api;
  const auto send = [&](const std::string& key) {
    return publish_with(api, R"({"type":"t"})",
                        {{"Content-Type", "application/json"}, {"Idempotency-Key", key}});
  };
  const auto of_uuid = send("\"0190A1B2-0000-7000-8000-000000000001\"");
  EXPECT_EQ(outbox_api::json(of_uuid)["id"], "0190a1b2-0000-7000-8000-000000000001");
  EXPECT_EQ(send("0190a1b2-0000-7000-8000-000000000001").status, 200);
  const auto bare = send("payment 7");
  EXPECT_EQ(bare.status, 201);
  EXPECT_EQ(outbox_api::json(bare)["id"],
            detail::uuid_v5(detail::uuid_namespace_oid, std::string("app\0payment 7", 13)));
  EXPECT_EQ(send("\"payment 7\"").status, 200);
  EXPECT_EQ(send("\"unfinished").status, 400);
  EXPECT_EQ(send(std::string(300, 'x')).status, 400);
}

TEST(OutboxPublish, TheKeyOfABatchMakesTheIdsOfItsEvents) {
  outbox_api api;
  const auto send = [&] {
    return publish_with(api, R"([{"type":"a"},{"type":"b"}])",
                        {{"Content-Type", "application/json"}, {"Idempotency-Key", "k"}});
  };
  const auto first = outbox_api::json(send());
  EXPECT_NE(first["items"][0]["id"], first["items"][1]["id"]);
  const auto second = send();
  EXPECT_EQ(second.status, 207);
  const auto repeated = outbox_api::json(second);
  for (const auto& item : repeated["items"]) EXPECT_EQ(item["status"], "duplicate");
}

TEST(OutboxPublish, ReadsAStructuredCloudEvent) {
  outbox_api api;
  const auto response = publish_with(
      api,
      R"({"specversion":"1.0","id":"A 7","source":"/shop","type":"order.paid","partitionkey":"order-7",
          "subject":"7","dataschema":"s/1","traceparent":"00-ab","sampled":true,
          "data":{"euro":30.10}})",
      {{"Content-Type", "application/cloudevents+json; charset=utf-8"}});
  EXPECT_EQ(response.status, 201) << response.body;
  const auto event = only_event(api);
  EXPECT_EQ(event.key, "order-7");
  EXPECT_EQ(event.aggregate_id, "7");
  EXPECT_EQ(event.schema, "s/1");
  EXPECT_EQ(event.payload, R"({"euro":30.10})");
  EXPECT_EQ(event.headers.at("source"), "/shop");
  EXPECT_EQ(event.headers.at("id"), "A 7");
  EXPECT_EQ(event.headers.at("traceparent"), "00-ab");
  EXPECT_EQ(event.headers.at("sampled"), "true");
  EXPECT_EQ(event.id,
            detail::uuid_v5(detail::uuid_namespace_oid, std::string("app\0/shop\0A 7", 13)));
}

TEST(OutboxPublish, ReadsABinaryCloudEvent) {
  outbox_api api;
  const std::string payload("\x00\xff\x01", 3);
  const auto response = publish_with(api, payload,
                                     {{"Content-Type", "application/octet-stream"},
                                      {"ce-specversion", "1.0"},
                                      {"ce-id", "0190a1b2-0000-7000-8000-000000000001"},
                                      {"ce-source", "/shop"},
                                      {"ce-type", "order.paid"},
                                      {"CE-PartitionKey", "f%C3%BCr"}});
  EXPECT_EQ(response.status, 201) << response.body;
  const auto event = only_event(api);
  EXPECT_EQ(event.payload, payload);
  EXPECT_EQ(event.content_type, "application/octet-stream");
  EXPECT_EQ(event.key, "f\xC3\xBCr");
  EXPECT_EQ(event.id, "0190a1b2-0000-7000-8000-000000000001");
}

TEST(OutboxPublish, ReadsABatchOfCloudEventsAndOtherPayloads) {
  outbox_api api;
  const auto response = publish_with(
      api,
      R"([{"specversion":"1.0","id":"1","source":"s","type":"a","data_base64":"AAEC","datacontenttype":"image/png"},
          {"specversion":"1.0","id":"2","source":"s","type":"b","data":"hello","datacontenttype":"text/plain"},
          {"specversion":"1.0","id":"3","source":"s","type":"c"}])",
      {{"Content-Type", "application/cloudevents-batch+json"}});
  EXPECT_EQ(response.status, 207) << response.body;
  std::map<std::string, std::string> payloads;
  for (const auto& record : api.orders().admin().scan().records)
    payloads[record.details.event.type] = record.details.event.payload;
  EXPECT_EQ(payloads["a"], std::string("\x00\x01\x02", 3));
  EXPECT_EQ(payloads["b"], "hello");
  EXPECT_EQ(payloads["c"], "");
}

struct bad_input {
  const char* type;
  const char* body;
  int status;
  /// A part of the detail.
  const char* says;
};

TEST(OutboxPublish, RefusesBadInputWithOneClearLine) {
  outbox_api api;
  const bad_input inputs[]{
      {"application/json", "{", 400, "not JSON"},
      {"application/json", "7", 400, "must be a JSON object"},
      {"application/json", "{}", 400, "type"},
      {"application/json", R"({"type":7})", 400, "must be a text"},
      {"application/json", R"({"type":""})", 400, "type of an event is empty"},
      {"application/json", R"({"type":"t","id":"x"})", 400, "is not an event id"},
      {"application/json", R"({"type":"t","dealy":"3s"})", 400, "did you mean delay"},
      {"application/json", R"({"type":"t","delay":"soon"})", 400, "must be a duration"},
      {"application/json", R"({"type":"t","delay":"9999999d"})", 400, "ten years"},
      {"application/json", R"({"type":"t","headers":["a"]})", 400, "headers"},
      {"application/json", R"({"type":"t","payload":1,"payloadBase64":"AA=="})", 400, "excludes"},
      {"application/json", R"({"type":"t","payloadBase64":"A"})", 400, "not Base64"},
      {"application/json", R"({"type":"t","contentType":"text/plain","payload":{}})", 400,
       "must be a text"},
      {"application/json", "[]", 400, "empty"},
      {"application/json", R"([{"type":"t"},{"type":"t","id":"x"}])", 400, "[1]"},
      {"application/json", R"([{"type":"t","id":"x"}])", 400, "[0]"},
      {"application/json", R"([{"type":"t"},7])", 400, "[1]"},
      {"application/cloudevents+json", R"({"id":"1","source":"s","type":"t"})", 400,
       "specversion: is required"},
      {"application/cloudevents+json", R"({"specversion":"0.3","id":"1","source":"s","type":"t"})",
       400, "must be 1.0"},
      {"application/cloudevents+json", R"({"specversion":"1.0","source":"s","type":"t"})", 400,
       "id: is required"},
      {"application/cloudevents+json", R"({"specversion":"1.0","id":"1","type":"t"})", 400,
       "source: is required"},
      {"application/cloudevents+json",
       R"({"specversion":"1.0","id":"1","source":"s","type":"t","Bad-Name":"x"})", 400, "Bad-Name"},
      {"application/cloudevents+json",
       R"({"specversion":"1.0","id":"1","source":"s","type":"t","x":{}})", 400, "x: must be"},
      {"text/plain", "hello", 415, "ce-specversion"},
  };
  for (const auto& input : inputs) {
    const auto response = publish_with(api, input.body, {{"Content-Type", input.type}});
    EXPECT_EQ(response.status, input.status) << input.body << "\n" << response.body;
    const auto detail = outbox_api::json(response).value("detail", "");
    EXPECT_NE(detail.find(input.says), std::string::npos) << input.body << "\n" << detail;
    EXPECT_EQ(detail.find('\n'), std::string::npos) << detail;
  }
  EXPECT_EQ(api.orders().admin().stats().events, 0U);
}

TEST(OutboxPublish, RefusesWhatIsTooLarge) {
  outbox_api api;
  std::string batch = "[";
  for (int i = 0; i < 1001; ++i) batch += R"({"type":"t"},)";
  batch.back() = ']';
  EXPECT_EQ(api.send("POST", "/events", "app", batch).status, 413);
  const auto payload = R"({"type":"t","payload":")" + std::string(300 << 10, 'x') + "\"}";
  const auto large = api.send("POST", "/events", "app", payload);
  EXPECT_EQ(large.status, 413);
  EXPECT_NE(large.body.find("at most 262144 bytes"), std::string::npos) << large.body;
  for (const auto& content : {"[" + payload + "]", "[" + payload + R"(,{"type":"t"}])"}) {
    const auto batch_of_large = api.send("POST", "/events", "app", content);
    EXPECT_EQ(batch_of_large.status, 413);
    EXPECT_NE(batch_of_large.body.find("\"path\":\"[0]\""), std::string::npos);
    EXPECT_EQ(batch_of_large.body.find("inline_limit"), std::string::npos) << batch_of_large.body;
  }
  const auto ticket =
      api.send("PUT", "/tickets/t1", "app", R"({"after":"1h","event":)" + payload + "}");
  EXPECT_EQ(ticket.status, 413);
  EXPECT_NE(ticket.body.find("at most 262144 bytes"), std::string::npos) << ticket.body;
  const auto body = R"({"type":"t","payload":")" + std::string(5 << 20, 'x') + "\"}";
  EXPECT_EQ(api.send("POST", "/events", "app", body).status, 413);
  EXPECT_EQ(api.orders().admin().stats().events, 0U);
}

TEST(OutboxPublish, AFullOutboxAsksToWait) {
  outbox_api api({.quota = {.events = 1}});
  EXPECT_EQ(api.send("POST", "/events", "app", R"({"type":"t"})").status, 201);
  const auto response = api.send("POST", "/events", "app", R"({"type":"t"})");
  EXPECT_EQ(response.status, 429) << response.body;
  EXPECT_TRUE(response.fields.has("Retry-After"));
  const auto batch = api.send("POST", "/events", "app", R"([{"type":"t"}])");
  EXPECT_EQ(batch.status, 207);
  const auto item = outbox_api::json(batch)["items"][0];
  EXPECT_EQ(item["status"], "refused");
  EXPECT_EQ(item["problem"]["transient"], true);
}

TEST(OutboxPublish, NeedsRoleScopeAndForTenantsAScopeThatNamesTheOutbox) {
  outbox_api api;
  const auto status = [&](const char* bearer) {
    return api.send("POST", "/events", bearer, R"({"type":"t"})").status;
  };
  EXPECT_EQ(status("viewer"), 403);
  EXPECT_EQ(status("operator"), 403);
  EXPECT_EQ(status("app outbox:mails:publish"), 403);
  EXPECT_EQ(status("app outbox:orders:work"), 403);
  EXPECT_EQ(status("app outbox:*:publish"), 201);
  EXPECT_EQ(status("app @acme"), 403);
  EXPECT_EQ(status("app @acme,outbox:*:publish"), 403);
  EXPECT_EQ(status("app @acme,outbox:orders:publish"), 201);
  EXPECT_EQ(api.server->send("POST", "/v1/outboxes/none/events", "app", "{}").status, 404);
}

}  // namespace
