// The state of the server on a disk that is full: known tokens work, nothing is lost afterwards.

#include "support/eventually.hpp"
#include "support/limited_disk.hpp"
#include "unit/serve/auth_fixture.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <variant>

namespace {

using namespace holdfast;
using namespace holdfast::detail::serve;
using namespace std::chrono_literals;
using test::built_request;
using test::eventually;

TEST(ServeStateFault, AFullDisk) {
  test::limited_disk disk;
  test::auth_state state;
  auto options = state.options({}, 20ms);
  options.state_url = "sqlite://" + (disk.path() / "serve.db").string();
  identity auth(options);
  const auto token = add_token(auth.database(), {});
  auth.reload();
  const auto is_admitted = [&] {
    built_request request("GET", {{"Authorization", "Bearer " + token.secret}});
    return std::holds_alternative<caller>(auth.requests().identify(request.view()));
  };
  ASSERT_TRUE(is_admitted());

  disk.leave(0);
  constexpr int entries = 500;
  for (int i = 0; i < entries; ++i)
    auth.audit().record({.action = "a", .subject = std::string(500, 'x')});
  ASSERT_TRUE(eventually([&] { return auth.problem().has_value(); }));
  EXPECT_TRUE(is_admitted());
  bool refused = false;
  try {
    // The page that is in the log already may have room for one row.
    for (int i = 0; i < 100; ++i) (void)auth.sessions().start(auth.database(), "", "a");
  } catch (const error&) {
    refused = true;
  }
  EXPECT_TRUE(refused);
  auth.reload();  // reading works
  EXPECT_TRUE(is_admitted());
  EXPECT_EQ(auth.audit().lost(), 0U);

  disk.leave(64U << 20U);
  ASSERT_TRUE(eventually([&] { return auth.audit().is_empty(); }));
  ASSERT_TRUE(eventually([&] { return !auth.problem(); }));
  auto session = auth.database().read("test");
  EXPECT_EQ(list_audit(session, {}, 1'000).size(), static_cast<std::size_t>(entries));
  EXPECT_NE(state.log.text().find("the state database works again"), std::string::npos);
}

}  // namespace
