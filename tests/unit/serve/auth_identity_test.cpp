// The identity as a whole: restarts, two processes on one state, a state that fails.

#include <holdfast/error.hpp>

#include "serve/auth/identity.hpp"
#include "support/eventually.hpp"
#include "support/failure_of.hpp"
#include "support/scoped_environment.hpp"
#include "unit/serve/auth_fixture.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace holdfast;
using namespace holdfast::detail::serve;
using namespace std::chrono_literals;
using test::auth_state;
using test::built_request;
using test::eventually;
using test::failure_of;

class AuthIdentity : public ::testing::Test {
 protected:
  auth_state state{};

  /// 0 for an identified caller, 1 for another, else the status of the refusal.
  static int verdict(identity& auth, std::string_view name, const std::string& value) {
    built_request request("GET", {{name, value}});
    const auto result = auth.requests().identify(request.view());
    if (const auto* refusal = std::get_if<server_response>(&result)) return refusal->status;
    return std::get<caller>(result).identified ? 0 : 1;
  }
  static int by_token(identity& auth, const std::string& secret) {
    return verdict(auth, "Authorization", "Bearer " + secret);
  }
  static int by_cookie(identity& auth, const std::string& cookie) {
    return verdict(auth, "Cookie", "holdfast=" + cookie);
  }
  static unsigned mode_of(const std::string& path) {
    struct stat status{};
    return ::stat(path.c_str(), &status) == 0 ? status.st_mode & 07777U : 0;
  }
};

TEST_F(AuthIdentity, ARestartKeepsTokensSessionsAndTheAuditLog) {
  std::string secret;
  std::string cookie;
  std::string ended;
  {
    identity auth(state.options());
    const auto token = add_token(auth.database(), {.name = "ops", .role = role::operator_});
    secret = token.secret;
    auth.reload();
    cookie = auth.sessions().start(auth.database(), token.record.id, "ops");
    ended = auth.sessions().start(auth.database(), token.record.id, "ops");
    auth.sessions().end(auth.database(), ended);
    state.clock->advance(20min);
    EXPECT_EQ(by_cookie(auth, cookie), 0);  // only in memory until the end
    auth.audit().record({.action = "last"});
  }
  state.clock->advance(20min);
  identity auth(state.options());
  EXPECT_EQ(by_token(auth, secret), 0);
  EXPECT_EQ(by_cookie(auth, cookie), 0);
  EXPECT_EQ(by_cookie(auth, ended), 1);
  auto session = auth.database().read("test");
  EXPECT_EQ(list_audit(session, {}, 10).size(), 1U);
}

TEST_F(AuthIdentity, AnotherProcessSeesChanges) {
  identity first(state.options({}, 20ms));
  identity second(state.options({}, 20ms));
  const auto token = add_token(first.database(), {.name = "ops"});
  ASSERT_TRUE(eventually([&] { return by_token(second, token.secret) == 0; }));
  const auto cookie = first.sessions().start(first.database(), token.record.id, "ops");
  ASSERT_TRUE(eventually([&] { return by_cookie(second, cookie) == 0; }));
  second.sessions().end(second.database(), cookie);
  ASSERT_TRUE(eventually([&] { return by_cookie(first, cookie) == 1; }));
  // The command line, which has a state database and no identity.
  state_database other(
      {.url = state.url(), .clock = state.clock, .log = std::make_shared<const logger>()});
  ASSERT_TRUE(revoke_token(other, token.record.id));
  EXPECT_TRUE(eventually([&] { return by_token(first, token.secret) == 401; }));
  EXPECT_TRUE(eventually([&] { return by_token(second, token.secret) == 401; }));
}

TEST_F(AuthIdentity, TheDefaultIntervalIsWithinTwoSeconds) {
  EXPECT_LE(identity_options{}.refresh_interval, 1s);
}

