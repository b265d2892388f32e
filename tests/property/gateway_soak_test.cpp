// A day of a gateway on a virtual clock. The upstream fails at random, and an independent model
// judges every answer. HOLDFAST_GATEWAY_SOAK_REQUESTS (2,000 for each seed) makes it longer:
// docs/gateway.md.

#include <holdfast/store/tiered.hpp>

#include "property/gateway_model.hpp"
#include "support/raw_client.hpp"
#include "support/seed.hpp"
#include "unit/serve/gateway/gateway_fixture.hpp"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <map>
#include <random>
#include <thread>

namespace {

using namespace holdfast;
using namespace std::chrono_literals;
using test::client_answer;
using test::client_message;
namespace gw = test::gw;
using test::gateway_model;
using test::message_fields;
using test::raw_client;
using test::upstream_message;

std::string lower(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

/// The lines of a head after the first one.
message_fields fields_of(const std::string& head) {
  message_fields fields;
  for (auto begin = head.find("\r\n") + 2; begin < head.size();) {
    const auto end = head.find("\r\n", begin);
    const auto colon = head.find(": ", begin);
    if (end == std::string::npos || end == begin || colon == std::string::npos) break;
    fields.emplace_back(lower(head.substr(begin, colon - begin)),
                        head.substr(colon + 2, end - colon - 2));
    begin = end + 2;
  }
  return fields;
}

std::optional<std::string> find_field(const message_fields& fields, std::string_view name) {
  for (const auto& [field, value] : fields) {
    if (field == name) return value;
  }
  return std::nullopt;
}

/// A response as the script sends it.
struct scripted_response {
  upstream_message recorded{};
  std::string bytes{};
  bool close = false;
};

/// Answers requests of several connections, byte by byte as a script wants.
class soak_upstream {
 public:
  using script = std::function<scripted_response(upstream_message request)>;

  explicit soak_upstream(script answer)
      : answer_(std::move(answer)),
        listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)),
        stop_(::eventfd(0, EFD_CLOEXEC)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    if (::bind(listener_, generic, length) != 0 || ::listen(listener_, 64) != 0 ||
        ::getsockname(listener_, generic, &length) != 0)
      throw std::runtime_error("cannot listen on 127.0.0.1");
    port_ = ntohs(address.sin_port);
    thread_ = std::jthread([this] { run(); });
  }
  ~soak_upstream() {
    const std::uint64_t one = 1;
    (void)!::write(stop_, &one, sizeof one);
    thread_.join();
    for (const auto& [socket, input] : clients_) ::close(socket);
    ::close(listener_);
    ::close(stop_);
  }
  soak_upstream(const soak_upstream&) = delete;
  soak_upstream& operator=(const soak_upstream&) = delete;

  [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  /// The exchanges since the last call.
  [[nodiscard]] std::vector<upstream_message> take_exchanges() {
    const std::scoped_lock lock(mutex_);
    return std::exchange(exchanges_, {});
  }

 private:
  void run() {
    for (;;) {
      std::vector<pollfd> polled{{stop_, POLLIN, 0}, {listener_, POLLIN, 0}};
      for (const auto& [socket, input] : clients_) polled.push_back({socket, POLLIN, 0});
      (void)::poll(polled.data(), polled.size(), -1);
      if (polled[0].revents != 0) return;
      if (polled[1].revents != 0) clients_[::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC)];
      for (std::size_t i = 2; i < polled.size(); ++i) {
        if (polled[i].revents != 0) serve(polled[i].fd);
      }
    }
  }

