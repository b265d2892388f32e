#include "bench/serve/serve.hpp"

#include <holdfast/database.hpp>
#include <holdfast/error.hpp>
#include <holdfast/outbox.hpp>
#include <holdfast/sequence.hpp>
#include <holdfast/store/memory.hpp>

#include "bench/serve/load.hpp"
#include "bench/serve/program.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::bench {

namespace {

using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

constexpr std::size_t idle_connections = 9'000;
constexpr std::size_t slow_connections = 1'000;
constexpr std::size_t points = 50;

struct row_definition {
  const char* name;
  double bar;
  bound bar_bound;
  const char* unit;
  bool alone;
};

constexpr std::array<row_definition, 14> definitions{{
    {"serve.health_64", 1.1, bound::at_most, "ns", false},
    {"serve.health_512", 1.1, bound::at_most, "ns", false},
    {"serve.store_get_64", 1.5, bound::at_most, "ns", false},
    {"serve.next_64", 1.5, bound::at_most, "ns", false},
    {"serve.next_1000", 0.2, bound::at_least, "ids/s", false},
    {"serve.publish_100", 0.7, bound::at_least, "events/s", false},
    {"serve.tls_64", 1.2, bound::at_most, "ns", false},
    {"serve.idle_bytes", 0.5, bound::at_most, "bytes", false},
    {"serve.kept_bytes", 1, bound::at_most, "bytes", false},
    {"serve.sse_64", 3, bound::at_most, "us/s", false},
    {"serve.idle", 0.3, bound::at_most, "ms/min", false},
    {"serve.loris", 2, bound::at_most, "us", true},
    {"serve.loris_closed", 1.2, bound::at_most, "ms", true},
    {"serve.loris_open", 0, bound::at_most, "", true},
}};

const row_definition& definition_of(const std::string& name) {
  const auto it = std::ranges::find(definitions, name, &row_definition::name);
  if (it == definitions.end())
    throw error(errc::invalid_argument, "there is no row " + name + "; --list shows them");
  return *it;
}

row make_serve_row(const std::string& name, double ours, double floor) {
  const auto& definition = definition_of(name);
  return make_row(name, ours, floor, definition.unit, definition.bar, definition.bar_bound);
}

// ---- costs

std::chrono::nanoseconds own_processor_time() {
  timespec time{};
  (void)::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

/// Nanoseconds of the processor for one call, over a tenth of a second.
double cost_in_process(const std::function<void()>& call) {
  const auto begin = own_processor_time();
  std::uint64_t count = 0;
  while (own_processor_time() - begin < 100ms) {
    for (int i = 0; i < 20; ++i) call();
    count += 20;
  }
  return static_cast<double>((own_processor_time() - begin).count()) / static_cast<double>(count);
}

/// Takes rounds of both sides alternately, and compares the medians.
row compare(const std::string& name, std::size_t rounds, const std::function<double()>& ours,
            const std::function<double()>& floor) {
  std::vector<double> our_figures;
  std::vector<double> floor_figures;
  if (rounds > 1) {  // warms up
    (void)ours();
    (void)floor();
  }
  for (std::size_t round = 0; round < rounds; ++round) {
    if (round % 2 == 0) our_figures.push_back(ours());
    floor_figures.push_back(floor());
    if (round % 2 != 0) our_figures.push_back(ours());
  }
  return make_serve_row(name, median(std::move(our_figures)), median(std::move(floor_figures)));
}

// ---- servers

struct certificate_files {
  std::string certificate;
  std::string key;
};

certificate_files make_certificate(const private_directory& directory) {
  certificate_files files{.certificate = directory.file("server.pem"),
                          .key = directory.file("server.key")};
  (void)run_program({"openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout",
                     files.key, "-out", files.certificate, "-days", "2", "-subj", "/CN=bench",
                     "-addext", "subjectAltName=IP:127.0.0.1"});
  return files;
}

/// `holdfast serve` with one loop, without an access log, and a token for an application.
class our_server {
 public:
  /// `limits` are more lines of [serve.limits].
  explicit our_server(const serve_bench_options& options, const certificate_files* tls = nullptr,
                      const std::string& limits = {})
      : port_(free_port()) {
    const auto state = "sqlite:" + directory_.file("state.db");
    std::string config = "[serve]\nlisten = [\"127.0.0.1:" + std::to_string(port_) +
                         "\"]\naccess-log = \"\"\nloops = 1\nstate = " + quoted(state) + "\n";
    if (tls != nullptr)
      config += "tls.certificate = " + quoted(tls->certificate) +
                "\ntls.key = " + quoted(tls->key) + "\n";
    config += "[serve.limits]\nconnections = 20000\nidle-timeout = \"10m\"\n" + limits;
    config += "[stores.main]\nurl = \"memory:\"\n";
    config += "[outboxes.orders]\nurl = " + quoted("sqlite:" + directory_.file("outbox.db")) +
              "\ncreate-schema = true\ndedup-window = \"1s\"\n";
    config += "[sequences]\nurl = \"memory:\"\n";
    for (std::size_t i = 0; i < points; ++i)
      config += "[failover.points.point" + std::to_string(i) + "]\nexpiry = \"24h\"\n";
    const auto file = directory_.write("serve.toml", config);
    token_ =
        run_program({options.program, "serve", "token", "add", "--role", "app", "--state", state});
    token_.erase(token_.find_last_not_of('\n') + 1);
    viewer_ = run_program(
        {options.program, "serve", "token", "add", "--role", "viewer", "--state", state});
    viewer_.erase(viewer_.find_last_not_of('\n') + 1);
    const auto log = directory_.file("log");
    process_ = std::make_unique<program>(
        std::vector<std::string>{options.program, "serve", "--config", file}, server_processor(),
        log);
    wait_for_text("ready", *process_, log);
  }

  [[nodiscard]] const program& process() const { return *process_; }
  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] const std::string& viewer() const { return viewer_; }
  /// A script of wrk that sends one request again and again.
  [[nodiscard]] std::string script(const std::string& name, const std::string& method,
                                   const std::string& body = {},
                                   const std::string& type = "application/json") const {
    std::string text = "wrk.method = \"" + method +
                       "\"\nwrk.headers[\"Authorization\"] = " + quoted("Bearer " + token_) + "\n";
    if (!body.empty())
      text +=
          "wrk.headers[\"Content-Type\"] = " + quoted(type) + "\nwrk.body = [==[" + body + "]==]\n";
    return directory_.write(name + ".lua", text);
  }
  /// Sends one request. Throws errc::unavailable if the status is not 2xx.
  std::string request(const std::string& method, const std::string& path, const std::string& body,
                      const std::string& fields = {}) const {
    const client_socket client(port_);
    client.send(method + " " + path + " HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " +
                token_ + "\r\n" + fields + "Content-Length: " + std::to_string(body.size()) +
                "\r\n\r\n" + body);
    auto answer = client.read_answer();
    if (!answer.starts_with("HTTP/1.1 2"))
      throw error(errc::unavailable, "the server refused " + path + ": " + answer);
    return answer;
  }

 private:
  private_directory directory_{};
  std::uint16_t port_;
  std::string token_{};
  std::string viewer_{};
  std::unique_ptr<program> process_{};
};

/// nginx in one process, with everything that it writes in a directory of its own.
class nginx_server {
 public:
  explicit nginx_server(const certificate_files* tls = nullptr) : port_(free_port()) {
    const std::string port = std::to_string(port_);
    std::string config =
        "daemon off;\nmaster_process off;\npid nginx.pid;\nerror_log log;\n"
        "events { worker_connections 20000; multi_accept on; }\n"
        "http {\naccess_log off;\nkeepalive_timeout 600s;\nkeepalive_requests 10000;\n"
        "default_type application/json;\n";
    for (const auto* kind : {"client_body", "proxy", "fastcgi", "uwsgi", "scgi"})
      config += std::string(kind) + "_temp_path " + kind + ";\n";
    if (tls != nullptr)
      config += "ssl_certificate " + tls->certificate + ";\nssl_certificate_key " + tls->key +
                ";\nssl_protocols TLSv1.3;\n";
    config += "server { listen 127.0.0.1:" + port + (tls != nullptr ? " ssl" : "") +
              " backlog=4096; location / { return 200 '{\"healthy\":true}'; } }\n}\n";
    const auto file = directory_.write("nginx.conf", config);
    const auto log = directory_.file("log");
    process_ = std::make_unique<program>(
        std::vector<std::string>{"nginx", "-e", log, "-p", directory_.path(), "-c", file},
        server_processor(), log);
    wait_for_port(port_, *process_, log);
  }
  [[nodiscard]] const program& process() const { return *process_; }
  [[nodiscard]] std::uint16_t port() const { return port_; }

