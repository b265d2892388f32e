// holdfast gateway: one route, without a file.

#include <holdfast/error.hpp>

#include "base/url.hpp"
#include "commands/database_location.hpp"
#include "commands/groups.hpp"
#include "commands/observation.hpp"
#include "commands/serve/serve_signals.hpp"
#include "failover/config/settings.hpp"
#include "serve/access_log.hpp"
#include "serve/gateway/gateway_part.hpp"
#include "serve/gateway/route_runtime.hpp"
#include "serve/observation_server.hpp"
#include "serve/open_services.hpp"
#include "serve/service_manager.hpp"
#include "terminal/message_queue.hpp"
#include "terminal/text.hpp"
#include "terminal/time_text.hpp"

#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::cli {

namespace {

namespace serve = detail::serve;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr long gateway_turn_milliseconds = 50;
constexpr std::string_view route_name = "gateway";
/// With --observe: the gauges of the point are that old at most.
constexpr std::chrono::seconds time_between_reports{5};

/// Puts the option in front of the message.
template <class Check>
void name_option(const std::string& option_text, Check check) {
  try {
    check();
  } catch (const error& problem) {
    throw error(problem.code(), option_text + ": " + problem.message());
  }
}

struct gateway_options {
  option upstream;
  option listen;
  option store;
  password_option password;
  option expiry;
  option deadline;
  option access_log;
  option observe;
  option allow_plain;

  explicit gateway_options(command& cmd)
      : upstream(cmd.values("--upstream", "URL",
                            "The server behind the gateway: http://host:port; several for one that "
                            "takes over from another")),
        listen(
            cmd.values("--listen", "ADDRESS",
                       "Address of the gateway: host:port, unix:/path (default 127.0.0.1:7361)")),
        store(cmd.value("--store", "URL",
                        "Database that keeps the answers; tables are created (default "
                        "sqlite:gateway.db)")),
        password(cmd),
        expiry(cmd.value("--expiry", "TIME", "How long an answer may be given (default 24h)")),
        deadline(cmd.value("--deadline", "TIME", "Time limit of the upstream (default 5s)")),
        access_log(cmd.value("--access-log", "FILE",
                             "A line of JSON for each request; - is standard output (default "
                             "none)")),
        observe(cmd.value("--observe", "ADDRESS",
                          "Serve /healthz, /readyz and /metrics there: 127.0.0.1:9100, unix:/path; "
                          "port 0: any free one")),
        allow_plain(cmd.flag("--allow-plain",
                             "Listen on addresses that other machines can reach; there is no "
                             "encryption")) {}

  /// Throws errc::invalid_argument, with the name of the option. What the configuration file would
  /// refuse must not be told with the names of its keys.
  void check() const {
    if (!upstream.is_set())
      throw error(errc::invalid_argument,
                  "--upstream is required: the server behind the gateway, http://host:port");
    for (const auto& url : upstream.all())
      name_option("--upstream " + url, [&] { (void)serve::gateway::parse_upstream(url); });
    for (const auto& [name, value] :
         {std::pair{"--expiry", &expiry}, std::pair{"--deadline", &deadline}}) {
      const auto text = value->text("1s");
      const auto time = detail::failover::config::parse_expiry(text);
      const bool is_time = time && time->name().empty();
      if (!is_time)
        throw error(errc::invalid_argument, std::string(name) + " '" + text +
                                                "' is not a time, such as 500ms, 5s, 24h or 7d");
    }
    for (const auto& address : listen.all()) {
      serve::config::check_listen_address("--listen", serve::config::socket_address(address));
      if (!serve::config::is_local_address(serve::config::socket_address(address)) &&
          !allow_plain.is_set())
        throw error(errc::invalid_argument,
                    "--listen " + address +
                        " can be reached from other machines, without encryption; add "
                        "--allow-plain, or configure TLS in the file of 'holdfast serve'");
    }
    if (observe.is_set())
      name_option("--observe",
                  [&] { serve::check_observation_address(observe.text(), allow_plain.is_set()); });
  }