  void serve(int socket) {
    auto& input = clients_[socket];
    std::array<char, 16384> buffer{};
    const auto count = ::recv(socket, buffer.data(), buffer.size(), 0);
    if (count <= 0) return close(socket);
    input.append(buffer.data(), static_cast<std::size_t>(count));
    const auto end = input.find("\r\n\r\n");
    if (end == std::string::npos) return;
    const auto head = input.substr(0, end + 4);
    upstream_message request;
    request.method = head.substr(0, head.find(' '));
    const auto target = head.find(' ') + 1;
    request.target = head.substr(target, head.find(' ', target) - target);
    request.request = fields_of(head);
    const auto length = std::stoul(find_field(request.request, "content-length").value_or("0"));
    if (input.size() < end + 4 + length) return;
    input.clear();
    const auto response = answer_(std::move(request));
    {
      const std::scoped_lock lock(mutex_);
      exchanges_.push_back(response.recorded);
    }
    std::string_view rest = response.bytes;
    while (!rest.empty()) {
      const auto sent = ::send(socket, rest.data(), rest.size(), MSG_NOSIGNAL);
      if (sent <= 0) break;
      rest.remove_prefix(static_cast<std::size_t>(sent));
    }
    if (response.close) close(socket);
  }

  void close(int socket) {
    ::close(socket);
    clients_.erase(socket);
  }

  script answer_;
  int listener_;
  int stop_;
  std::uint16_t port_ = 0;
  std::map<int, std::string> clients_{};
  std::mutex mutex_{};
  std::vector<upstream_message> exchanges_{};
  std::jthread thread_{};
};

/// One client on a connection that is kept.
class soak_client {
 public:
  explicit soak_client(std::string address) : address_(std::move(address)) {}

  client_answer send(const client_message& request) {
    std::string text = request.method + " " + request.target + " HTTP/1.1\r\nHost: soak\r\n";
    for (const auto& [name, value] : request.fields) text += name + ": " + value + "\r\n";
    if (request.method == "POST") text += "Content-Length: 4\r\n";
    text += "\r\n";
    if (request.method == "POST") text += "data";
    if (!connection_) connection_.emplace(address_);
    connection_->send(text);
    auto answer = read(request.method);
    if (!answer.complete || find_field(answer.fields, "connection") == "close") connection_.reset();
    return answer;
  }

 private:
  client_answer read(const std::string& method) {
    std::string input;
    const auto fill = [&](std::size_t size) {
      while (input.size() < size) {
        const auto piece = connection_->read_some();
        if (piece.empty()) return false;
        input += piece;
      }
      return true;
    };
    client_answer answer;
    answer.complete = false;
    std::size_t end = 0;
    while ((end = input.find("\r\n\r\n")) == std::string::npos) {
      if (!fill(input.size() + 1)) return answer;
    }
    const auto head = input.substr(0, end + 4);
    input.erase(0, end + 4);
    answer.status = std::stoi(head.substr(9, 3));
    answer.fields = fields_of(head);
    if (method == "HEAD" || answer.status == 304 || answer.status == 204) {
      answer.complete = input.empty();
      return answer;
    }
    if (const auto length = find_field(answer.fields, "content-length")) {
      answer.complete = fill(std::stoul(*length)) && input.size() == std::stoul(*length);
      answer.body = std::move(input);
      return answer;
    }
    for (;;) {
      std::size_t line = 0;
      while ((line = input.find("\r\n")) == std::string::npos) {
        if (!fill(input.size() + 1)) return answer;
      }
      const auto size = std::stoul(input.substr(0, line), nullptr, 16);
      if (!fill(line + 2 + size + 2)) {
        answer.body += input.substr(line + 2);
        return answer;
      }
      answer.body += input.substr(line + 2, size);
      input.erase(0, line + 2 + size + 2);
      if (size == 0) break;
    }
    answer.complete = true;
    return answer;
  }

  std::string address_;
  std::optional<raw_client> connection_{};
};

/// Picks what happens.
class soak_script {
 public:
  soak_script(std::uint64_t seed, std::shared_ptr<test::virtual_clock> clock)
      : requests_(seed), responses_(seed + 1'000'003), clock_(std::move(clock)) {}