 private:
  private_directory directory_{};
  std::uint16_t port_;
  std::unique_ptr<program> process_{};
};

// ---- rows

class serve_bench {
 public:
  explicit serve_bench(const serve_bench_options& options) : options_(options) {
    for (const auto& name : options_.rows) (void)definition_of(name);
  }

  std::vector<row> run() {
    // 9,000 connections, and the files of the program.
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
      limit.rlim_cur = limit.rlim_max;
      (void)::setrlimit(RLIMIT_NOFILE, &limit);
    }
    if (wants("serve.health_64")) measure_health(64);
    if (wants("serve.health_512")) measure_health(512);
    if (wants("serve.store_get_64")) measure_store_get();
    if (wants("serve.next_64")) measure_next();
    if (wants("serve.next_1000")) measure_next_many();
    if (wants("serve.publish_100")) measure_publish();
    if (wants("serve.tls_64")) measure_tls();
    if (wants("serve.idle_bytes")) measure_bytes("serve.idle_bytes", true);
    if (wants("serve.kept_bytes")) measure_bytes("serve.kept_bytes", false);
    if (wants("serve.sse_64")) measure_streams();
    if (wants("serve.idle")) measure_idle();
    if (wants("serve.loris") || wants("serve.loris_closed") || wants("serve.loris_open"))
      measure_slow_clients();
    return std::move(rows_);
  }

