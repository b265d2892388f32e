// serve.toml: every problem with its line, environment variables, no secrets in messages.

#include <holdfast/error.hpp>

#include "serve/config/keys.hpp"
#include "serve/config/server_config.hpp"
#include "support/failure_of.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>

namespace {

using namespace holdfast;
using namespace holdfast::detail::serve::config;
using namespace std::chrono_literals;
using test::failure_of;

std::optional<std::string> variable(const std::string& name) {
  static const std::map<std::string, std::string> variables{
      {"DB_PASSWORD", "planted-secret"}, {"LANES", "4"}, {"HOST", "db7"}};
  const auto it = variables.find(name);
  if (it == variables.end()) return std::nullopt;
  return it->second;
}

server_config read(std::string_view text) { return read_config("serve.toml", text, {}, variable); }

/// The problems of a file, in one line.
std::string problems_of(std::string_view text) {
  const auto failure = failure_of([&] { (void)read(text); });
  EXPECT_EQ(failure.code(), errc::invalid_argument);
  EXPECT_EQ(failure.path(), "serve.toml");
  return failure.message();
}

void expect_problem(std::string_view text, const std::string& expected) {
  const auto message = problems_of(text);
  EXPECT_NE(message.find(expected), std::string::npos) << message;
}

TEST(ServeConfig, AnEmptyFileHasTheDefaults) {
  const auto config = read("");
  EXPECT_EQ(config.listen, (std::vector<std::string>{"127.0.0.1:7360"}));
  EXPECT_EQ(config.drain, 5s);
  EXPECT_EQ(config.grace, 30s);
  EXPECT_EQ(config.workers, 0U);
  EXPECT_FALSE(config.allow_plain);
  EXPECT_TRUE(config.points);
  EXPECT_NE(failure_of([&] { check_config(config); }).message().find("nothing to serve"),
            std::string::npos);
}

TEST(ServeConfig, ReadsEverySection) {
  const auto config = read(R"(
[serve]
listen = ["127.0.0.1:0", "unix:/run/holdfast/api.sock"]
names = ["holdfast.example.org"]
label = "production"
drain = "0s"
tls = { certificate = "c.pem", key = "k.pem" }
limits.workers = 8
limits.head-timeout = "500ms"
[stores.main]
url = "postgresql://app:planted-secret@${HOST}/app"
password = "${DB_PASSWORD}"
payload-column = "bytes"
create-schema = true
[stores.b]
url = "memory:"
[outboxes.orders]
url = "memory:"
lanes = "${LANES}"
dedup-window = "1h"
[sequences]
url = "redis://localhost"
fence = "super"
super-store = "sqlite:x.db"
[failover]
linger = "2s"
[failover.points.countries]
expiry = "24h"
)");
  EXPECT_EQ(config.listen[1], "/run/holdfast/api.sock");
  EXPECT_EQ(config.drain, 0ms);
  EXPECT_EQ(config.head_timeout, 500ms);
  EXPECT_EQ(config.workers, 8U);
  ASSERT_EQ(config.stores.size(), 2U);
  // In the order of the file: the first has the points.
  EXPECT_EQ(config.stores[0].name, "main");
  EXPECT_EQ(config.stores[0].database.url, "postgresql://app:planted-secret@db7/app");
  EXPECT_EQ(config.stores[0].database.password, "planted-secret");
  EXPECT_EQ(config.stores[0].payload, payload_column::bytes);
  EXPECT_EQ(config.outboxes.at(0).lanes, 4U);
  EXPECT_EQ(config.outboxes.at(0).dedup_window, 1h);
  ASSERT_TRUE(config.sequences);
  EXPECT_EQ(config.sequences->fence, fence_kind::super);
  ASSERT_TRUE(config.points);
  EXPECT_EQ(config.points->engine.linger, 2s);
  check_config(config);
}

TEST(ServeConfig, ReportsAllProblemsWithTheirLines) {
  const auto message = problems_of(R"([serve]
lisen = ["x"]
loops = 0
drain = "forever"
[stores.main]
prefix = "P_"
[stores."a/b"]
url = "memory:"
[outboxes.o]
url = "memory:"
lanes = 3
[extra]
x = 1
[failover]
read-deadlin = "1s"
)");
  for (const auto* part :
       {"line 2: serve.lisen: there is no such key; the nearest is serve.listen",
        "line 3: serve.loops: this is not an integer from 1 to 64",
        "line 4: serve.drain: 'forever'", "stores.main: needs a url",
        "line 8: stores.\"a/b\".url: a name has",
        "line 11: outboxes.o.lanes: must be a power of two",
        "line 13: extra.x: there is no such key", "line 15: failover.read-deadlin"})
    EXPECT_NE(message.find(part), std::string::npos) << part << "\n" << message;
}

TEST(ServeConfig, RefusesContradictions) {
  expect_problem("[serve.tls]\ncertificate = \"c\"", "line 2: serve.tls: certificate and key");
  expect_problem("[serve.tls]\nclient-ca = \"c\"", "needs certificate and key");
  expect_problem("[sequences]\nurl = \"redis://h\"", "set fence to");
  expect_problem("[sequences]\nurl = \"sqlite:x\"\nfence = \"wait\"", "only for Redis");
  expect_problem("[sequences]\nurl = \"redis://h\"\nfence = \"super\"", "require each other");
  expect_problem("[sequences]\nprefix = \"P\"", "sequences: needs a url");
  expect_problem("[failover.store]\nurl = \"sqlite:x\"", "points use the first store");
  expect_problem("[stores.main]", "stores.main: needs a url");
  expect_problem("[serve]\nlisten = 5", "a list of texts");
  expect_problem("serve = 5", "this is a table, not a key");
  expect_problem("[serve.listen]", "this is a key, not a table");
  expect_problem("[serve]\ndrain = \"25h\"", "at most 24h");
}

TEST(ServeConfig, ClientsHaveCertificatesAndARole) {
  constexpr std::string_view tls =
      "[serve.tls]\ncertificate = \"c\"\nkey = \"k\"\nclient-ca = \"a\"\n";
  const std::string digits(64, 'A');
  const auto config = read(std::string(tls) + R"(
[serve.clients.billing]
certificates = ["dns:Billing.example", "sha256:)" +
                           digits + R"("]
role = "app"
scopes = ["outbox:orders:publish"]
tenant = "acme"
[serve.clients.ops]
certificates = "cn:ops"
role = "operator"
[stores.m]
url = "memory:"
)");
  ASSERT_EQ(config.clients.size(), 2U);
  EXPECT_EQ(config.clients[0].name, "billing");
  EXPECT_EQ(config.clients[0].certificates,
            (std::vector<std::string>{"dns:billing.example", "sha256:" + std::string(64, 'a')}));
  EXPECT_EQ(config.clients[0].role, role::application);
  EXPECT_EQ(config.clients[0].scopes, std::vector<std::string>{"outbox:orders:publish"});
  EXPECT_EQ(config.clients[0].tenant, "acme");
  EXPECT_EQ(config.clients[1].role, role::operator_);
  EXPECT_TRUE(std::ranges::any_of(config.effective, [](const effective_value& value) {
    return value.key == "serve.clients.ops.role" && value.value == "operator";
  }));

  const auto expect_refused = [&](const std::string& client, const std::string& problem) {
    expect_problem(std::string(tls) + "[serve.clients.x]\n" + client, problem);
  };
  expect_problem("[serve.clients.x]\ncertificates = \"cn:x\"\nrole = \"app\"",
                 "only trusted with serve.tls.client-ca");
  expect_refused("role = \"app\"", "serve.clients.x: needs certificates");
  expect_refused("certificates = \"cn:x\"", "serve.clients.x: needs a role");
  expect_refused("certificates = \"cn:x\"\nrole = \"root\"",
                 "one of: viewer, operator, app, admin");
  expect_refused("certificates = [\"cn:x\", \"x\"]\nrole = \"app\"",
                 "line 6: serve.clients.x.certificates[1]: must be dns:");
  expect_refused("certificates = \"cn:x\"\nrole = \"viewer\"\nscopes = \"a:b\"",
                 "serve.clients.x.scopes: only the role app has scopes");
  expect_refused("certificates = \"cn:x\"\nrole = \"admin\"\ntenant = \"acme\"",
                 "serve.clients.x.tenant: an admin sees all tenants");
  expect_refused(
      "certificates = \"cn:x\"\nrole = \"app\"\n[serve.clients.y]\ncertificates = \"cn:x\"\n"
      "role = \"viewer\"",
      "serve.clients.y.certificates: x has one of them, too");
}

TEST(ServeConfig, IsNotToml) {
  for (const auto* text :
       {"[serve", "serve.listen = ", "a = 1\na = 2", "\x01", "x = \"\\q\"", "[[[[[["})
    (void)problems_of(text);
  expect_problem("[stores.m]\nurl = \"${NO_SUCH_VARIABLE}\"", "NO_SUCH_VARIABLE is not set");
}

TEST(ServeConfig, SecretsAreNeverShown) {
  const std::string bad = R"([stores.main]
url = ["postgresql://app:planted-secret@h/x"]
password = 5
user = "${DB_PASSWORD}"
payload-column = "${DB_PASSWORD}"
[serve]
drain = "${DB_PASSWORD}"
[sequences]
url = "redis://u:planted-secret@h"
)";
  EXPECT_EQ(problems_of(bad).find("planted-secret"), std::string::npos);
  EXPECT_EQ(
      problems_of("[stores.main]\nurl = \"postgresql://a:planted-secret@h").find("planted-secret"),
      std::string::npos);
  const auto config = read(R"(
[stores.main]
url = "postgresql://app:planted-secret@h/x?password=planted-secret"
password = "planted-secret"
user = "${DB_PASSWORD}"
[failover.store.encryption]
enabled = true
key = "cGxhbnRlZC1zZWNyZXQtcGxhbnRlZC1zZWNyZXQtISE="
)");
  ASSERT_FALSE(config.effective.empty());
  for (const auto& value : config.effective) {
    EXPECT_EQ(value.value.find("planted-secret"), std::string::npos) << value.key;
    EXPECT_EQ(value.value.find("cGxhbnRlZC"), std::string::npos) << value.key;
  }
}