  client_message next_request() {
    client_message request;
    static const std::vector<std::pair<std::string, std::string>> targets = {
        {"/a", "/a"},      {"/b?x=1", "/b?x=1"}, {"/b?x=2", "/b?x=2"}, {"/%7Ec", "/~c"},
        {"/d/../e", "/e"}, {"/f%2d", "/f-"},     {"/g", "/g"},         {"/h?", "/h?"}};
    std::tie(request.target, request.normal_target) = targets[pick(requests_, targets.size())];
    const auto kind = pick(requests_, 100);
    if (kind < 6) request.method = "HEAD";
    else if (kind < 9) request.method = "POST";
    else if (kind < 11) request.method = "DELETE";
    const bool reads = request.method == "GET" || request.method == "HEAD";
    auto& fields = request.fields;
    if (chance(requests_, 50)) fields.emplace_back("accept-encoding", "br, gzip;q=0.5");
    if (chance(requests_, 30))
      fields.emplace_back("accept-language", chance(requests_, 50) ? "en" : "fr");
    if (chance(requests_, 8))
      fields.emplace_back("authorization", chance(requests_, 50) ? "Bearer a" : "Bearer b");
    if (chance(requests_, 5)) fields.emplace_back("cookie", "session=1");
    if (chance(requests_, 5)) fields.emplace_back("x-forwarded-host", "evil.example");
    if (chance(requests_, 5)) {
      fields.emplace_back("connection", "x-hop");
      fields.emplace_back("x-hop", "1");
    }
    static const std::vector<std::string> directives = {
        "no-store",           "no-cache",       "max-age=0",  "stale-if-error=0",
        "stale-if-error=600", "only-if-cached", "min-fresh=5"};
    if (reads && chance(requests_, 12))
      fields.emplace_back("cache-control", directives[pick(requests_, directives.size())]);
    const auto condition = pick(requests_, 100);
    if (reads && condition < 10)
      fields.emplace_back("if-none-match",
                          "\"x\", \"v" + std::to_string(pick(requests_, 3)) + "\"");
    else if (request.method == "GET" && condition < 16)
      fields.emplace_back("range", condition < 13 ? "bytes=1-3" : "bytes=90000-90001");
    return request;
  }