 private:
  [[nodiscard]] bool wants(const std::string& name) const {
    if (!options_.rows.empty())
      return std::ranges::find(options_.rows, name) != options_.rows.end();
    return options_.alone || !definition_of(name).alone;
  }
  [[nodiscard]] const our_server& ours() {
    if (!ours_) ours_ = std::make_unique<our_server>(options_);
    return *ours_;
  }
  [[nodiscard]] const nginx_server& nginx() {
    if (!nginx_) nginx_ = std::make_unique<nginx_server>();
    return *nginx_;
  }
  void add(const std::function<row()>& measurement) { rows_.push_back(best_of_three(measurement)); }
  [[nodiscard]] load loaded(const std::string& url, std::size_t connections = 64,
                            std::string script = {}) const {
    return {.connections = connections,
            .url = url,
            .script = std::move(script),
            .seconds = options_.seconds};
  }
  [[nodiscard]] double health_cost() {
    return cost_of(ours().process(), loaded(url_of(ours().port(), "/healthz")));
  }

  void measure_health(std::size_t connections) {
    const auto our_load = loaded(url_of(ours().port(), "/healthz"), connections);
    const auto nginx_load = loaded(url_of(nginx().port(), "/healthz"), connections);
    add([&] {
      return compare(
          "serve.health_" + std::to_string(connections), options_.rounds,
          [&] { return cost_of(ours().process(), our_load); },
          [&] { return cost_of(nginx().process(), nginx_load); });
    });
  }