TEST(ServeConfig, OtherMachinesNeedProtection) {
  const auto check = [](const std::string& serve) {
    check_config(read("[serve]\n" + serve + "\n[stores.m]\nurl = \"memory:\""));
  };
  check("listen = [\"[::1]:0\", \"localhost:0\", \"127.0.0.9:0\", \"unix:/run/x\"]");
  check("listen = [\"0.0.0.0:0\"]\nallow-plain = true");
  check("listen = [\"0.0.0.0:0\"]\ntls.certificate = \"c\"\ntls.key = \"k\"");
  for (const auto* address : {"0.0.0.0:0", "[::]:0", "10.0.0.1:80", "example.org:80"})
    EXPECT_NE(failure_of([&] { check("listen = [\"" + std::string(address) + "\"]"); })
                  .message()
                  .find("allow-plain"),
              std::string::npos);
  EXPECT_NE(failure_of([&] { check("listen = [\"0.0.0.0:0\"]\nallow-plain = true\nopen = true"); })
                .message()
                .find("serve.open"),
            std::string::npos);
}

TEST(ServeConfig, ThePageHasEveryKey) {
  std::ifstream file(HOLDFAST_SERVE_PAGE);
  std::stringstream page;
  page << file.rdbuf();
  const auto text = page.str();
  for (const auto& key : known_keys()) {
    std::string row = "| `" + std::string(key.name) + "` | ";
    row += key.default_value.empty() ? "" : "`" + std::string(key.default_value) + "`";
    row += (key.default_value.empty() ? "| " : " | ") + std::string(key.description) + " |";
    EXPECT_NE(text.find(row), std::string::npos) << "missing in docs/serve.md: " << row;
  }
}

}  // namespace