  /// Runs on the thread of the upstream, one at a time.
  scripted_response respond(upstream_message request) {
    scripted_response response{.recorded = std::move(request)};
    auto& recorded = response.recorded;
    auto& fields = recorded.response;
    const auto tag = "\"v" + std::to_string(pick(responses_, 3)) + "\"";
    const auto asked_tag = find_field(recorded.request, "if-none-match");
    fields.emplace_back("date", date_text());
    if (asked_tag && recorded.method != "POST" && chance(responses_, 50)) {
      recorded.status = 304;
      if (chance(responses_, 70)) fields.emplace_back("etag", *asked_tag);
    } else {
      choose_status(recorded);
      if (recorded.status == 200 && chance(responses_, 60))
        fields.emplace_back("etag", (chance(responses_, 20) ? "W/" : "") + tag);
      if (recorded.status == 200 && chance(responses_, 20))
        fields.emplace_back("last-modified", "Thu, 01 Jan 2026 00:00:00 GMT");
    }
    add_caching_fields(recorded);
    const bool has_content = recorded.status != 304 && recorded.status != 204;
    if (has_content) {
      const auto size = chance(responses_, 12) ? pick(responses_, 12'000) : pick(responses_, 60);
      recorded.body.resize(size);
      for (char& c : recorded.body) c = static_cast<char>('a' + pick(responses_, 26));
    }
    if (recorded.method == "DELETE" || recorded.method == "POST") {
      if (chance(responses_, 20)) fields.emplace_back("location", "/g");
    }
    write(response, has_content);
    damage(response, has_content);
    return response;
  }

 private:
  template <class Engine>
  static std::size_t pick(Engine& random, std::size_t count) {
    return static_cast<std::size_t>(random() % count);
  }
  template <class Engine>
  static bool chance(Engine& random, unsigned percent) {
    return random() % 100 < percent;
  }
  std::string date_text() const {
    const auto seconds = std::chrono::system_clock::to_time_t(
        std::chrono::time_point_cast<std::chrono::system_clock::duration>(clock_->now()));
    std::tm parts{};
    std::array<char, 40> text{};
    const auto size = std::strftime(text.data(), text.size(), "%a, %d %b %Y %H:%M:%S GMT",
                                    ::gmtime_r(&seconds, &parts));
    return {text.data(), size};
  }

  void choose_status(upstream_message& recorded) {
    // Failures come in outages.
    if (outage_ == 0 && chance(responses_, 4)) outage_ = 5 + pick(responses_, 40);
    if (outage_ > 0) {
      --outage_;
      static const std::array<int, 4> failures{500, 502, 503, 504};
      if (chance(responses_, 60)) {
        recorded.status = failures[pick(responses_, failures.size())];
        return;
      }
    }
    static const std::array<int, 12> others{203, 204, 300, 301, 302, 308,
                                            400, 403, 404, 404, 410, 429};
    recorded.status = chance(responses_, 75) ? 200 : others[pick(responses_, others.size())];
  }

  void add_caching_fields(upstream_message& recorded) {
    static const std::vector<std::string> lists = {"max-age=60",
                                                   "max-age=5, must-revalidate",
                                                   "max-age=5, proxy-revalidate",
                                                   "s-maxage=5",
                                                   "no-cache",
                                                   "no-store",
                                                   "private",
                                                   "public",
                                                   "max-age=30, stale-if-error=90",
                                                   "stale-if-error=0",
                                                   "stale-if-error=999999",
                                                   "public, max-age=600"};
    auto& fields = recorded.response;
    if (chance(responses_, 45))
      fields.emplace_back("cache-control", lists[pick(responses_, lists.size())]);
    if (chance(responses_, 8)) fields.emplace_back("age", std::to_string(pick(responses_, 40)));
    if (chance(responses_, 4)) fields.emplace_back("set-cookie", "a=b");
    static const std::vector<std::string> varies = {"accept-encoding", "Accept-Language", "*",
                                                    "x-other", "accept-encoding, accept-language"};
    if (chance(responses_, 15))
      fields.emplace_back("vary", varies[pick(responses_, varies.size())]);
    if (chance(responses_, 5)) {
      fields.emplace_back("connection", "x-hop");
      fields.emplace_back("x-hop", "1");
    }
  }

  /// The bytes of the whole response.
  void write(scripted_response& response, bool has_content) {
    auto& recorded = response.recorded;
    const bool no_body = recorded.method == "HEAD" || !has_content;
    if (chance(responses_, 6))
      response.bytes = "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 102 P\r\n\r\n";
    response.bytes += "HTTP/1.1 " + std::to_string(recorded.status) + " Text\r\n";
    for (const auto& [name, value] : recorded.response)
      response.bytes += name + ": " + value + "\r\n";
    const auto framing = pick(responses_, 10);
    if (!has_content || framing < 6) {
      if (has_content) {
        recorded.length = recorded.body.size();
        response.bytes += "content-length: " + std::to_string(recorded.body.size()) + "\r\n";
      }
      response.bytes += "\r\n";
      if (!no_body) response.bytes += recorded.body;
      return;
    }
    if (framing == 6) {
      // Until the connection is closed.
      response.close = true;
      response.bytes += "\r\n" + (no_body ? std::string() : recorded.body);
      until_close_ = true;
      return;
    }
    response.bytes += "transfer-encoding: chunked\r\n\r\n";
    if (no_body) return;
    const auto half = recorded.body.size() / 2;
    for (const auto& part : {recorded.body.substr(0, half), recorded.body.substr(half)}) {
      if (part.empty()) continue;
      std::array<char, 16> digits{};
      const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), part.size(), 16);
      response.bytes.append(digits.data(), end.ptr).append(";x=y\r\n").append(part).append("\r\n");
    }
    response.bytes += "0\r\nX-Trailer: 1\r\n\r\n";
  }

  /// Sometimes the connection is cut, or the response is not HTTP.
  void damage(scripted_response& response, bool has_content) {
    auto& recorded = response.recorded;
    const bool until_close = std::exchange(until_close_, false);
    if (chance(responses_, 10)) response.close = true;
    const auto fault = pick(responses_, 100);
    if (fault < 8 && !until_close) {
      cut(response, has_content);
    } else if (fault < 12) {
      static const std::vector<std::string> nonsense = {
          "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
          "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
          "HTTP/2 200\r\n\r\n",
          "HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n",
          "HTTP/1.1 200 OK\r\nA : b\r\nContent-Length: 0\r\n\r\n",
          "HTTP/1.1 200 OK\r\nA: b\r\n folded\r\nContent-Length: 0\r\n\r\n"};
      response.bytes = nonsense[pick(responses_, nonsense.size())];
      recorded.end = upstream_message::ending::malformed;
      recorded.status = 0;
      recorded.body.clear();
      recorded.length.reset();
      response.close = true;
    }
  }

  void cut(scripted_response& response, bool has_content) {
    auto& recorded = response.recorded;
    const auto status_line = "HTTP/1.1 " + std::to_string(recorded.status) + " Text\r\n";
    const auto head_at = response.bytes.find(status_line);
    const auto content_at = response.bytes.find("\r\n\r\n", head_at) + 4;
    const auto kept = pick(responses_, response.bytes.size());
    response.bytes.resize(kept);
    response.close = true;
    recorded.end = upstream_message::ending::cut;
    if (kept < content_at) {
      recorded.status = 0;
      recorded.body.clear();
      recorded.length.reset();
    } else if (recorded.method == "HEAD" || !has_content) {
      recorded.end = upstream_message::ending::complete;
    } else {
      // What was delivered of the content, at most.
      const auto sent = response.bytes.substr(content_at);
      if (recorded.length) recorded.body = sent;
      else recorded.body.resize(delivered_of(sent));
    }
  }

  /// The bytes of content in the beginning of a chunked body.
  static std::size_t delivered_of(const std::string& text) {
    std::size_t delivered = 0;
    for (std::size_t at = 0; at < text.size();) {
      const auto line = text.find("\r\n", at);
      if (line == std::string::npos) break;
      const auto size = std::stoul(text.substr(at, line - at), nullptr, 16);
      if (size == 0) break;
      delivered += std::min(size, text.size() - line - 2);
      at = line + 2 + size + 2;
    }
    return delivered;
  }

  std::mt19937_64 requests_;
  std::mt19937_64 responses_;
  std::shared_ptr<test::virtual_clock> clock_;
  std::size_t outage_ = 0;
  bool until_close_ = false;
};

