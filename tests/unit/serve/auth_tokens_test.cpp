// Tokens: their text, their storage, their end; limits of requests.

#include <holdfast/error.hpp>

#include "base/hex.hpp"
#include "serve/auth/rate_limit.hpp"
#include "serve/auth/state_tables.hpp"
#include "serve/auth/token_table.hpp"
#include "serve/auth/token_text.hpp"
#include "support/failure_of.hpp"
#include "unit/serve/auth_fixture.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

namespace {

using namespace holdfast;
using namespace holdfast::detail::serve;
using namespace std::chrono_literals;
using test::auth_state;
using test::failure_of;

std::string all_bytes(const std::filesystem::path& folder) {
  std::string bytes;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    bytes.append(std::istreambuf_iterator<char>(file), {});
  }
  return bytes;
}

TEST(AuthTokenText, HasAnIdAnd256RandomBits) {
  std::set<std::string> secrets;
  for (int i = 0; i < 200; ++i) {
    const auto token = make_token_text();
    EXPECT_EQ(token.secret.size(), 55U);
    EXPECT_TRUE(token.secret.starts_with("hf_" + token.id + "_")) << token.id;
    EXPECT_EQ(token_id_of(token.secret), token.id);
    secrets.insert(token.secret.substr(12));
  }
  EXPECT_EQ(secrets.size(), 200U);
}

TEST(AuthTokenText, OtherTextsHaveNoId) {
  const auto token = make_token_text();
  for (const std::string& text :
       {std::string(), std::string("hf_"), token.secret + "x", token.secret.substr(1),
        "hg" + token.secret.substr(2), token.secret.substr(0, 11) + "-" + token.secret.substr(12),
        token.secret.substr(0, 54) + "\n", token.secret.substr(0, 54) + std::string(1, '\0'),
        "hf_ABCDEFGH" + token.secret.substr(11)})
    EXPECT_FALSE(token_id_of(text)) << text;
}

