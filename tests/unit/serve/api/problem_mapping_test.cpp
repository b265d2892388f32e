// Exceptions as problem details: the status of each code, and who sees messages of a backend.

#include "serve/api/problem_mapping.hpp"

#include "serve/api/server_refusal.hpp"

#include <gtest/gtest.h>

#include <map>
#include <new>
#include <stdexcept>
#include <string>

namespace {

using namespace holdfast;
using namespace holdfast::detail::serve;

caller someone(role value) { return {.name = "n", .role = value, .identified = true}; }

TEST(ProblemMapping, EveryCodeHasItsStatus) {
  const std::map<errc, int> expected{
      {errc::invalid_argument, 400}, {errc::unsupported_type, 422}, {errc::out_of_range, 422},
      {errc::not_finite, 422},       {errc::ill_formed_text, 400},  {errc::duplicate, 409},
      {errc::too_deep, 422},         {errc::too_large, 413},        {errc::malformed, 400},
      {errc::tampered, 500},         {errc::not_found, 404},        {errc::unavailable, 503},
      {errc::timeout, 504},          {errc::grammar, 500},          {errc::missing_object, 503},
      {errc::permission, 500},       {errc::internal, 500}};
  EXPECT_EQ(expected.size(), static_cast<std::size_t>(errc::internal) + 1);
  for (const auto& [code, status] : expected) {
    EXPECT_EQ(status_of(error(code, "m")), status) << to_string(code);
    EXPECT_EQ(status_of(error(code, "m", {.in_doubt = true})), 503) << to_string(code);
  }
}

TEST(ProblemMapping, HasTheFieldsOfTheFailure) {
  const error failure(errc::invalid_argument, "must be positive", {.path = "args[2]"});
  const auto answer = problem_of(failure, {}, "r1");
  EXPECT_EQ(answer.body,
            R"({"type":"urn:holdfast:problem:invalid_argument","title":"Bad Request","status":400,)"
            R"("detail":"args[2]: must be positive","instance":"urn:holdfast:request:r1",)"
            R"("code":"invalid_argument","transient":false,"inDoubt":false,"path":"args[2]"})");
  EXPECT_FALSE(answer.fields.has("Retry-After"));
}

TEST(ProblemMapping, MessagesOfABackendAreForOperators) {
  const error failure(errc::timeout, "db7 did not answer", {.path = "p7", .backend_code = "57014"});
  for (const auto value : {role::viewer, role::application}) {
    const auto body = problem_of(failure, someone(value), "r").body;
    EXPECT_EQ(body.find("db7"), std::string::npos) << body;
    EXPECT_EQ(body.find("57014"), std::string::npos) << body;
    EXPECT_EQ(body.find("p7"), std::string::npos) << body;
  }
  for (const auto value : {role::operator_, role::admin}) {
    const auto body = problem_of(failure, someone(value), "r").body;
    EXPECT_NE(body.find("db7"), std::string::npos) << body;
    EXPECT_NE(body.find("\"backendCode\":\"57014\""), std::string::npos) << body;
  }
  // The role of a caller that is not identified does not count.
  EXPECT_EQ(problem_of(failure, {.role = role::admin}, "r").body.find("db7"), std::string::npos);
  // A message about the request itself is for everybody, unless a backend wrote it.
  EXPECT_NE(problem_of(error(errc::not_found, "there is no x"), {}, "r").body.find("no x"),
            std::string::npos);
  const error refused(errc::invalid_argument, "column y", {.backend_code = "22001"});
  EXPECT_EQ(problem_of(refused, {}, "r").body.find("column y"), std::string::npos);
}

TEST(ProblemMapping, RefusalsOfTheServerAreForAll) {
  const server_refusal refusal(errc::unavailable, "busy_key", "enough writes wait");
  for (const auto& client : {caller{}, someone(role::application), someone(role::admin)}) {
    const auto answer = problem_of(refusal, client, "r");
    EXPECT_EQ(answer.status, 503);
    EXPECT_EQ(answer.fields.find("Retry-After"), "1");
    for (const auto* part : {R"("detail":"enough writes wait")", R"("reason":"busy_key")",
                             R"("transient":true)", R"("inDoubt":false)"})
      EXPECT_NE(answer.body.find(part), std::string::npos) << answer.body;
  }
  const auto thrown = problem_of(std::make_exception_ptr(refusal), {}, "r");
  EXPECT_NE(thrown.body.find("busy_key"), std::string::npos) << thrown.body;
}

TEST(ProblemMapping, OtherExceptionsAreNotShown) {
  const auto answer = [](auto thrown) {
    return problem_of(std::make_exception_ptr(thrown), someone(role::admin), "r");
  };
  EXPECT_EQ(answer(std::runtime_error("secret")).status, 500);
  EXPECT_EQ(answer(std::runtime_error("secret")).body.find("secret"), std::string::npos);
  EXPECT_EQ(answer(std::bad_alloc()).status, 503);
  EXPECT_EQ(answer(7).status, 500);
  EXPECT_EQ(answer(error(errc::not_found, "m")).status, 404);
}

}  // namespace