struct GatewaySoak : test::gateway_fixture {
  struct outcome {
    std::string problem{};
    gateway_model::numbers counts{};
  };

  static std::size_t request_count() {
    const char* const text = std::getenv("HOLDFAST_GATEWAY_SOAK_REQUESTS");
    return text == nullptr ? 2'000 : std::stoul(text);
  }

  outcome run(std::uint64_t seed, std::size_t requests,
              const std::function<void(gw::route&)>& change = {}) {
    store = make_tiered_store(make_memory_store({.clock = clock}), {.clock = clock});
    soak_script script(seed, clock);
    soak_upstream source(
        [&](upstream_message request) { return script.respond(std::move(request)); });
    const test::model_options rules;
    gw::route route{.name = "r", .upstreams = {source.url()}, .vary = {"accept-language"}};
    route.hold = rules.hold;
    route.max_payload = rules.max_payload;
    route.max_expiry = rules.max_expiry;
    if (change) change(route);
    routes = {route};
    configure = [&](point_options& point) { point.expiry = rules.expiry; };
    start();
    gateway_model model(rules);
    soak_client client(gateway->addresses().front());
    std::mt19937_64 times(seed + 7);
    outcome result;
    std::map<std::string, std::string> histories;  // by target
    for (std::size_t i = 0; i < requests && result.problem.empty(); ++i) {
      // 43 s on average: 2,000 requests are a day.
      clock->advance(times() % 10 == 0 ? std::chrono::seconds(times() % 700)
                                       : std::chrono::seconds(1 + times() % 17));
      const auto request = script.next_request();
      const auto answer = client.send(request);
      const auto exchanges = source.take_exchanges();
      const auto problem = model.judge(request, exchanges, answer,
                                       std::chrono::floor<std::chrono::seconds>(clock->now()));
      auto& history = histories[request.normal_target];
      history += describe(i, request, exchanges, answer);
      if (!problem.empty()) result.problem = "... " + last_of(history) + problem;
    }
    result.counts = model.counts();
    (void)gateway->stop(std::chrono::steady_clock::now() + 30s);
    gateway.reset();
    return result;
  }

