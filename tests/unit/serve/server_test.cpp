// The server without its process: parts, readiness, reload, the end; every endpoint with every
// role.

#include "serve/server.hpp"

#include <holdfast/error.hpp>
#include <holdfast/failover/engine.hpp>
#include <holdfast/store/memory.hpp>

#include "serve/api/endpoints.hpp"
#include "serve/api/openapi.hpp"
#include "serve/api/server_endpoints.hpp"
#include "serve/http_metrics.hpp"
#include "serve/parts.hpp"
#include "serve/readiness.hpp"
#include "support/api_server.hpp"
#include "support/certificate.hpp"
#include "support/eventually.hpp"
#include "support/failure_of.hpp"
#include "support/faulty_store.hpp"
#include "support/gate.hpp"
#include "support/raw_client.hpp"
#include "support/temporary_directory.hpp"

#include <gtest/gtest.h>
#include <simdjson.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace holdfast;
using namespace holdfast::detail::serve;
using namespace std::chrono_literals;
using test::eventually;
using test::failure_of;

/// A part whose functions a test sees.
class probe_part final : public server_part {
 public:
  struct log {
    std::atomic<bool> broken = false;
    std::atomic<bool> drained = false;
    std::atomic<int> reloads = 0;
    std::vector<std::string> remaining{};
    test::gate gate{};
  };
  explicit probe_part(std::shared_ptr<log> events) : events_(std::move(events)) {}
  void add_endpoints(endpoint_table& table, services&) override {
    table.add(
        {.method = "GET", .path = "/v1/probe", .summary = "s", .answer = [this](api_request&) {
           events_->gate.wait();
           return json_response(200, "{}");
         }});
  }
  std::optional<std::string> problem() override {
    if (events_->broken) return "probe";
    return std::nullopt;
  }
  void reload(const config::server_config& /*fresh*/) override { ++events_->reloads; }
  void drain() noexcept override {
    events_->drained = true;
    events_->gate.open();
  }
  std::vector<std::string> finish(std::chrono::steady_clock::time_point) override {
    return events_->remaining;
  }

 private:
  std::shared_ptr<log> events_;
};

std::string state_url(const test::temporary_directory& directory) {
  return "sqlite://" + (directory.path() / "serve.db").string();
}

struct running_server {
  std::shared_ptr<probe_part::log> events = std::make_shared<probe_part::log>();
  test::temporary_directory state{"serve"};
  std::unique_ptr<server> process{};

  explicit running_server(config::server_config config) {
    config.state = state_url(state);
    config.listen = {"127.0.0.1:0"};
    config.access_log = "";
    if (config.stores.empty())
      config.stores.push_back({.name = "main", .database = {.url = "memory:"}});
    server_setup setup{.config = std::move(config)};
    setup.parts = make_parts(setup.config);
    setup.parts.push_back(std::make_unique<probe_part>(events));
    process = std::make_unique<server>(std::move(setup));
  }
  running_server() : running_server(config::server_config{.open = true}) {}

  client_response get(const std::string& target) {
    http_client client("http://" + process->addresses().front(), {});
    return client.send({.target = target}, std::chrono::steady_clock::now() + 60s);
  }
};

TEST(Server, IsReadyWhenEveryDatabaseAnswered) {
  running_server running;
  EXPECT_TRUE(eventually([&] { return running.get("/readyz").status == 200; }));
  EXPECT_EQ(running.get("/healthz").body, R"({"healthy":true})");
  running.events->broken = true;
  const auto answer = running.get("/readyz");
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(answer.body, R"({"ready":false,"missing":["probe"]})");
  const auto has_lines = [&](const std::string& ready, const std::string& missing) {
    const auto text = running.get("/metrics").body;
    return text.find("\nholdfast_ready " + ready + "\n") != std::string::npos &&
           text.find("\nholdfast_missing{name=\"probe\"} " + missing + "\n") != std::string::npos;
  };
  EXPECT_TRUE(has_lines("0", "1"));
  running.events->broken = false;
  EXPECT_TRUE(has_lines("1", "0"));
  running.process->begin_drain();
  EXPECT_EQ(running.get("/readyz").body, R"({"ready":false,"missing":["draining"]})");
  EXPECT_EQ(running.get("/healthz").status, 200);
  EXPECT_TRUE(running.process->stop(30s).empty());
  EXPECT_TRUE(running.events->drained);
}