  void measure_store_get() {
    const std::string path = "/v1/stores/main/country/FR";
    (void)ours().request("PUT", path, R"({"euro":30})", "Cache-Control: max-age=3600\r\n");
    const auto get = loaded(url_of(ours().port(), path), 64, ours().script("get", "GET"));
    const auto entries = make_memory_store();
    const auto now = system_clock()->now();
    entries->put({.name = "country",
                  .key = "FR",
                  .as_of = now,
                  .expire_on = now + 1h,
                  .payload = R"({"euro":30})"});
    const auto find = [&] { do_not_optimize(entries->find(place("country"), "FR")); };
    add([&] {
      return compare(
          "serve.store_get_64", options_.rounds, [&] { return cost_of(ours().process(), get); },
          [&] { return health_cost() + cost_in_process(find); });
    });
  }

  void measure_next() {
    const auto url = url_of(ours().port(), "/v1/sequences/order.id/next");
    const auto next = loaded(url, 64, ours().script("next", "POST", R"({"count":1})"));
    add([&] {
      return compare(
          "serve.next_64", options_.rounds, [&] { return cost_of(ours().process(), next); },
          [&] { return health_cost(); });
    });
  }

  /// The floor draws as many ids, and writes them as text: an answer of JSON has to.
  void measure_next_many() {
    constexpr double count = 1000;
    constexpr double nanoseconds = 1e9;
    const auto url = url_of(ours().port(), "/v1/sequences/many.id/next");
    const auto next = loaded(url, 8, ours().script("next_1000", "POST", R"({"count":1000})"));
    auto ids = open("memory:").sequence("many.id", {.blocks = adaptive_blocks{}});
    std::array<char, 24> digits{};
    const auto draw = [&] {
      const auto block = ids.next_n(static_cast<std::int64_t>(count));
      for (auto id = block.first(); id < block.first() + static_cast<std::int64_t>(count); ++id)
        do_not_optimize(*std::to_chars(digits.data(), digits.data() + digits.size(), id).ptr);
    };
    add([&] {
      return compare(
          "serve.next_1000", options_.rounds,
          [&] { return count * nanoseconds / cost_of(ours().process(), next); },
          [&] { return count * nanoseconds / cost_in_process(draw); });
    });
  }

  void measure_publish() {
    constexpr std::size_t count = 100;
    constexpr double nanoseconds = 1e9;
    std::string batch;
    for (std::size_t i = 0; i < count; ++i)
      batch += std::string(i == 0 ? "[" : ",") +
               R"({"specversion":"1.0","id":"","source":"/bench","type":"order.paid",)" +
               R"("data":{"order":)" + std::to_string(i) + R"(,"euro":30}})";
    batch += "]";
    // Each batch needs ids of its own: the script puts a counter into them.
    const auto script = ours().script("publish", "POST", "x", "application/cloudevents-batch+json");
    const private_directory directory;
    const auto counting = directory.write(
        "publish.lua",
        "dofile(" + quoted(script) + ")\nlocal batch = [==[" + batch +
            "]==]\nlocal n = " + std::to_string(steady::now().time_since_epoch().count()) +
            "\nfunction request()\n  n = n + 1\n  local i = 0\n  local body = "
            "batch:gsub('\"id\":\"\"', function() i = i + 1; return '\"id\":\"' .. "
            "string.format('%.0f-%d', n, i) .. '\"' end)\n  return "
            "wrk.format(nil, nil, nil, body)\nend\n");
    const auto url = url_of(ours().port(), "/v1/outboxes/orders/events");
    const auto publish = loaded(url, 1, counting);
    const auto db = open("sqlite:" + directory.file("floor.db") + "?mode=rwc");
    const auto events = db.outbox({.dedup_window = 1s, .create_schema = true});
    const auto publish_all = [&] {
      std::vector<event> list(count);
      for (std::size_t i = 0; i < count; ++i)
        list[i] = {.type = "order.paid",
                   .payload = R"({"order":)" + std::to_string(i) + R"(,"euro":30})"};
      do_not_optimize(events.publish_all(std::move(list)));
    };
    add([&] {
      return compare(
          "serve.publish_100", options_.rounds,
          [&] { return count * nanoseconds / cost_of(ours().process(), publish); },
          [&] { return count * nanoseconds / cost_in_process(publish_all); });
    });
  }

