#include "bench/serve/gateway.hpp"

#include <holdfast/error.hpp>

#include "bench/serve/load.hpp"
#include "bench/serve/program.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::bench {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t waiting_connections = 9'000;

struct gateway_row {
  const char* name;
  double bar;
  const char* unit;
};

constexpr std::array<gateway_row, 7> gateway_rows{{
    {"gateway.live_64", 1.5, "ns"},
    {"gateway.changed_64", 1.5, "ns"},
    {"gateway.stale_64", 1.0, "ns"},
    {"gateway.stale_512", 1.0, "ns"},
    {"gateway.breaker_64", 1.3, "ns"},
    {"gateway.soft_64", 1.3, "ns"},
    {"gateway.idle_bytes", 0.5, "bytes"},
}};

const gateway_row& row_of(const std::string& name) {
  const auto it = std::ranges::find(gateway_rows, name, &gateway_row::name);
  if (it == gateway_rows.end())
    throw error(errc::invalid_argument, "there is no row " + name + "; --list shows them");
  return *it;
}

row make_gateway_row(const std::string& name, double ours, double floor) {
  const auto& definition = row_of(name);
  return make_row(name, ours, floor, definition.unit, definition.bar, bound::at_most);
}

/// nginx in one process, in a directory of its own. `servers` are blocks of `server`.
class nginx_process {
 public:
  nginx_process(const std::string& servers, std::uint16_t port, int processor) {
    std::string config =
        "daemon off;\nmaster_process off;\npid nginx.pid;\nerror_log /dev/null crit;\n"
        "events { worker_connections 20000; multi_accept on; }\n"
        "http {\naccess_log off;\nkeepalive_timeout 600s;\nkeepalive_requests 1000000;\n"
        "client_header_timeout 600s;\nproxy_cache_path cache keys_zone=kept:10m;\n";
    for (const auto* kind : {"client_body", "proxy", "fastcgi", "uwsgi", "scgi"})
      config += std::string(kind) + "_temp_path " + kind + ";\n";
    const auto file = directory_.write("nginx.conf", config + servers + "}\n");
    const auto log = directory_.file("log");
    process_ = std::make_unique<program>(
        std::vector<std::string>{"nginx", "-e", log, "-p", directory_.path(), "-c", file},
        processor, log);
    wait_for_port(port, *process_, log);
  }
  [[nodiscard]] const program& process() const { return *process_; }

 private:
  private_directory directory_{};
  std::unique_ptr<program> process_{};
};

/// An upstream that answers with a kibibyte, on the processor of the client.
class bench_upstream {
 public:
  bench_upstream() : port_(free_port()) { start(); }
  void start() {
    const std::string body(980, 'x');
    server_ = std::make_unique<nginx_process>("server { listen 127.0.0.1:" + std::to_string(port_) +
                                                  " backlog=4096; location / { return 200 '" +
                                                  body + "'; } location /changed { return 200 '" +
                                                  body + "$request_id'; } }\n",
                                              port_, client_processor());
  }
  void stop() { server_.reset(); }
  [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  std::uint16_t port_;
  std::unique_ptr<nginx_process> server_{};
};

/// `holdfast serve` with a route for each row.
class our_gateway {
 public:
  our_gateway(const serve_bench_options& options, const std::string& alive,
              const std::string& mortal)
      : port_(free_port()) {
    std::string config =
        "[serve]\nlisten = [\"127.0.0.1:" + std::to_string(free_port()) +
        "\"]\naccess-log = \"\"\nloops = 1\nstate = " +
        quoted("sqlite:" + directory_.file("state.db")) +
        "\n[serve.limits]\nidle-timeout = \"10m\"\nhead-timeout = \"10m\"\n" +
        "[stores.main]\nurl = " + quoted("sqlite:" + directory_.file("answers.db")) +
        "\ncreate-schema = true\npayload-column = \"bytes\"\n"
        "[failover.store.tiered]\nenabled = true\n"
        "[gateway]\nlisten = [\"127.0.0.1:" +
        std::to_string(port_) +
        "\"]\naccess-log = \"\"\nlimits.connections = 20000\n"
        "limits.connections-per-address = 20000\n";
    const auto route = [&](const std::string& name, const std::string& upstream,
                           const std::string& settings) {
      config += "[gateway.routes." + name + "]\npath = \"/" + name +
                "/\"\nupstream = " + quoted("http://" + upstream) + "\n[failover.points." + name +
                "]\nexpiry = \"24h\"\n" + settings;
    };
    route("live", alive, "");
    route("changed", alive, "");
    route("soft", alive, "soft-expiry = \"23h\"\n");
    route("stale", mortal, "");
    route("breaker", mortal, "breaker.enabled = true\nbreaker.minimum = 2\n");
    const auto file = directory_.write("serve.toml", config);
    const auto log = directory_.file("log");
    process_ = std::make_unique<program>(
        std::vector<std::string>{options.program, "serve", "--config", file, "--open"},
        server_processor(), log);
    wait_for_text("ready", *process_, log);
    wait_for_port(port_, *process_, log);
  }
  [[nodiscard]] const program& process() const { return *process_; }
  [[nodiscard]] std::uint16_t port() const { return port_; }