// 413 would tell a client that its event can never be published.
TEST(Server, ContentIsNotTooLargeWhileTheServerStarts) {
  const test::temporary_directory directory("serve");
  const auto socket = (directory.path() / "api.sock").string();
  server_setup setup{.config = {.open = true}};
  setup.config.state = state_url(directory);
  setup.config.listen = {socket};
  setup.config.access_log = "";
  setup.config.stores.push_back({.name = "main", .database = {.url = "memory:"}});
  setup.parts = make_parts(setup.config);
  std::string answer;
  setup.on_listening = [&] {
    test::raw_client client(socket);
    client.send("POST /v1/keys HTTP/1.1\r\nHost: h\r\nContent-Length: 2000000\r\n\r\n" +
                std::string(2'000'000, 'x'));
    answer = client.read_until("\r\n\r\n");
  };
  const server process(std::move(setup));
  EXPECT_NE(answer.find("HTTP/1.1 503 "), std::string::npos) << answer;
  EXPECT_NE(answer.find("Retry-After"), std::string::npos) << answer;
}

TEST(Server, ADatabaseThatIsNotThereIsNamed) {
  config::server_config config{.open = true};
  // Nothing listens on port 1.
  config.stores.push_back(
      {.name = "far", .database = {.url = "postgresql://127.0.0.1:1/x?connect_timeout=1"}});
  config.outboxes.push_back({.name = "near", .database = {.url = "memory:"}});
  running_server running(std::move(config));
  EXPECT_TRUE(eventually(
      [&] { return running.get("/readyz").body == R"({"ready":false,"missing":["store:far"]})"; }));
  EXPECT_TRUE(running.process->has_started());
}

TEST(Server, StopWaitsForRequestsAndReportsWhatIsLeft) {
  running_server running;
  client_response answer;
  std::jthread client([&] { answer = running.get("/v1/probe"); });
  ASSERT_TRUE(eventually([&] { return running.events->gate.waiting() == 1; }));
  running.events->remaining = {"1 job"};
  EXPECT_EQ(running.process->stop(30s), (std::vector<std::string>{"1 job"}));
  client.join();
  EXPECT_EQ(answer.status, 200);
}