  void measure_tls() {
    const private_directory directory;
    const auto files = make_certificate(directory);
    const our_server server(options_, &files);
    const nginx_server floor(&files);
    const auto our_load = loaded(url_of(server.port(), "/healthz", true));
    const auto nginx_load = loaded(url_of(floor.port(), "/healthz", true));
    add([&] {
      return compare(
          "serve.tls_64", options_.rounds, [&] { return cost_of(server.process(), our_load); },
          [&] { return cost_of(floor.process(), nginx_load); });
    });
  }

  static constexpr const char* half_a_request = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: ";
  /// Memory for each connection that waits: within a request, or after one.
  static double bytes_of_connection(const program& server, std::uint16_t port, bool within) {
    std::vector<client_socket> clients;
    clients.reserve(idle_connections);
    const client_socket last(port);
    const auto ask = [](const client_socket& client) {
      client.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
      (void)client.read_answer();
    };
    const auto add_one = [&] {
      clients.emplace_back(port);
      // The answer says that the server has read everything before.
      if (within) clients.back().send(half_a_request);
      else ask(clients.back());
    };
    const auto resident = [&] {
      ask(last);
      std::this_thread::sleep_for(200ms);
      ask(last);
      return server.resident_bytes();
    };
    // What the first connections allocate is not that of each.
    for (int i = 0; i < 100; ++i) add_one();
    const auto before = resident();
    while (clients.size() < idle_connections) add_one();
    const auto after = resident();
    for (const auto& client : clients) {
      if (!client.drain())
        throw error(errc::unavailable, "a server closed a connection that waits");
    }
    return static_cast<double>(after - std::min(before, after)) /
           static_cast<double>(idle_connections - 100);
  }
  /// Servers of its own: memory that other rows have used would be used again.
  void measure_bytes(const char* name, bool within) {
    add([&] {
      const our_server server(options_, nullptr, "head-timeout = \"60s\"\n");
      const nginx_server floor;
      return make_serve_row(name, bytes_of_connection(server.process(), server.port(), within),
                            bytes_of_connection(floor.process(), floor.port(), within));
    });
  }

  /// Microseconds of the processor in a second in which the state changes.
  [[nodiscard]] double cost_of_streams(const our_server& server, std::size_t count) const {
    std::vector<client_socket> clients;
    for (std::size_t i = 0; i < count; ++i) {
      clients.emplace_back(server.port());
      clients.back().send("GET /v1/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " +
                          server.viewer() + "\r\n\r\n");
    }
    const auto length = std::chrono::seconds(3 * options_.seconds);
    const auto before = server.process().processor_time();
    const auto end = steady::now() + length;
    for (int turn = 0; steady::now() < end; ++turn) {
      // The rate of a point changes, and so does the state.
      for (int i = 0; i <= turn % 3; ++i)
        (void)server.request("POST", "/v1/points/point0/answers",
                             R"({"args":[{"t":"str","v":"FR"}],"payload":{"euro":30}})",
                             "Content-Type: application/json\r\n");
      std::this_thread::sleep_for(300ms);
      for (const auto& client : clients) {
        if (!client.drain()) throw error(errc::unavailable, "the server closed a stream");
      }
    }
    const auto used = server.process().processor_time() - before;
    return std::chrono::duration<double, std::micro>(used).count() /
           std::chrono::duration<double>(length).count();
  }
  void measure_streams() {
    const our_server server(options_);
    add([&] {
      return compare(
          "serve.sse_64", std::max<std::size_t>(1, options_.rounds / 5),
          [&] { return cost_of_streams(server, 64); }, [&] { return cost_of_streams(server, 1); });
    });
  }