 private:
  private_directory directory_{};
  std::uint16_t port_;
  std::unique_ptr<program> process_{};
};

/// nginx with a location for each row.
class nginx_gateway {
 public:
  nginx_gateway(const std::string& alive, const std::string& mortal) : port_(free_port()) {
    const std::string cached =
        "proxy_cache kept; proxy_cache_use_stale error timeout http_500 http_502 http_503 "
        "http_504; ";
    std::string servers = "upstream alive { server " + alive +
                          "; keepalive 256; keepalive_requests 1000000; }\nupstream mortal { "
                          "server " +
                          mortal +
                          "; keepalive 256; }\nserver { listen 127.0.0.1:" + std::to_string(port_) +
                          " backlog=4096;\nproxy_http_version 1.1; proxy_set_header Connection "
                          "\"\";\n";
    servers += "location /live/ { proxy_pass http://alive; }\n";
    servers += "location /changed/ { proxy_pass http://alive; " + cached +
               "proxy_cache_valid 200 1h; proxy_cache_bypass 1; }\n";
    servers +=
        "location /stale/ { proxy_pass http://mortal; " + cached + "proxy_cache_valid 200 1s; }\n";
    servers +=
        "location /hit/ { proxy_pass http://alive; " + cached + "proxy_cache_valid 200 1h; }\n}\n";
    server_ = std::make_unique<nginx_process>(servers, port_, server_processor());
  }
  [[nodiscard]] const program& process() const { return server_->process(); }
  [[nodiscard]] std::uint16_t port() const { return port_; }