TEST_F(AuthIdentity, TwoProcessesWriteOneAuditLog) {
  identity first(state.options());
  identity second(state.options());
  {
    std::vector<std::jthread> threads;
    for (auto* auth : {&first, &second})
      threads.emplace_back([auth] {
        for (int i = 0; i < 200; ++i) {
          auth->audit().record({.action = "a"});
          if (i % 20 == 0) auth->audit().write_queue(auth->database());
        }
        auth->audit().write_queue(auth->database());
      });
  }
  auto session = first.database().read("test");
  EXPECT_EQ(list_audit(session, {}, 1'000).size(), 400U);
}

TEST_F(AuthIdentity, TheStateFileIsPrivate) {
  const identity auth(state.options());
  EXPECT_EQ(mode_of(state.file()), 0600U);
}

TEST_F(AuthIdentity, TheDefaultStateIsBelowHomeOrTheStateDirectory) {
  const auto home = (state.directory.path() / "h o%me?").string();
  std::filesystem::create_directory(home);
  {
    const test::scoped_environment no_directory("STATE_DIRECTORY", "");
    const test::scoped_environment set_home("HOME", home.c_str());
    auto options = state.options();
    options.state_url.clear();
    const identity auth(options);
    EXPECT_FALSE(auth.problem());
    EXPECT_EQ(mode_of(home + "/.local/state/holdfast"), 0700U);
    EXPECT_EQ(mode_of(home + "/.local/state/holdfast/serve.db"), 0600U);
    const test::scoped_environment set_directory("STATE_DIRECTORY", "/var/lib/a:/var/lib/b");
    EXPECT_EQ(default_state_url(false), "sqlite:///var/lib/a/serve.db");
  }
  const test::scoped_environment no_directory("STATE_DIRECTORY", "");
  const test::scoped_environment no_home("HOME", "");
  EXPECT_EQ(failure_of([] { (void)default_state_url(false); }).path(), "state");
}

TEST_F(AuthIdentity, AStateThatOthersMayChangeIsRefused) {
  std::string secret;
  {
    identity auth(state.options());
    secret = add_token(auth.database(), {}).secret;
  }
  ASSERT_EQ(::chmod(state.file().c_str(), 0646), 0);
  identity auth(state.options());
  EXPECT_EQ(by_token(auth, secret), 503);
  EXPECT_NE(auth.problem().value_or("").find("chmod 600"), std::string::npos);
}

TEST_F(AuthIdentity, AnUnusableStateClosesTheDoorAndOpensItLater) {
  std::string secret;
  {
    identity auth(state.options());
    secret = add_token(auth.database(), {}).secret;
  }
  const auto saved = state.file() + ".saved";
  for (const bool corrupt : {true, false}) {
    std::filesystem::rename(state.file(), saved);
    if (corrupt) std::ofstream(state.file()) << std::string(8192, 'x');
    else std::filesystem::create_directory(state.file());
    identity auth(state.options({}, 20ms));
    ASSERT_TRUE(auth.problem());
    EXPECT_EQ(by_token(auth, secret), 503);
    EXPECT_EQ(verdict(auth, "X", "y"), 1);  // public endpoints work
    EXPECT_THROW((void)auth.sessions().start(auth.database(), "", "x"), error);
    EXPECT_NE(state.log.text().find("the state database does not work"), std::string::npos);
    std::filesystem::remove(state.file());
    std::filesystem::rename(saved, state.file());
    EXPECT_TRUE(eventually([&] { return by_token(auth, secret) == 0; }));
    EXPECT_TRUE(eventually([&] { return !auth.problem(); }));
  }
}

TEST_F(AuthIdentity, KnownTokensSurviveAStateThatFails) {
  identity auth(state.options());
  const auto secret = add_token(auth.database(), {.lifetime = 1h}).secret;
  auth.reload();
  const auto cookie = auth.sessions().start(auth.database(), "", "first-start");
  {
    auto session = auth.database().write("test");
    session.connection().run("DROP TABLE HOLDFAST_SERVE_CHANGE");
  }
  EXPECT_THROW(auth.reload(), error);
  EXPECT_TRUE(auth.problem());
  EXPECT_EQ(by_token(auth, secret), 0);
  EXPECT_EQ(by_cookie(auth, cookie), 0);
  state.clock->advance(1h);
  EXPECT_EQ(by_token(auth, secret), 401);
}

TEST_F(AuthIdentity, AReplacedFileIsOpenedAgain) {
  identity auth(state.options({}, 20ms));
  const auto secret = add_token(auth.database(), {}).secret;
  ASSERT_TRUE(eventually([&] { return by_token(auth, secret) == 0; }));
  for (const auto* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(state.file() + suffix);
  EXPECT_TRUE(eventually([&] { return by_token(auth, secret) == 401; }));
  EXPECT_TRUE(eventually([&] { return !auth.problem(); }));
  const auto other = add_token(auth.database(), {}).secret;
  EXPECT_TRUE(eventually([&] { return by_token(auth, other) == 0; }));
}

TEST_F(AuthIdentity, OtherKindsOfStateAreRefused) {
  for (const auto* url : {"memory:", "redis://127.0.0.1", "nonsense:x", "sqlite:"}) {
    auto options = state.options();
    options.state_url = url;
    EXPECT_EQ(failure_of([&] { const identity auth(options); }).code(), errc::invalid_argument)
        << url;
  }
}

TEST_F(AuthIdentity, TheFirstStartGetsCredentialsOnce) {
  identity auth(state.options());
  const auto credentials = auth.create_first_credentials("http://127.0.0.1:7360");
  ASSERT_TRUE(credentials);
  EXPECT_EQ(by_token(auth, credentials->token), 0);
  EXPECT_FALSE(auth.create_first_credentials("http://127.0.0.1:7360"));
  const std::string begin = "http://127.0.0.1:7360/#sign-in=";
  ASSERT_TRUE(credentials->link.starts_with(begin));
  const auto secret = credentials->link.substr(begin.size());
  EXPECT_EQ(secret.size(), 43U);
  EXPECT_FALSE(auth.use_sign_in_link(secret.substr(1)));
  EXPECT_FALSE(auth.use_sign_in_link(""));
  EXPECT_TRUE(auth.use_sign_in_link(secret));
  EXPECT_FALSE(auth.use_sign_in_link(secret));
  for (const auto& text : {secret, credentials->token.substr(12)})
    EXPECT_EQ(state.log.text().find(text), std::string::npos);
  state.clock->advance(24h);
  EXPECT_EQ(by_token(auth, credentials->token), 401);
  EXPECT_TRUE(auth.create_first_credentials("http://127.0.0.1:7360"));
}

TEST_F(AuthIdentity, TheLinkIsGoodForTenMinutes) {
  identity auth(state.options());
  const auto credentials = auth.create_first_credentials("http://x");
  const auto secret = credentials->link.substr(credentials->link.find('=') + 1);
  state.clock->advance(10min);
  EXPECT_FALSE(auth.use_sign_in_link(secret));
}

TEST_F(AuthIdentity, AServerWithTokensGetsNoCredentials) {
  identity auth(state.options());
  (void)add_token(auth.database(), {.role = role::viewer});
  EXPECT_FALSE(auth.create_first_credentials(""));
}

TEST_F(AuthIdentity, SessionsAreBounded) {
  identity auth(state.options());
  const auto first = auth.sessions().start(auth.database(), "", "a");
  state.clock->advance(2s);
  std::string last;
  for (std::size_t i = 0; i < max_sessions; ++i)
    last = auth.sessions().start(auth.database(), "", "a");
  EXPECT_EQ(by_cookie(auth, first), 1);
  EXPECT_EQ(by_cookie(auth, last), 0);
  auth.reload();
  EXPECT_EQ(by_cookie(auth, first), 1);
  EXPECT_EQ(by_cookie(auth, last), 0);
}

TEST_F(AuthIdentity, ASignOutThatTheStateRefusesIsRepeated) {
  identity auth(state.options());
  const auto cookie = auth.sessions().start(auth.database(), "", "a");
  const auto run = [&](const char* text) {
    auto session = auth.database().write("test");
    session.connection().run(text);
  };
  run("CREATE TRIGGER REFUSE BEFORE DELETE ON HOLDFAST_SERVE_SESSION BEGIN "
      "SELECT RAISE(ABORT, 'no'); END");
  EXPECT_THROW(auth.sessions().end(auth.database(), cookie), error);
  EXPECT_EQ(by_cookie(auth, cookie), 1);  // at once in this process
  run("DROP TRIGGER REFUSE");
  auth.reload();
  identity other(state.options());
  EXPECT_EQ(by_cookie(other, cookie), 1);
}

TEST_F(AuthIdentity, RequestsAndChangesAtTheSameTime) {
  identity auth(state.options({}, 1ms));
  const auto kept = add_token(auth.database(), {.name = "kept"});
  auth.reload();
  const auto cookie = auth.sessions().start(auth.database(), kept.record.id, "kept");
  std::atomic<bool> stopped = false;
  std::atomic<int> refusals = 0;
  {
    std::vector<std::jthread> clients;
    for (int i = 0; i < 3; ++i)
      clients.emplace_back([&] {
        while (!stopped) {
          if (by_token(auth, kept.secret) != 0 || by_cookie(auth, cookie) != 0) ++refusals;
          (void)auth.sign_ins().admit("10.0.0.1", state.clock->steady());
          auth.audit().record({.action = "a"});
        }
      });
    for (int i = 0; i < 20; ++i) {
      const auto token = add_token(auth.database(), {});
      auth.reload();
      EXPECT_EQ(by_token(auth, token.secret), 0);
      const auto other = auth.sessions().start(auth.database(), token.record.id, "x");
      EXPECT_EQ(by_cookie(auth, other), 0);
      auth.sessions().end(auth.database(), other);
      EXPECT_EQ(by_cookie(auth, other), 1);
      (void)revoke_token(auth.database(), token.record.id);
      auth.reload();
      EXPECT_EQ(by_token(auth, token.secret), 401);
      auth.tokens().store_uses(auth.database());
      auth.sessions().store_uses(auth.database());
      state.clock->advance(2s);
    }
    stopped = true;
  }
  EXPECT_EQ(refusals, 0);
}

}  // namespace
