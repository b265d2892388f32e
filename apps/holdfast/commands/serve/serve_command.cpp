// holdfast serve.

#include <holdfast/error.hpp>

#include "base/secret.hpp"
#include "base/url.hpp"
#include "commands/database_location.hpp"
#include "commands/groups.hpp"
#include "commands/serve/config_check.hpp"
#include "commands/serve/process_user.hpp"
#include "commands/serve/serve_signals.hpp"
#include "net/tls.hpp"
#include "serve/gateway/gateway_part.hpp"
#include "serve/parts.hpp"
#include "serve/server.hpp"
#include "serve/service_manager.hpp"
#include "terminal/message_queue.hpp"
#include "terminal/text.hpp"
#include "terminal/time_text.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::cli {

namespace {

using detail::serve::config::server_config;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// Between two looks for signals and messages.
constexpr long turn_milliseconds = 50;

struct serve_options {
  option config;
  option listen;
  option store;
  option outbox;
  option sequence;
  password_option password;
  option create;
  option open;
  option drain;
  option user;
  option check;

  explicit serve_options(command& cmd)
      : config(cmd.value("--config", "FILE", "Configuration, usually serve.toml").file()),
        listen(cmd.values("--listen", "ADDRESS",
                          "Address instead of those of the file: host:port, unix:/path (default "
                          "127.0.0.1:7360)")),
        store(cmd.value("--store", "URL", "Serve the store on this database, as 'main'")),
        outbox(cmd.value("--outbox", "URL", "Serve the outbox on this database, as 'main'")),
        sequence(cmd.value("--sequence", "URL", "Serve the sequences on this database")),
        password(cmd),
        create(cmd.flag("--create-schema",
                        "With --store, --outbox, --sequence: create tables that do not exist")),
        open(cmd.flag("--open", "Callers on this machine need no token")),
        drain(cmd.value("--drain", "TIME",
                        "After SIGTERM: time in which requests are accepted while /readyz says "
                        "503 (default 5s)")),
        user(cmd.value("--user", "NAME", "As root: continue as this user after listening")),
        check(cmd.flag("--check", "Check the configuration, and end")) {}

  /// Reads the file, and adds what the command line says. `base` has the log of the points.
  [[nodiscard]] server_config read(console& io, engine_options base) const {
    // Without a file the defaults are in force.
    const detail::secret_text text(
        config.is_set() ? detail::failover::config::read_text(config.text()) : std::string{});
    auto result = detail::serve::config::read_config(
        config.text(), text.view(), std::move(base),
        detail::failover::config::process_environment(), store.text());
    if (listen.is_set()) {
      result.listen = listen.all();
      for (auto& address : result.listen) {
        address = detail::serve::config::socket_address(std::move(address));
        detail::serve::config::check_listen_address("--listen", address);
      }
      show(result, "serve.listen", address_list(result.listen));
    }
    if (open.is_set()) result.open = true;
    if (drain.is_set())
      result.drain = std::chrono::duration_cast<milliseconds>(parse_duration(drain.text()));
    add_urls(io, result);
    detail::serve::config::check_config(result);
    return result;
  }

 private:
  static std::string address_list(const std::vector<std::string>& addresses) {
    std::string text;
    for (const auto& address : addresses) text.append(text.empty() ? "" : ", ").append(address);
    return text;
  }
  /// Replaces what the configuration shows for a key.
  static void show(server_config& target, const std::string& key, std::string value) {
    std::erase_if(target.effective, [&](const auto& shown) { return shown.key == key; });
    target.effective.push_back({.key = key, .value = std::move(value)});
  }