  static std::string last_of(const std::string& history) {
    constexpr std::size_t most = 6'000;
    return history.substr(history.size() - std::min(most, history.size()));
  }
  static std::string text_of(const message_fields& fields) {
    std::string text;
    for (const auto& [name, value] : fields) text += "    " + name + ": " + value + "\n";
    return text;
  }
  static std::string describe(std::size_t number, const client_message& request,
                              const std::vector<upstream_message>& exchanges,
                              const client_answer& answer) {
    std::string text = "request " + std::to_string(number) + ": " + request.method + " " +
                       request.target + "\n" + text_of(request.fields);
    for (const auto& exchange : exchanges)
      text += "  upstream: " + std::to_string(exchange.status) + ", " +
              std::to_string(exchange.body.size()) + " bytes, end " +
              std::to_string(static_cast<int>(exchange.end)) + "\n" + text_of(exchange.request) +
              "   ->\n" + text_of(exchange.response);
    return text + "  client: " + std::to_string(answer.status) + ", " +
           std::to_string(answer.body.size()) + " bytes\n" + text_of(answer.fields) + "  ";
  }
};

TEST_F(GatewaySoak, EveryAnswerOfADayObeysTheRules) {
  const auto first = test::first_seed();
  const std::uint64_t seeds = test::seed_from_environment() ? 1 : 3;
  for (auto seed = first; seed < first + seeds; ++seed) {
    const auto result = run(seed, request_count());
    ASSERT_EQ(result.problem, "") << "HOLDFAST_SEED=" << seed;
    const auto& counts = result.counts;
    std::cout << "live " << counts.live << ", stale " << counts.stale << ", stale refused "
              << counts.refused_stale << ", unserved " << counts.unserved << ", confirmed "
              << counts.confirmed << ", cut " << counts.cut << ", invalidated "
              << counts.invalidated << "\n";
    // Each kind of answer was judged.
    EXPECT_GT(std::min({counts.live, counts.stale, counts.refused_stale, counts.unserved,
                        counts.confirmed, counts.cut, counts.invalidated}),
              3U);
  }
}

TEST_F(GatewaySoak, ARuleThatIsBrokenIsNoticed) {
  // The gateway goes back in time; the model does not know that.
  EXPECT_NE(run(1, 4'000, [](gw::route& route) { route.keep_superseded = true; }).problem, "");
  // It gives stale answers that the upstream forbids.
  EXPECT_NE(run(2, 4'000,
                [](gw::route& route) {
                  route.overridden.must_revalidate = true;
                  route.overridden.no_cache = true;
                })
                .problem,
            "");
  // It takes a failure for an answer, or an answer for a failure.
  EXPECT_NE(run(3, 4'000, [](gw::route& route) { route.failures = {404}; }).problem, "");
}

}  // namespace