 private:
  std::uint16_t port_;
  std::unique_ptr<nginx_process> server_{};
};

std::string ask(std::uint16_t port, const std::string& path) {
  const client_socket client(port);
  client.send("GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
  return client.read_answer();
}

class gateway_bench {
 public:
  explicit gateway_bench(const serve_bench_options& options) : options_(options) {
    for (const auto& name : options_.rows) (void)row_of(name);
  }

  std::vector<row> run() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
      limit.rlim_cur = limit.rlim_max;
      (void)::setrlimit(RLIMIT_NOFILE, &limit);
    }
    measure("gateway.live_64", "/live/a", "/live/a", 64);
    measure("gateway.changed_64", "/changed/a", "/changed/a", 64);
    measure("gateway.soft_64", "/soft/a", "/hit/a", 64);
    // From here on the mortal upstream is dead.
    for (const auto* path : {"/stale/a", "/breaker/a"}) (void)ask(ours_.port(), path);
    (void)ask(nginx_.port(), "/stale/a");
    mortal_.stop();
    std::this_thread::sleep_for(2'100ms);  // the copy of nginx expires
    for (int i = 0; i < 20; ++i) (void)ask(ours_.port(), "/breaker/a");
    check_answer(ours_.port(), "/stale/a", "fwd=stale");
    check_answer(ours_.port(), "/breaker/a", "breaker-open");
    measure("gateway.stale_64", "/stale/a", "/stale/a", 64);
    measure("gateway.stale_512", "/stale/a", "/stale/a", 512);
    measure("gateway.breaker_64", "/breaker/a", "/hit/a", 64);
    if (wants("gateway.idle_bytes")) measure_bytes();
    return std::move(rows_);
  }

 private:
  [[nodiscard]] bool wants(const std::string& name) const {
    return options_.rows.empty() || std::ranges::find(options_.rows, name) != options_.rows.end();
  }
  static void check_answer(std::uint16_t port, const std::string& path, const std::string& part) {
    const auto answer = ask(port, path);
    if (answer.find(part) == std::string::npos)
      throw error(errc::unavailable, path + " is not answered as it should be: " + answer);
  }

  void measure(const std::string& name, const std::string& our_path, const std::string& floor_path,
               std::size_t connections) {
    if (!wants(name)) return;
    const auto load_of = [&](std::uint16_t port, const std::string& path) {
      return load{
          .connections = connections, .url = url_of(port, path), .seconds = options_.seconds};
    };
    const auto our_load = load_of(ours_.port(), our_path);
    const auto floor_load = load_of(nginx_.port(), floor_path);
    rows_.push_back(best_of_three([&] {
      std::vector<double> ours;
      std::vector<double> floor;
      (void)cost_of(ours_.process(), our_load);  // warms up
      (void)cost_of(nginx_.process(), floor_load);
      for (std::size_t round = 0; round < options_.rounds; ++round) {
        if (round % 2 == 0) ours.push_back(cost_of(ours_.process(), our_load));
        floor.push_back(cost_of(nginx_.process(), floor_load));
        if (round % 2 != 0) ours.push_back(cost_of(ours_.process(), our_load));
      }
      return make_gateway_row(name, median(std::move(ours)), median(std::move(floor)));
    }));
  }

  /// Memory for each connection that has sent half a header.
  static double bytes_of_connection(const program& server, std::uint16_t port) {
    std::vector<client_socket> clients;
    clients.reserve(waiting_connections);
    const auto add_one = [&] {
      clients.emplace_back(port);
      clients.back().send("GET /live/a HTTP/1.1\r\nHost: localhost\r\nX: ");
    };
    const auto resident = [&] {
      (void)ask(port, "/live/a");
      std::this_thread::sleep_for(200ms);
      (void)ask(port, "/live/a");
      return server.resident_bytes();
    };
    for (int i = 0; i < 100; ++i) add_one();
    const auto before = resident();
    while (clients.size() < waiting_connections) add_one();
    const auto after = resident();
    for (const auto& client : clients) {
      if (!client.drain())
        throw error(errc::unavailable, "a server closed a connection that waits");
    }
    return static_cast<double>(after - std::min(before, after)) /
           static_cast<double>(waiting_connections - 100);
  }
  /// Servers of its own: memory that other rows have used would be used again.
  void measure_bytes() {
    rows_.push_back(best_of_three([&] {
      const our_gateway server(options_, alive_.address(), alive_.address());
      const nginx_gateway floor(alive_.address(), alive_.address());
      return make_gateway_row("gateway.idle_bytes",
                              bytes_of_connection(server.process(), server.port()),
                              bytes_of_connection(floor.process(), floor.port()));
    }));
  }

  const serve_bench_options& options_;
  bench_upstream alive_{};
  bench_upstream mortal_{};
  our_gateway ours_{options_, alive_.address(), mortal_.address()};
  nginx_gateway nginx_{alive_.address(), mortal_.address()};
  std::vector<row> rows_{};
};

}  // namespace

std::vector<std::string> gateway_row_names() {
  std::vector<std::string> names;
  for (const auto& definition : gateway_rows) names.emplace_back(definition.name);
  return names;
}

std::vector<row> measure_gateway(const serve_bench_options& options) {
  return gateway_bench(options).run();
}

}  // namespace holdfast::bench
