// PgBouncer between Holdfast and PostgreSQL: what works in each of its modes, and what is said
// about the rest.

#include <holdfast/database.hpp>
#include <holdfast/outbox.hpp>
#include <holdfast/store/probe.hpp>

#include "sql/connect.hpp"
#include "support/cutting_proxy.hpp"
#include "support/failure_of.hpp"
#include "support/pgbouncer.hpp"
#include "support/postgres_server.hpp"
#include "support/shared_server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

const std::string without_options = "ignore_startup_parameters=options";

std::vector<std::string> settings_of(const std::string& mode) {
  return {without_options, "pool_mode=" + mode};
}

TEST(Pooler, InStatementModeTheErrorSaysWhatToChange) {
  const auto& server = shared_server<postgres_server>();
  const pgbouncer between(server, settings_of("statement"));
  const auto url = server.url_through(between.port(), server.create_database("pooler"));
  const auto connection = detail::sql::connector(url, {})();
  const auto refused = failure_of([&] { connection->begin(); });
  EXPECT_FALSE(refused.transient()) << "a retry cannot help: " << refused.what();
  EXPECT_THAT(refused.what(), HasSubstr("pool_mode = transaction"));
}

TEST(Pooler, NotificationsAreNotExpectedThroughIt) {
  const auto& server = shared_server<postgres_server>();
  for (const auto* mode : {"transaction", "session"}) {
    const pgbouncer between(server, settings_of(mode));
    const auto url = server.url_through(between.port(), server.create_database("pooler"));
    const auto connection = detail::sql::connector(url, {})();
    EXPECT_EQ(failure_of([&] { connection->listen("holdfast_test"); }).code(),
              errc::unsupported_type)
        << mode;
  }
  const auto direct = detail::sql::connector(server.url(server.create_database("direct")), {})();
  direct->listen("holdfast_test");
}

/// How long a waiting worker takes to notice an event of another process, at best.
std::chrono::milliseconds wake_up_through(const std::string& url) {
  const auto waiting = open(url).outbox({.prefix = "{wake}", .create_schema = true});
  const auto publisher = open(url).outbox({.prefix = "{wake}"});
  (void)waiting.admin().stats();
  auto best = std::chrono::milliseconds::max();
  for (int i = 0; i < 5; ++i) {
    std::chrono::steady_clock::time_point published;
    std::jthread later([&] {
      std::this_thread::sleep_for(700ms);  // the interval of polling has grown by then
      published = std::chrono::steady_clock::now();
      EXPECT_TRUE(publisher.publish({.type = "t", .payload = std::to_string(i)}).safe());
    });
    claimed claim;
    while (claim.events.empty()) {
      (void)waiting.wait(0, 10s);
      claim = waiting.claim();
    }
    const auto noticed = std::chrono::steady_clock::now();
    later.join();
    best =
        std::min(best, std::chrono::duration_cast<std::chrono::milliseconds>(noticed - published));
    for (const auto& each : claim.events) (void)waiting.ack(claim.fence, each);
  }
  return best;
}

TEST(Pooler, AWorkerPollsInsteadOfWaitingForNotifications) {
  const auto& server = shared_server<postgres_server>();
  const pgbouncer between(server, settings_of("transaction"));
  const auto url = server.url_through(between.port(), server.create_database("pooler"));
  EXPECT_LT(wake_up_through(url), 300ms) << "a worker that listens polls once a second";
}

std::vector<std::string> finding_codes(const std::string& url) {
  std::vector<std::string> codes;
  for (const auto& each : probe(open(url)).findings) codes.push_back(each.code);
  return codes;
}

TEST(Pooler, TheDoctorKnowsWhatIsInBetween) {
  const auto& server = shared_server<postgres_server>();
  const auto name = server.create_database("pooler");
  EXPECT_THAT(finding_codes(server.url(name)),
              AllOf(Not(Contains("pooler")), Not(Contains("proxy"))));
  const pgbouncer between(server, settings_of("transaction"));
  EXPECT_THAT(finding_codes(server.url_through(between.port(), name)), Contains("pooler"));
  const cutting_proxy proxy(server.port());
  EXPECT_THAT(finding_codes(server.url_through(proxy.port(), name)), Contains("proxy"));
}

}  // namespace
}  // namespace holdfast::test