  /// The configuration that says the same.
  [[nodiscard]] serve::config::server_config read(console& io, engine_options base) const {
    check();
    const auto quoted = [](const std::string& text) { return json_string(text); };
    std::string file = "[gateway.routes." + std::string(route_name) + "]\nupstream = [";
    for (const auto& url : upstream.all()) file += quoted(url) + ",";
    file += "]\n[failover.points." + std::string(route_name) +
            "]\nexpiry = " + quoted(expiry.text("24h")) +
            "\ndeadline = " + quoted(deadline.text("5s")) + "\n";
    const auto url = store.text("sqlite:gateway.db");
    // What is asked for often is given from memory.
    if (!url.starts_with("memory:")) file += "[failover.store.tiered]\nenabled = true\n";
    // What stands in the arguments is not for the environment to replace.
    auto result = serve::config::read_config(
        "", file, std::move(base), [](const std::string&) { return std::nullopt; }, url);
    result.stores.push_back(
        {.name = "main",
         .database = {.url = url_to_open(url, true), .password = password.read(io)},
         .create_schema = true,
         .payload = payload_column::bytes});
    auto& settings = result.gateway.value();
    settings.access_log = access_log.text();
    settings.allow_plain = allow_plain.is_set();
    if (listen.is_set()) {
      settings.listen = listen.all();
      for (auto& address : settings.listen)
        address = serve::config::socket_address(std::move(address));
    }
    serve::config::check_config(result);
    return result;
  }
};

/// Runs the gateway until a signal ends it.
class gateway_run {
 public:
  gateway_run(console& io, const gateway_options& options) : io_(io) {
    const auto log = queue_records(records_, io.log.least);
    auto metrics = make_prometheus_registry();
    config_ = options.read(
        io, {.log = log,
             .metrics = metrics,
             .reports = {.every = options.observe.is_set() ? time_between_reports
                                                           : std::chrono::seconds(0)}});
    auto& shared = opened_.shared;
    shared.clock = system_clock();
    shared.log = log;
    shared.metrics = metrics;
    serve::open_services(config_, opened_);
    const auto& file = config_.gateway.value().access_log;
    if (!file.empty()) access_ = std::make_unique<serve::access_log>(file, shared.clock);
    observe(options, metrics);
    server_ = std::make_unique<serve::gateway::gateway_server>(
        serve::gateway::options_for(config_, shared, access_.get()));
    server_->start();
  }

  exit_code run() {
    for (const auto& address : server_->addresses())
      io_.note("gateway on " +
               (address.starts_with('/') ? "unix:" + address : "http://" + address));
    if (monitored_) io_.note("metrics on " + monitored_->address() + "/metrics");
    serve::notify_service_manager("READY=1");
    for (;;) {
      const int signal = signals_.wait(gateway_turn_milliseconds);
      print_messages();
      if (signal == SIGHUP && access_) access_->reopen();
      if (signal == SIGTERM || signal == SIGINT) return stop();
    }
  }

 private:
  void print_messages() { print_records(io_, *records_); }

  void observe(const gateway_options& options, std::shared_ptr<prometheus_registry> metrics) {
    if (!options.observe.is_set()) return;
    const auto store = opened_.shared.stores.front().store;
    monitored_ = std::make_unique<serve::observation_server>(serve::observation_options{
        .listen = options.observe.text(),
        .allow_plain = options.allow_plain.is_set(),
        .checks = {{.name = "store:main",
                    .ask = [store] { return serve::problem_of_store(*store); }}},
        .metrics = std::move(metrics)});
  }

  exit_code stop() {
    serve::notify_service_manager("STOPPING=1");
    io_.note("stopping");
    server_->begin_drain();
    if (monitored_) monitored_->begin_drain();
    const auto deadline = steady_clock::now() + config_.grace;
    auto remaining = server_->stop(deadline);
    opened_.cleanup.reset();
    const auto report = opened_.shared.engine->close(deadline);
    if (report.unsaved > 0) remaining.push_back(std::to_string(report.unsaved) + " answers");
    print_messages();
    if (remaining.empty()) return exit_ok;
    std::string text;
    for (const auto& item : remaining) text += (text.empty() ? "" : ", ") + item;
    io_.warn("stopped, but this was left: " + text);
    // Threads that wait for the database use objects that destructors would take away.
    io_.out.flush();
    std::_Exit(exit_negative);
  }

  console& io_;
  const serve_signals signals_{};
  const std::shared_ptr<record_queue> records_ = std::make_shared<record_queue>();
  serve::config::server_config config_{};
  serve::opened_services opened_{};
  std::unique_ptr<serve::access_log> access_{};
  std::unique_ptr<serve::gateway::gateway_server> server_{};
  std::unique_ptr<serve::observation_server> monitored_{};
};

}  // namespace

void add_gateway_command(command root) {
  command cmd = root.add("gateway", "Answer for an HTTP service when it fails");
  cmd.about(
      "Passes requests on to the upstream and keeps its last good answer to each GET. When the "
      "upstream fails, the client gets that answer, and the fields Age, Cache-Status and "
      "Holdfast-Answer say what it is. For several routes, TLS and other options configure "
      "[gateway] in the file of 'holdfast serve'.\n"
      "\n"
      "SIGTERM: no more connections; requests under way are answered. Exit code 1 if something was "
      "left after 30 s. SIGHUP: the access log is opened again.");
  cmd.examples(
      "holdfast gateway --upstream http://127.0.0.1:8080\n"
      "holdfast gateway --upstream http://a:8080 --upstream http://b:8080 --store "
      "postgresql://app@db/app --expiry 7d");
  const gateway_options options(cmd);
  cmd.run([options](console& io) { return gateway_run(io, options).run(); });
  add_gateway_invalidate_command(cmd);
}

}  // namespace holdfast::cli