  void add_urls(console& io, server_config& target) const {
    const bool has_url = store.is_set() || outbox.is_set() || sequence.is_set();
    if (!has_url && (create.is_set() || password.file.is_set()))
      throw error(errc::invalid_argument,
                  "--create-schema and --password-file are for --store, --outbox and --sequence; "
                  "remove them, or set this in the file");
    if (!has_url) return;
    const auto database = [&](const option& url, const std::string& key) {
      show(target, key, detail::without_password(url.text()));
      detail::serve::config::database_config result{.url = url_to_open(url.text(), create.is_set()),
                                                    .password = password.read(io)};
      return result;
    };
    const auto is_main = [](const auto& service) { return service.name == "main"; };
    if ((store.is_set() && std::ranges::any_of(target.stores, is_main)) ||
        (outbox.is_set() && std::ranges::any_of(target.outboxes, is_main)) ||
        (sequence.is_set() && target.sequences))
      throw error(errc::invalid_argument,
                  "the file has 'main' already; remove the URL from the command line");
    if (store.is_set())
      target.stores.push_back({.name = "main",
                               .database = database(store, "stores.main.url"),
                               .create_schema = create.is_set()});
    if (outbox.is_set())
      target.outboxes.push_back({.name = "main",
                                 .database = database(outbox, "outboxes.main.url"),
                                 .create_schema = create.is_set()});
    if (!sequence.is_set()) return;
    if (sequence.text().starts_with("redis"))
      throw error(errc::invalid_argument,
                  "sequences on Redis need a fence; configure [sequences] in a file");
    target.sequences.emplace();
    target.sequences->database = database(sequence, "sequences.url");
    target.sequences->create_schema = create.is_set();
  }
};

void refuse_root(const server_config& config, const option& user) {
  const auto is_local = detail::serve::config::is_local_address;
  const bool remote = !std::ranges::all_of(config.listen, is_local) ||
                      (config.gateway && !std::ranges::all_of(config.gateway->listen, is_local));
  if (is_root() && remote && !user.is_set())
    throw error(errc::invalid_argument,
                "root must not serve other machines; add --user NAME, or start as another user");
}

/// Runs a server until a signal ends it.
class server_run {
 public:
  server_run(console& io, const serve_options& options) : io_(io), options_(options) {
    const auto log = queue_records(records_, io.log.least);
    metrics_ = make_prometheus_registry(detail::serve::series_limits);
    reloaded_ = metrics_->gauge("holdfast_serve_reload_successful", {},
                                "0 if the configuration could not be read again (SIGHUP)");
    reloaded_->set(1);
    detail::serve::server_setup setup{.config = options.read(io, points_base(log)),
                                      .use_inherited = true,
                                      .log = log,
                                      .metrics = metrics_};
    refuse_root(setup.config, options.user);
    if (options.user.is_set())
      setup.on_listening = [name = options.user.text()] { become_user(name); };
    // A service manager decides where to listen.
    if (::getenv("LISTEN_FDS") != nullptr &&
        !options.listen.is_set())  // NOLINT(concurrency-mt-unsafe)
      setup.config.listen.clear();
    scheme_ = setup.config.tls.certificate.empty() ? "http" : "https";
    drain_ = setup.config.drain;
    grace_ = setup.config.grace;
    setup.parts = detail::serve::make_parts(setup.config, hooks());
    gateway_scheme_ =
        setup.config.gateway && !setup.config.gateway->tls.certificate.empty() ? "https" : "http";
    if (auto part = detail::serve::gateway::make_gateway_part(
            setup.config,
            [this](const std::vector<std::string>& addresses) { gateway_addresses_ = addresses; }))
      setup.parts.push_back(std::move(part));
    server_ = std::make_unique<detail::serve::server>(std::move(setup));
  }

  exit_code run() {
    for (const auto& address : server_->addresses()) {
      const bool is_path = address.starts_with('/');
      say("listening on " + (is_path ? "unix:" + address : scheme_ + "://" + address));
    }
    for (const auto& address : gateway_addresses_) {
      const bool is_path = address.starts_with('/');
      say("gateway on " + (is_path ? "unix:" + address : gateway_scheme_ + "://" + address));
    }
    bool announced = false;
    for (;;) {
      const int signal = signals_.wait(turn_milliseconds);
      print_messages();
      if (!announced && server_->has_started()) {
        announced = true;
        announce();
      }
      if (signal == SIGHUP) reload();
      if (signal == SIGTERM || signal == SIGINT) return stop();
    }
  }

 private:
  [[nodiscard]] engine_options points_base(const log_sink& log) const {
    return {.log = log, .metrics = metrics_};
  }
  void say(const std::string& message) { io_.note(message); }
  [[nodiscard]] detail::serve::part_hooks hooks() {
    // What is not a terminal is usually a log.
    if (!io_.err.is_terminal()) return {};
    return {.show = [this](const detail::serve::first_credentials& credentials) {
      say("first start: this token of an admin is valid for 24 hours, and is not shown again. '" +
          credentials.add_command + "' makes others");
      io_.err << credentials.token << "\n";
      if (!credentials.link.empty())
        io_.err << "console, once and within 10 minutes: " << credentials.link << "\n";
      io_.err.flush();
    }};
  }
  void print_messages() { print_records(io_, *records_); }