TEST(Server, MetricsAreForViewersAndThisMachine) {
  running_server open;
  (void)open.get("/v1/configuration");
  const auto text = open.get("/metrics").body;
  EXPECT_NE(text.find("holdfast_http_requests_total{status=\"2xx\"} 1\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("holdfast_http_request_seconds_count"), std::string::npos);
  running_server closed(config::server_config{});
  EXPECT_EQ(closed.get("/metrics").status, 200);
  EXPECT_EQ(closed.get("/v1/configuration").status, 401);
}

TEST(Server, ItsMetricsAreThereWhenPointsUseUpTheSeries) {
  const auto registry = make_prometheus_registry({.series = 100});
  http_metrics metrics(registry);
  for (int i = 0; i < 100; ++i)
    (void)registry->gauge("points", {{.name = "name", .value = std::to_string(i)}}, "");
  metrics.update({.connections = 3}, {}, 0);
  EXPECT_NE(registry->text().find("\nholdfast_http_connections 3\n"), std::string::npos);
}

TEST(Server, ItsMetricsHaveRoomForManyPoints) {
  const auto registry = make_prometheus_registry(series_limits);
  engine points(make_memory_store(), {.metrics = registry});
  for (int i = 0; i < 400; ++i) {
    const auto point =
        points.protect("point" + std::to_string(i), [](int) { return std::string(); });
    (void)point(1);
  }
  EXPECT_NE(registry->text().find("\nholdfast_metrics_series_refused_total 0\n"),
            std::string::npos);
}

TEST(Readiness, SaysOnceThatADatabaseFailsAndThatItAnswersAgain) {
  std::mutex mutex;
  std::vector<std::string> lines;
  const auto count = [&] {
    const std::scoped_lock lock(mutex);
    return lines.size();
  };
  services shared;
  shared.log = [&](const log_record& record) {
    std::string line(record.message);
    for (const auto& [name, value] : record.fields) line.append(": ").append(value);
    const std::scoped_lock lock(mutex);
    lines.push_back(std::move(line));
  };
  const auto db = open("memory:");
  const auto entries = std::make_shared<test::faulty_store>(db.store());
  std::atomic<bool> down = false;
  std::atomic<int> asked = 0;
  entries->asked_for_health = [&] {
    ++asked;
    entries->available = !down;
  };
  shared.stores.push_back({.name = "main", .database = db, .store = entries});
  const auto asked_again = [&] {
    const int begin = asked;
    return eventually([&] { return asked > begin + 3; });
  };
  {
    readiness ready({.interval = 5ms, .patience = 60s});
    ready.start(shared, {});
    ASSERT_TRUE(eventually([&] { return ready.has_started(); }));
    EXPECT_TRUE(asked_again());
    EXPECT_EQ(count(), 0U) << "it answers";
    down = true;
    EXPECT_TRUE(eventually([&] { return count() == 1; }));
    EXPECT_TRUE(asked_again());
    down = false;
    EXPECT_TRUE(eventually([&] { return count() == 2; }));
    EXPECT_TRUE(asked_again());
    EXPECT_TRUE(ready.stop(std::chrono::steady_clock::now() + 60s));
  }
  EXPECT_EQ(lines, (std::vector<std::string>{
                       "store:main does not answer; requests for it get 503: it does not answer",
                       "store:main answers again"}));
}

TEST(Server, PagesOfOthersCannotActOnAnOpenServer) {
  running_server running;
  const auto status = [&](const std::string& field) {
    test::raw_client client(running.process->addresses().front());
    client.send("GET /v1/configuration HTTP/1.1\r\nHost: localhost:80\r\nConnection: close\r\n" +
                field + "\r\n\r\n");
    return client.read_to_end().substr(9, 3);
  };
  EXPECT_EQ(status("Sec-Fetch-Site: cross-site"), "403");
  EXPECT_EQ(status("Sec-Fetch-Site: same-site"), "403");
  EXPECT_EQ(status("Origin: http://evil.example"), "403");
  EXPECT_EQ(status("Origin: null"), "403");
  EXPECT_EQ(status("Sec-Fetch-Site: same-origin"), "200");
  EXPECT_EQ(status("Origin: http://localhost:80"), "200");
}

TEST(Server, OtherMachinesNeedAToken) {
  const test::temporary_directory directory("serve");
  const auto failure = failure_of([&] {
    server_setup setup{.config = {.listen = {"0.0.0.0:0"},
                                  .state = state_url(directory),
                                  .allow_plain = true,
                                  .access_log = ""}};
    setup.config.stores.push_back({.name = "main", .database = {.url = "memory:"}});
    setup.parts = make_parts(setup.config);
    const server refused(std::move(setup));
  });
  EXPECT_NE(failure.message().find("token"), std::string::npos) << failure.what();
}

TEST(Server, ABadServiceIsNamed) {
  const auto path_of = [](config::server_config config) {
    return failure_of([&] { const running_server refused(std::move(config)); }).path();
  };
  config::server_config store;
  store.stores.push_back({.name = "s", .database = {.url = "nothing:"}});
  EXPECT_EQ(path_of(std::move(store)), "stores.s");
  config::server_config outbox;
  outbox.outboxes.push_back({.name = "o", .database = {.url = "memory:"}, .lanes = 3});
  EXPECT_EQ(path_of(std::move(outbox)), "outboxes.o");
}

TEST(Server, ReloadTakesANewCertificate) {
  const test::temporary_directory directory("serve");
  const auto copy = [&](const test::certificate& source) {
    const auto replace = std::filesystem::copy_options::overwrite_existing;
    std::filesystem::copy_file(source.file(), directory.path() / "c.pem", replace);
    std::filesystem::copy_file(source.key(), directory.path() / "k.pem", replace);
  };
  const test::certificate first("root");
  const test::certificate second("root");
  copy(first);
  const auto configuration = [&] {
    config::server_config config{
        .listen = {"127.0.0.1:0"}, .names = {"added.example"}, .open = true};
    config.tls = {.certificate = directory.path() / "c.pem", .key = directory.path() / "k.pem"};
    config.stores.push_back({.name = "main", .database = {.url = "memory:"}});
    return config;
  };
  running_server running(configuration());
  const auto status_with = [&](const test::certificate& authority) {
    tls_options options;
    options.ca = authority.file();
    http_client client("https://" + running.process->addresses().front(), {.tls = options});
    return client.send({.target = "/healthz"}, std::chrono::steady_clock::now() + 60s).status;
  };
  EXPECT_EQ(status_with(first), 200);
  EXPECT_EQ(status_with(second), 0);
  const auto valid_until = [&] {
    tls_options options;
    options.ca = first.file();
    http_client client("https://" + running.process->addresses().front(), {.tls = options});
    const auto text =
        client.send({.target = "/metrics"}, std::chrono::steady_clock::now() + 60s).body;
    const std::string name =
        "\nholdfast_tls_certificate_expiry_timestamp_seconds{listener=\"api\"} ";
    const auto line = text.find(name);
    return line == std::string::npos ? 0.0 : std::stod(text.substr(line + name.size()));
  };
  // The certificate is valid for two days.
  const auto now =
      static_cast<double>(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now()));
  EXPECT_GT(valid_until(), now + 86'400);
  EXPECT_LE(valid_until(), now + 2 * 86'400);
  copy(second);
  EXPECT_TRUE(running.process->reload(configuration()).empty());
  EXPECT_EQ(running.events->reloads, 1);
  EXPECT_EQ(status_with(second), 200);
  EXPECT_EQ(status_with(first), 0);
  // A key that does not fit: the old one stays.
  std::filesystem::copy_file(first.key(), directory.path() / "k.pem",
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ(failure_of([&] { (void)running.process->reload(configuration()); }).code(),
            errc::invalid_argument);
  EXPECT_EQ(status_with(second), 200);
  EXPECT_EQ(running.events->reloads, 1);
}

/// All endpoints of the server. Their functions are replaced: only the table is examined.
endpoint_table full_table(services& shared) {
  endpoint_table real;
  add_server_endpoints(real, {});
  add_endpoints(real, shared);
  const test::temporary_directory directory("serve");
  const auto parts = make_parts({.state = state_url(directory)});
  for (const auto& part : parts) part->attach(shared);
  for (const auto& part : parts) part->add_endpoints(real, shared);
  endpoint_table table;
  for (auto row : real.rows()) {
    if (row.start)
      row.start = [](const std::shared_ptr<api_request>&, responder answer) {
        answer.answer(json_response(200, "{}"));
      };
    else row.answer = [](api_request&) { return json_response(200, "{}"); };
    row.answer_now = {};
    table.add(std::move(row));
  }
  return table;
}

/// `/v1/stores/x/doctor`
std::string target_of(const endpoint& row) {
  std::string target;
  for (const auto segment : split_path(row.path))
    target.append("/").append(parameter_of(segment).empty() ? segment : "x");
  return target.empty() ? "/" : target;
}

int expected_status(const endpoint& row, std::string_view who) {
  if (row.roles.empty()) return 200;
  if (who.empty()) return 401;
  if (who == "admin") return 200;
  if (who == "admin @acme") return row.for_tenants ? 200 : 403;
  for (const auto allowed : row.roles) {
    if (to_string(allowed) == who.substr(0, who.find(' ')))
      return who == "app foreign:scope" && !row.scope.empty() ? 403 : 200;
  }
  return 403;
}

TEST(Endpoints, EveryEndpointWithEveryRole) {
  services shared;
  const auto table = full_table(shared);
  test::api_server api(table);
  for (const auto& row : table.rows()) {
    for (const auto* who :
         {"", "viewer", "operator", "app", "app foreign:scope", "admin", "admin @acme"})
      EXPECT_EQ(api.send(row.method, target_of(row), who).status, expected_status(row, who))
          << row.method << " " << row.path << " as " << who;
  }
}

TEST(Endpoints, TheDocumentHasEveryEndpoint) {
  services shared;
  const auto table = full_table(shared);
  simdjson::dom::parser parser;
  const simdjson::dom::element document = parser.parse(openapi_document(table));
  std::size_t operations = 0;
  for (const auto& [path, methods] : simdjson::dom::object(document["paths"]))
    operations += simdjson::dom::object(methods).size();
  EXPECT_EQ(operations, table.rows().size());
  for (const auto& row : table.rows()) {
    std::string method(row.method);
    for (char& c : method) c = static_cast<char>(c + 32);
    simdjson::dom::element operation;
    ASSERT_EQ(document["paths"][row.path][method].get(operation), simdjson::SUCCESS)
        << row.method << " " << row.path;
    EXPECT_FALSE(std::string_view(operation["summary"]).empty()) << row.path;
    EXPECT_EQ(simdjson::dom::array(operation["x-holdfast-roles"]).size(), row.roles.size());
  }
}

}  // namespace