  void measure_idle() {
    const our_server server(options_);
    std::this_thread::sleep_for(3s);  // what it does at its start
    add([&] {
      const auto length = std::chrono::seconds(10 * options_.seconds);
      const auto before = server.process().processor_time();
      std::this_thread::sleep_for(length);
      const auto used = server.process().processor_time() - before;
      const double minutes = std::chrono::duration<double, std::ratio<60>>(length).count();
      const double used_ms = std::chrono::duration<double, std::milli>(used).count();
      return make_serve_row("serve.idle", used_ms / minutes, 1000);
    });
  }

  /// Connections that send a byte of a header every two seconds.
  class slow_clients {
   public:
    explicit slow_clients(std::uint16_t port) {
      clients_.reserve(slow_connections);
      begin_ = steady::now();
      for (std::size_t i = 0; i < slow_connections; ++i) {
        clients_.emplace_back(port);
        clients_.back().send(half_a_request);
      }
      open_ = clients_.size();
      last_ = steady::now();
    }
    /// Until all are closed, or 30 seconds have passed.
    void run() {
      while (open_ > 0 && steady::now() - begin_ < 30s) {
        std::this_thread::sleep_for(200ms);
        const bool is_turn = ++turn_ % 10 == 0;
        std::size_t open = 0;
        for (const auto& client : clients_) {
          if (!client.drain()) continue;
          ++open;
          if (is_turn) client.send("x");
        }
        if (open < open_) last_ = steady::now();
        open_ = open;
      }
    }
    [[nodiscard]] std::size_t open() const { return open_; }
    /// From the last connection to the last end.
    [[nodiscard]] double seconds() const {
      return std::chrono::duration<double>(last_ - begin_).count();
    }

   private:
    std::vector<client_socket> clients_{};
    steady::time_point begin_{};
    steady::time_point last_{};
    std::atomic<std::size_t> open_ = 0;
    int turn_ = 0;
  };

  void measure_slow_clients() {
    const our_server server(options_);
    auto good = loaded(url_of(server.port(), "/healthz"));
    good.latency = true;
    // While the slow ones are there: they are closed after 10 seconds.
    good.seconds = 6;
    double longest = 0;
    double left = 0;
    const auto p99_beside_slow = [&] {
      slow_clients slow(server.port());
      std::jthread thread([&] { slow.run(); });
      const auto result = run_load(good);
      thread.join();
      longest = std::max(longest, slow.seconds());
      left = std::max(left, static_cast<double>(slow.open()));
      return result.p99_us;
    };
    row measured = best_of_three([&] {
      std::vector<double> beside;
      std::vector<double> alone;
      for (int round = 0; round < 3; ++round) {
        alone.push_back(run_load(good).p99_us);
        beside.push_back(p99_beside_slow());
      }
      return make_serve_row("serve.loris", median(beside), median(alone));
    });
    rows_.push_back(std::move(measured));
    rows_.push_back(make_serve_row("serve.loris_closed", longest * 1000, 10'000));
    rows_.push_back(
        make_serve_row("serve.loris_open", left, static_cast<double>(slow_connections)));
  }

  const serve_bench_options& options_;
  std::unique_ptr<our_server> ours_{};
  std::unique_ptr<nginx_server> nginx_{};
  std::vector<row> rows_{};
};

}  // namespace

std::vector<std::string> serve_row_names() {
  std::vector<std::string> names;
  for (const auto& definition : definitions) names.emplace_back(definition.name);
  return names;
}

std::vector<row> measure_serve(const serve_bench_options& options) {
  return serve_bench(options).run();
}

}  // namespace holdfast::bench