  void announce() {
    std::string names;
    for (const auto& name : server_->missing()) names += (names.empty() ? "" : ", ") + name;
    if (names.empty()) say("ready");
    else io_.warn("ready, but without " + names + "; see /readyz");
    detail::serve::notify_service_manager("READY=1");
  }

  void reload() {
    detail::serve::notify_service_manager("RELOADING=1");
    try {
      const auto changed = server_->reload(options_.read(io_, points_base({})));
      std::string keys;
      for (const auto& key : changed) keys += (keys.empty() ? "" : ", ") + key;
      say(keys.empty() ? "the configuration was read again"
                       : "the configuration was read again; these keys need a restart: " + keys);
      reloaded_->set(1);
    } catch (const error& failure) {
      reloaded_->set(0);
      io_.warn(std::string("the configuration was not read again, the old one stays: ") +
               failure.what());
    }
    detail::serve::notify_service_manager("READY=1");
  }

  /// A second signal ends the process at once.
  void obey_second_signal(int signal) {
    if (signal != SIGTERM && signal != SIGINT) return;
    say("ended by a second signal");
    std::_Exit(exit_negative);
  }

  exit_code stop() {
    detail::serve::notify_service_manager("STOPPING=1");
    say("stopping");
    server_->begin_drain();
    const auto begin = steady_clock::now();
    while (steady_clock::now() - begin < drain_) {
      obey_second_signal(signals_.wait(turn_milliseconds));
      print_messages();
    }
    const auto remaining = stop_server(std::max(grace_ - drain_, milliseconds(0)));
    print_messages();
    if (remaining.empty()) return exit_ok;
    std::string text;
    for (const auto& item : remaining) text += (text.empty() ? "" : ", ") + item;
    io_.warn("stopped, but this was left: " + text);
    // Threads that wait for a database use objects that destructors would take away.
    io_.out.flush();
    std::_Exit(exit_negative);
  }

  std::vector<std::string> stop_server(milliseconds grace) {
    std::vector<std::string> remaining;
    std::exception_ptr failure;
    std::atomic<bool> stopped = false;
    {
      const std::jthread thread([&] {
        try {
          remaining = server_->stop(grace);
        } catch (...) {
          failure = std::current_exception();
        }
        stopped = true;
      });
      while (!stopped) {
        obey_second_signal(signals_.wait(turn_milliseconds));
        print_messages();
      }
    }
    if (failure) std::rethrow_exception(failure);
    return remaining;
  }

  console& io_;
  const serve_options& options_;
  const serve_signals signals_{};
  const std::shared_ptr<record_queue> records_ = std::make_shared<record_queue>();
  std::shared_ptr<prometheus_registry> metrics_{};
  std::shared_ptr<metrics::gauge> reloaded_{};
  std::string scheme_{};
  std::string gateway_scheme_{};
  std::vector<std::string> gateway_addresses_{};
  milliseconds drain_{};
  milliseconds grace_{};
  std::unique_ptr<detail::serve::server> server_{};
};

}  // namespace

void add_serve_commands(command root) {
  command cmd = root.add("serve", "Serve stores, sequences and outboxes over HTTP");
  cmd.about(
      "Listens on 127.0.0.1:7360. Other addresses need TLS, or serve.allow-plain = true, and a "
      "token. GET /v1/openapi.json describes the API, /readyz says what is not ready. Access log "
      "on standard output.\n"
      "\n"
      "SIGTERM: /readyz says 503 at once; after 5 s (--drain) connections are closed when their "
      "requests are answered. Exit code 1 if something was left. A second SIGTERM ends at once. "
      "SIGHUP: certificates and names are read again, and the access log is opened again.");
  cmd.examples(
      "holdfast serve --config /etc/holdfast/serve.toml\n"
      "holdfast serve --store sqlite:answers.db --create-schema --open\n"
      "holdfast serve --config serve.toml --check");
  const serve_options options(cmd);
  cmd.run([options](console& io) {
    if (options.check.is_set()) {
      const std::string content = check_references(options.read(io, {}));
      io.out << "the configuration is valid: " << content << "\n";
      return exit_ok;
    }
    return server_run(io, options).run();
  });
  add_token_commands(cmd);
}

}  // namespace holdfast::cli