TEST(AuthTokenText, DigestsAreThoseOfSha256) {
  EXPECT_EQ(detail::to_hex(sha256("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_TRUE(equal_in_constant_time(sha256("a"), sha256("a")));
  EXPECT_FALSE(equal_in_constant_time(sha256("a"), sha256("b")));
}

class AuthTokens : public ::testing::Test {
 protected:
  auth_state state{};
  state_database database = open_database();
  token_table table{};

  state_database open_database() {
    return state_database({.url = state.url(),
                           .clock = state.clock,
                           .log = std::make_shared<const logger>(state.log.sink())});
  }
  void SetUp() override { database.add_tables(identity_tables()); }

  token_verdict verdict_of(const std::string& secret) {
    return table.check(secret, state.clock->now()).verdict;
  }
};

TEST_F(AuthTokens, AreUnavailableUntilTheyWereRead) {
  const auto token = add_token(database, {});
  EXPECT_EQ(verdict_of(token.secret), token_verdict::unavailable);
  EXPECT_FALSE(table.is_loaded());
  table.load(database);
  EXPECT_EQ(verdict_of(token.secret), token_verdict::usable);
}

TEST_F(AuthTokens, AreKeptAsHashesOnly) {
  const auto token = add_token(database, {.name = "deploy"});
  table.load(database);
  (void)verdict_of(token.secret);
  table.store_uses(database);
  const auto bytes = all_bytes(state.directory.path());
  EXPECT_NE(bytes.find("deploy"), std::string::npos);
  EXPECT_NE(bytes.find(detail::to_hex(sha256(token.secret))), std::string::npos);
  EXPECT_EQ(bytes.find(token.secret), std::string::npos);
  EXPECT_EQ(bytes.find(token.secret.substr(12)), std::string::npos);
  EXPECT_EQ(state.log.text().find(token.secret.substr(12)), std::string::npos);
}

TEST_F(AuthTokens, ThatAreAlmostRightAreUnknown) {
  auto token = add_token(database, {});
  const auto other = add_token(database, {});
  table.load(database);
  // The secret of another token.
  EXPECT_EQ(verdict_of(token.secret.substr(0, 12) + other.secret.substr(12)),
            token_verdict::unknown);
  token.secret.back() = token.secret.back() == 'A' ? 'B' : 'A';
  EXPECT_EQ(verdict_of(token.secret), token_verdict::unknown);
  EXPECT_EQ(verdict_of(make_token_text().secret), token_verdict::unknown);
}

TEST_F(AuthTokens, ExpireAndAreRevoked) {
  const auto shorter = add_token(database, {.name = "short", .lifetime = 1h});
  const auto longer = add_token(database, {.name = "long"});
  EXPECT_EQ(longer.record.expires - longer.record.created, 24h * 90);
  table.load(database);
  state.clock->advance(1h - 1us);
  EXPECT_EQ(verdict_of(shorter.secret), token_verdict::usable);
  state.clock->advance(1us);
  EXPECT_EQ(verdict_of(shorter.secret), token_verdict::expired);
  EXPECT_EQ(verdict_of(longer.secret), token_verdict::usable);
  ASSERT_TRUE(revoke_token(database, longer.record.id));
  table.load(database);
  EXPECT_EQ(verdict_of(longer.secret), token_verdict::revoked);
  EXPECT_FALSE(table.has_usable(state.clock->now()));
}

TEST_F(AuthTokens, AreRevokedByIdByNameAndByText) {
  const auto first = add_token(database, {.name = "first"});
  const auto second = add_token(database, {.name = "second"});
  const auto third = add_token(database, {.name = "third"});
  EXPECT_EQ(revoke_token(database, first.record.id)->name, "first");
  EXPECT_EQ(revoke_token(database, "second")->id, second.record.id);
  EXPECT_EQ(revoke_token(database, third.secret)->id, third.record.id);
  EXPECT_FALSE(revoke_token(database, "second"));  // its name is free again
  EXPECT_FALSE(revoke_token(database, "missing"));
  EXPECT_FALSE(revoke_token(database, "' OR 1 = 1 --"));
  const auto again = revoke_token(database, first.record.id);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->revoked, state.clock->now());
}

TEST_F(AuthTokens, KeepTheirRolesScopesAndTenants) {
  (void)add_token(database, {.name = "shop",
                             .role = role::application,
                             .scopes = {"outbox:orders:publish", "store:*:read"},
                             .tenant = "acme \xC3\xA9",
                             .rate = 100});
  auto session = database.read("test");
  const auto tokens = list_tokens(session, "", 10);
  ASSERT_EQ(tokens.size(), 1U);
  const auto& record = tokens.front().record;
  EXPECT_EQ(record.role, role::application);
  EXPECT_EQ(record.scopes, (std::vector<std::string>{"outbox:orders:publish", "store:*:read"}));
  EXPECT_EQ(record.tenant, "acme \xC3\xA9");
  EXPECT_EQ(record.rate, 100U);
  EXPECT_FALSE(record.last_used);
}

TEST_F(AuthTokens, NamesOfUsableTokensAreUnique) {
  (void)add_token(database, {.name = "web", .lifetime = 1h});
  EXPECT_EQ(failure_of([&] { (void)add_token(database, {.name = "web"}); }).code(),
            errc::duplicate);
  state.clock->advance(1h);
  EXPECT_NO_THROW((void)add_token(database, {.name = "web"}));
}

TEST_F(AuthTokens, InvalidSettingsAreRefused) {
  const auto path_of = [&](token_settings settings) {
    const auto failure = failure_of([&] { (void)add_token(database, std::move(settings)); });
    EXPECT_EQ(failure.code(), errc::invalid_argument);
    return failure.path();
  };
  EXPECT_EQ(path_of({.name = "a b"}), "name");
  EXPECT_EQ(path_of({.name = std::string(65, 'a')}), "name");
  EXPECT_EQ(path_of({.scopes = {"a b"}}), "scopes");
  EXPECT_EQ(path_of({.scopes = {""}}), "scopes");
  EXPECT_EQ(path_of({.scopes = std::vector<std::string>(51, "a")}), "scopes");
  EXPECT_EQ(path_of({.role = role::operator_, .scopes = {"a:b"}}), "scopes");
  EXPECT_EQ(path_of({.tenant = "a\nb"}), "tenant");
  EXPECT_EQ(path_of({.tenant = std::string(129, 'a')}), "tenant");
  EXPECT_EQ(path_of({.tenant = "\xFF"}), "tenant");
  EXPECT_EQ(path_of({.role = role::admin, .tenant = "acme"}), "tenant");
  EXPECT_EQ(path_of({.lifetime = 0s}), "expires");
  EXPECT_EQ(path_of({.lifetime = -1s}), "expires");
  EXPECT_EQ(path_of({.lifetime = 24h * 4000}), "expires");
  EXPECT_EQ(path_of({.rate = 1'000'001}), "rate");
}

TEST_F(AuthTokens, AreListedInPages) {
  for (int i = 0; i < 7; ++i) (void)add_token(database, {});
  auto session = database.read("test");
  std::set<std::string> ids;
  std::string after;
  for (;;) {
    const auto page = list_tokens(session, after, 3);
    for (const auto& token : page) ids.insert(token.record.id);
    if (page.size() < 3) break;
    after = page.back().record.id;
  }
  EXPECT_EQ(ids.size(), 7U);
}

TEST_F(AuthTokens, TheirLastUseIsWrittenOnceForManyRequests) {
  const auto token = add_token(database, {});
  table.load(database);
  for (int i = 0; i < 100; ++i) (void)verdict_of(token.secret);
  const auto last_used = [&] {
    auto session = database.read("test");
    return list_tokens(session, "", 10).front().record.last_used;
  };
  EXPECT_FALSE(last_used());
  table.store_uses(database);
  EXPECT_EQ(last_used(), state.clock->now());
  state.clock->advance(5s);
  table.load(database);
  (void)verdict_of(token.secret);
  table.store_uses(database);
  EXPECT_EQ(last_used(), state.clock->now());
}

TEST_F(AuthTokens, ThatEndedLongAgoAreDeleted) {
  (void)add_token(database, {.name = "old", .lifetime = 1h});
  (void)add_token(database, {.name = "revoked"});
  (void)add_token(database, {.name = "kept"});
  (void)revoke_token(database, "revoked");
  state.clock->advance(24h * 30 + 2h);
  auto session = database.write("test");
  forget_old_tokens(session, state.clock->now());
  const auto tokens = list_tokens(session, "", 10);
  ASSERT_EQ(tokens.size(), 1U);
  EXPECT_EQ(tokens.front().record.name, "kept");
}

TEST_F(AuthTokens, ARowThatAnotherProgramWroteIsNotAToken) {
  const auto token = add_token(database, {});
  {
    auto session = database.write("test");
    session.execute("UPDATE HOLDFAST_SERVE_TOKEN SET ROLE_NAME = 'root'", {});
  }
  table.load(database);
  EXPECT_EQ(verdict_of(token.secret), token_verdict::unknown);
  {
    auto session = database.write("test");
    session.execute("UPDATE HOLDFAST_SERVE_TOKEN SET ROLE_NAME = 'admin', HASH = ''", {});
  }
  table.load(database);
  EXPECT_EQ(verdict_of(token.secret), token_verdict::unknown);
}

TEST(AuthRate, AdmitsTwiceTheRateAtOnce) {
  rate_bucket bucket;
  auto now = rate_bucket::time_point(1h);
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(admit_at_rate(bucket, now, 10)) << i;
  const auto pause = admit_at_rate(bucket, now, 10);
  ASSERT_TRUE(pause);
  EXPECT_EQ(*pause, 100ms);
  now += 100ms;
  EXPECT_FALSE(admit_at_rate(bucket, now, 10));
  EXPECT_TRUE(admit_at_rate(bucket, now, 10));
  now += 1h;  // not more than the burst
  int admitted = 0;
  while (!admit_at_rate(bucket, now, 10)) ++admitted;
  EXPECT_EQ(admitted, 20);
}

TEST(AuthRate, IsParsed) {
  EXPECT_EQ(parse_rate("100/s"), 100U);
  for (const auto* text :
       {"", "100", "0/s", "/s", "-1/s", "1/m", "1/s ", "1000001/s", "1.5/s", "99999999999999/s"})
    EXPECT_EQ(failure_of([&] { (void)parse_rate(text); }).path(), "rate") << text;
}

TEST(AuthSignInLimit, Is5AMinuteForAnAddress) {
  sign_in_limit limit;
  auto now = rate_bucket::time_point(1h);
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(limit.admit("10.0.0.1", now));
  const auto pause = limit.admit("10.0.0.1", now);
  ASSERT_TRUE(pause);
  EXPECT_LE(*pause, 12s);
  EXPECT_FALSE(limit.admit("10.0.0.2", now));
  EXPECT_TRUE(limit.admit("10.0.0.1", now + *pause - 1ns));
  EXPECT_FALSE(limit.admit("10.0.0.1", now + *pause));
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(limit.admit("10.0.0.1", now + 1h));
}

TEST(AuthSignInLimit, CountsANetworkOfIpv6Once) {
  sign_in_limit limit;
  const auto now = rate_bucket::time_point(1h);
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(limit.admit("2001:db8:1:2::" + std::to_string(i), now));
  EXPECT_TRUE(limit.admit("2001:db8:1:2:ffff::1", now));
  EXPECT_FALSE(limit.admit("2001:db8:1:3::1", now));
}

TEST(AuthSignInLimit, RemembersABoundedNumberOfAddresses) {
  sign_in_limit limit;
  const auto now = rate_bucket::time_point(1h);
  for (int i = 0; i < 5; ++i) (void)limit.admit("192.0.2.1", now);
  for (std::size_t i = 0; i < sign_in_limit::max_addresses * 2; ++i)
    EXPECT_FALSE(
        limit.admit("10.0." + std::to_string(i / 256) + "." + std::to_string(i % 256), now));
  // The address with the most attempts is forgotten last.
  EXPECT_TRUE(limit.admit("192.0.2.1", now));
}

}  // namespace
