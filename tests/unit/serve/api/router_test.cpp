// Which endpoint a path reaches, and which rows a table refuses.

#include "serve/api/router.hpp"

#include <holdfast/error.hpp>

#include "support/failure_of.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace {

using namespace holdfast;
using namespace holdfast::detail::serve;
using test::failure_of;

server_response nothing(api_request&) { return {}; }

endpoint row(std::string_view method, std::string_view path) {
  return {.method = method, .path = path, .summary = "s", .answer = nothing};
}

struct Routes : ::testing::Test {
  endpoint_table table{};

  void SetUp() override {
    table.add(row("GET", "/healthz"));
    table.add(row("GET", "/v1/stores/{store}/doctor"));
    table.add(row("POST", "/v1/stores/{store}/clean"));
    table.add(row("GET", "/v1/stores/{store}/{name}"));
    table.add(row("GET", "/v1/stores/{store}/{name}/{key}"));
    table.add(row("PUT", "/v1/stores/{store}/{name}/{key}"));
    table.add({.method = "GET",
               .path = "/v1/events",
               .summary = "s",
               .start = [](std::shared_ptr<api_request>, responder) {}});
  }
  std::string find(std::string_view method, std::string_view path) {
    const auto found = router(table).find(method, path);
    if (found.row == nullptr) return "none; " + found.allowed;
    std::string text(found.row->path);
    for (const auto& [name, value] : found.parameters) text += " " + name + "=" + value;
    return text;
  }
};

TEST_F(Routes, AFixedSegmentIsPreferred) {
  EXPECT_EQ(find("GET", "/v1/stores/a/doctor"), "/v1/stores/{store}/doctor store=a");
  EXPECT_EQ(find("GET", "/v1/stores/a/b"), "/v1/stores/{store}/{name} store=a name=b");
  // A name that is also a fixed segment of another method.
  EXPECT_EQ(find("GET", "/v1/stores/a/clean"), "/v1/stores/{store}/{name} store=a name=clean");
  EXPECT_EQ(find("GET", "/v1/stores/a/clean/k"),
            "/v1/stores/{store}/{name}/{key} store=a name=clean key=k");
}

TEST_F(Routes, ParametersAreDecodedOnce) {
  EXPECT_EQ(find("GET", "/v1/stores/a%20b/%2541"), "/v1/stores/{store}/{name} store=a b name=%41");
  EXPECT_EQ(find("GET", "/v1/stores/%C3%A9/x+y"),
            "/v1/stores/{store}/{name} store=\xC3\xA9 name=x+y");
  const auto failure = failure_of([&] { (void)find("GET", "/v1/stores/a/%FF"); });
  EXPECT_EQ(failure.code(), errc::ill_formed_text);
  EXPECT_EQ(failure.path(), "name");
}

TEST_F(Routes, AnUnknownPathHasNoMethods) {
  for (const auto* path : {"/", "/v1", "/healthz/", "/v1/stores", "/v1/stores//doctor",
                           "/v1/stores/a/", "/v1/stores/a/b/c/d", "//healthz", "/HEALTHZ"})
    EXPECT_EQ(find("GET", path), "none; ") << path;
}

TEST_F(Routes, AnotherMethodIsToldWhichThereAre) {
  EXPECT_EQ(find("DELETE", "/v1/stores/a/n/k"), "none; GET, HEAD, OPTIONS, PUT");
  EXPECT_EQ(find("PUT", "/v1/stores/a/clean"), "none; GET, HEAD, OPTIONS, POST");
  EXPECT_EQ(find("get", "/healthz"), "none; GET, HEAD, OPTIONS");
}

TEST_F(Routes, HeadIsAnsweredByGet) {
  EXPECT_EQ(find("HEAD", "/healthz"), "/healthz");
  // A stream has no end, so its length cannot be told.
  EXPECT_EQ(find("HEAD", "/v1/events"), "none; GET, HEAD, OPTIONS");
}

TEST(EndpointTable, RefusesRowsThatCannotWork) {
  const auto reason = [](endpoint refused) {
    endpoint_table table;
    table.add(row("GET", "/a/{b}"));
    return failure_of([&] { table.add(std::move(refused)); }).message();
  };
  EXPECT_NE(reason(row("GET", "/a/{b}")).find("twice"), std::string::npos);
  EXPECT_NE(reason(row("PUT", "/a/{c}")).find("other names"), std::string::npos);
  EXPECT_NE(reason(row("GET", "a")).find("slash"), std::string::npos);
  EXPECT_NE(reason(row("GET", "/a//b")).find("not a name"), std::string::npos);
  EXPECT_NE(reason(row("GET", "/{x}/{x}")).find("twice"), std::string::npos);
  EXPECT_NE(reason(row("HEAD", "/x")).find("method"), std::string::npos);
  auto scope = row("GET", "/x/{a}");
  scope.scope = "store:{b}:read";
  EXPECT_NE(reason(scope).find("{b}"), std::string::npos);
  auto both = row("GET", "/x");
  both.start = [](std::shared_ptr<api_request>, responder) {};
  EXPECT_NE(reason(both).find("one of"), std::string::npos);
  auto schema = row("GET", "/x");
  schema.response_schema = "{\"type\":";
  EXPECT_NE(reason(schema).find("JSON"), std::string::npos);
  auto content = row("POST", "/x");
  content.request_schema = "{}";
  EXPECT_NE(reason(content).find("does not accept"), std::string::npos);
}

}  // namespace
