// Generated requests, read by our reader and by nginx in front of a recording upstream: both read
// the same messages, both refuse, or we alone refuse for a reason that is listed below. A message
// that two programs read differently is how requests are smuggled.
//
// HOLDFAST_DIFFERENTIAL_REQUESTS sets their number (2,000), HOLDFAST_SEED the seed.

#include "http/request_reader.hpp"
#include "http/target.hpp"
#include "support/child_process.hpp"
#include "support/free_port.hpp"
#include "support/raw_client.hpp"
#include "support/temporary_directory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace holdfast;
using namespace std::chrono_literals;
namespace http = detail::http;

/// A request in the form in which two programs are compared: without what ends at each hop.
struct message {
  std::string method{};
  std::string target{};
  std::vector<std::pair<std::string, std::string>> fields{};  // sorted
  std::string content{};
  bool operator==(const message&) const = default;
};

std::string lower_case(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return result;
}

/// nginx sends the content with a length, and fields of the connection of its own.
bool is_of_the_hop(const std::string& name) {
  constexpr std::array names{"connection", "content-length", "transfer-encoding",
                             "keep-alive", "expect",         "te",
                             "upgrade",    "trailer"};
  return std::ranges::find(names, name) != names.end();
}

message message_of(const http::request_head& head, std::string content) {
  message result{.method = std::string(head.method),
                 .target = std::string(head.target),
                 .content = std::move(content)};
  // An absolute target is forwarded as its path.
  if (const auto scheme = result.target.find("://");
      head.form == http::target_form::absolute && scheme != std::string::npos) {
    const auto path = result.target.find_first_of("/?", scheme + 3);
    result.target = path == std::string::npos ? "/" : result.target.substr(path);
    if (result.target.starts_with('?')) result.target.insert(0, 1, '/');
  }
  for (std::size_t i = 0; i < head.fields.size(); ++i) {
    auto name = lower_case(head.fields[i].name);
    // nginx needs a Host to forward; HTTP/1.0 has none.
    const bool is_added = name == "host" && head.fields[i].value == "no-host";
    if (!is_of_the_hop(name) && !is_added) result.fields.emplace_back(name, head.fields[i].value);
  }
  std::ranges::sort(result.fields);
  return result;
}

std::string described(const std::vector<message>& messages) {
  std::string text;
  for (const auto& one : messages) {
    text += "  " + one.method + " " + one.target;
    for (const auto& [name, value] : one.fields) text.append(" | ").append(name + ": " + value);
    text += " | content of " + std::to_string(one.content.size()) + ": " + one.content + "\n";
  }
  return text.empty() ? "  nothing\n" : text;
}

struct reading {
  std::vector<message> messages{};
  http::defect problem = http::defect::none;
};

/// What the server refuses when the head is read: methods that no endpoint has, and targets that it
/// cannot decode.
http::defect problem_of_server(const http::request_head& head) {
  constexpr std::array methods{"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"};
  if (std::ranges::find(methods, head.method) == methods.end()) return http::defect::method;
  if (!http::target::parse(head.target)) return http::defect::target;
  return http::defect::none;
}

/// Reads a connection as the server does, or as a recorder, which takes every method and target.
reading read_connection(std::string_view text, bool as_server = true) {
  reading result;
  http::request_reader reader;
  while (!text.empty()) {
    const auto head_status = reader.read_head(text);
    if (head_status == http::read_status::failed) result.problem = reader.problem();
    if (head_status != http::read_status::complete) return result;
    if (as_server) result.problem = problem_of_server(reader.head());
    if (result.problem != http::defect::none) return result;
    const auto head_text = text.substr(0, reader.head_size());
    text.remove_prefix(reader.head_size());
    std::string content;
    for (;;) {
      const auto piece = reader.body().read(text);
      content.append(piece.content);
      text.remove_prefix(piece.consumed);
      if (piece.status == http::read_status::failed) result.problem = reader.problem();
      if (piece.status == http::read_status::complete) break;
      if (piece.status == http::read_status::failed || piece.consumed == 0) return result;
    }
    reader.rebind(head_text);
    result.messages.push_back(message_of(reader.head(), std::move(content)));
    if (!reader.head().keep_alive) return result;
    reader.reset();
  }
  return result;
}

/// Answers every request, and keeps it. One connection at a time.
class recording_upstream {
 public:
  recording_upstream() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (::bind(socket_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        ::listen(socket_, 64) != 0 ||
        ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size) != 0)
      throw std::runtime_error("the upstream cannot listen");
    port_ = ntohs(address.sin_port);
    thread_ = std::jthread([this] { run(); });
  }
  ~recording_upstream() {
    ::shutdown(socket_, SHUT_RDWR);
    thread_.join();
    ::close(socket_);
  }
  [[nodiscard]] std::uint16_t port() const { return port_; }
  std::vector<message> take() {
    const std::scoped_lock lock(mutex_);
    return std::exchange(messages_, {});
  }

 private:
  void run() {
    for (;;) {
      const int client = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
      if (client < 0) return;
      serve(client);
      ::close(client);
    }
  }
  void serve(int client) {
    std::string text;
    std::array<char, 65536> buffer{};
    for (;;) {
      auto received = read_connection(text, false);
      const bool is_readable = received.problem == http::defect::none;
      if (!received.messages.empty() || !is_readable) {
        const std::scoped_lock lock(mutex_);
        messages_.push_back(received.messages.empty()
                                ? message{.method = "unreadable", .content = text}
                                : std::move(received.messages.front()));
        break;
      }
      const auto count = ::recv(client, buffer.data(), buffer.size(), 0);
      if (count <= 0) {
        const std::scoped_lock lock(mutex_);
        messages_.push_back({.method = "cut", .content = text});
        return;
      }
      text.append(buffer.data(), static_cast<std::size_t>(count));
    }
    constexpr std::string_view answer =
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
    (void)::send(client, answer.data(), answer.size(), MSG_NOSIGNAL);
  }

  int socket_;
  std::uint16_t port_ = 0;
  std::mutex mutex_{};
  std::vector<message> messages_{};
  std::jthread thread_{};
};

/// Debian's nginx, which writes only into a directory of its own.
class nginx_proxy {
 public:
  explicit nginx_proxy(std::uint16_t upstream) {
    const auto file = directory_.path() / "nginx.conf";
    std::ofstream(file)
        << "daemon off;\nmaster_process off;\npid nginx.pid;\nerror_log log;\n"
           "events { worker_connections 256; }\nhttp {\naccess_log off;\n"
           "client_body_temp_path client;\nproxy_temp_path proxy;\nfastcgi_temp_path fastcgi;\n"
           "uwsgi_temp_path uwsgi;\nscgi_temp_path scgi;\n"
           "ignore_invalid_headers off;\nunderscores_in_headers on;\n"
           "client_header_buffer_size 8k;\nlarge_client_header_buffers 4 8k;\n"
           "map $http_host $forwarded_host { \"\" no-host; default $http_host; }\n"
           "server { listen 127.0.0.1:"
        << port_ << "; location / { proxy_pass http://127.0.0.1:" << upstream
        << "; proxy_http_version 1.1; proxy_set_header Host $forwarded_host; "
           "proxy_ignore_client_abort on; } } }\n";
    const std::string log = directory_.path() / "log";
    process_.emplace(test::child_options{
        .argv = {"nginx", "-e", log, "-p", directory_.path().string(), "-c", file.string()},
        .log = log});
    for (int attempt = 0; attempt < 3000; ++attempt) {
      try {
        const test::raw_client probe(address());
        return;
      } catch (const std::runtime_error&) {
        if (!process_->running()) break;
        std::this_thread::sleep_for(10ms);
      }
    }
    throw std::runtime_error("nginx did not start; see " + log);
  }
  [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  test::temporary_directory directory_{"nginx"};
  std::uint16_t port_ = test::free_port();
  std::optional<test::child_process> process_{};
};

/// Requests, most of them with something unusual or wrong.
class request_generator {
 public:
  explicit request_generator(std::uint64_t seed) : random_(seed) {}

  std::string next() {
    const auto count = choose(10) == 0 ? 2U : 1U;
    std::string text;
    for (unsigned i = 0; i < count; ++i) text += request();
    return text;
  }

 private:
  std::size_t choose(std::size_t count) { return random_() % count; }
  template <std::size_t size>
  std::string one_of(const std::array<const char*, size>& texts) {
    return texts[choose(size)];
  }

  std::string target() {
    return one_of(std::array{"/", "/a/b?c=d", "/%41%2Fb", "/a//b/./c", "/?", "/a?b=%00", "/~x",
                             "http://localhost/abs?x=1", "http://localhost", "/a%zz", "*", "a/b",
                             "/a b", "/a\tb", "/\x01", "/caf\xC3\xA9", "/a#f", "//x/y", "/;p=1"});
  }
  std::string request_line() {
    const auto method = choose(8) == 0
                            ? one_of(std::array{"get", "GET ", " GET", "G@T", "", "PRI", "PUT\t"})
                            : one_of(std::array{"GET", "POST", "PUT", "DELETE", "HEAD"});
    const auto version =
        choose(8) == 0 ? one_of(std::array{"HTTP/1.0", "HTTP/0.9", "HTTP/2.0", "http/1.1",
                                           "HTTP/1.1 ", "HTTP/1.10", "HTTP/1", "", "HTTP/01.1"})
                       : std::string("HTTP/1.1");
    const auto path = choose(3) == 0 ? target() : std::string("/path");
    return method + " " + path + " " + version;
  }
  std::string line_end() {
    return choose(60) == 0 ? one_of(std::array{"\n", "\r", "\r\r\n", " \r\n"}) : "\r\n";
  }
  std::string field() {
    return one_of(std::array{"Accept: */*",
                             "X-A:1",
                             "X-A: 1 ",
                             "X-A:\t1",
                             "X_A: 1",
                             "X A: 1",
                             "X-A : 1",
                             ": 1",
                             "X-A",
                             "X-A: a\x01z",
                             "X-A: caf\xC3\xA9",
                             "X-A: a\tb",
                             " X-A: 1",
                             "X-A: 1\r\n folded",
                             "X-A: 1\r\n\tfolded",
                             "Connection: close",
                             "Connection: keep-alive",
                             "Connection: X-A",
                             "Connection: ,",
                             "Connection: @",
                             "Host: other",
                             "Cookie: a=b; c",
                             "X-A!#$: 1",
                             "X(: 1",
                             "Expect: 100-continue",
                             "Expect: 200-ok",
                             "X-Empty:",
                             "TE: trailers",
                             "Keep-Alive: 5",
                             "Content_Length: 5",
                             "Transfer_Encoding: chunked",
                             "X-A: a\x7Fz",
                             "X\xC3: 1"});
  }
  std::string length(std::size_t size) {
    if (choose(3) != 0) return "Content-Length: " + std::to_string(size) + line_end();
    const auto number = std::to_string(size);
    switch (choose(9)) {
      case 0:
        return "Content-Length: +" + number + line_end();
      case 1:
        return "Content-Length: " + number + ", " + number + line_end();
      case 2:
        return "Content-Length: " + number + "\r\nContent-Length: " + number + line_end();
      case 3:
        return "Content-Length: " + number + "\r\nContent-Length: 1" + line_end();
      case 4:
        return "Content-Length: 0x" + number + line_end();
      case 5:
        return "Content-Length: 00" + number + line_end();
      case 6:
        return "Content-Length : " + number + line_end();
      case 7:
        return "Content-Length: " + number + "a" + line_end();
      default:
        return "Content-Length: 99999999999999999999" + line_end();
    }
  }
  std::string coding() {
    if (choose(2) != 0) return "Transfer-Encoding: chunked" + line_end();
    return one_of(std::array{"Transfer-Encoding: Chunked", "Transfer-Encoding: gzip, chunked",
                             "Transfer-Encoding: chunked, chunked", "Transfer-Encoding: identity",
                             "Transfer-Encoding:\tchunked", "Transfer-Encoding: xchunked",
                             "Transfer-Encoding : chunked", "Transfer-Encoding: chunked\r\n ",
                             "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
                             "Transfer-Encoding: \"chunked\"", "Transfer-Encoding: chunked;q=1",
                             "Transfer-Encoding: chunked\r\nContent-Length: 3",
                             "Content-Length: 3\r\nTransfer-Encoding: chunked"}) +
           line_end();
  }
  std::string chunk(const std::string& data) {
    std::array<char, 20> size{};
    std::snprintf(size.data(), size.size(), choose(2) == 0 ? "%zx" : "%zX", data.size());
    std::string head = size.data();
    if (choose(6) == 0)
      head = one_of(std::array{"0x", "+", " ", "00", "-", "000000000000000000"}) + head;
    if (choose(6) == 0)
      head +=
          one_of(std::array{";a", ";a=b", ";a=\"b;c\"", " ;a", " ", "; ", ";=", "\t", ";a\x01"});
    return head + line_end() + data +
           (choose(20) == 0 ? one_of(std::array{"\n", "", "x\r\n"}) : std::string("\r\n"));
  }
  std::string chunks() {
    std::string text;
    for (std::size_t i = choose(3); i > 0; --i) text += chunk("data" + std::to_string(choose(100)));
    const auto trailer = choose(4) == 0 ? one_of(std::array{"X-T: 1\r\n", "Content-Length: 4\r\n",
                                                            "X T: 1\r\n", "Host: x\r\n", "X-T\r\n"})
                                        : std::string();
    return text + "0" + line_end() + trailer + "\r\n";
  }

  std::string request() {
    std::string text = choose(25) == 0 ? one_of(std::array{"\r\n", "\n", " "}) : std::string();
    text += request_line() + line_end();
    if (choose(20) != 0) text += "Host: localhost" + line_end();
    for (std::size_t i = choose(4); i > 0; --i) text += field() + line_end();
    const auto kind = choose(4);
    const std::string content(kind == 1 ? choose(20) : 0, 'c');
    if (kind == 1) text += length(content.size());
    if (kind == 2) text += coding();
    text += line_end();
    return text + (kind == 2 ? chunks() : content);
  }

  std::mt19937_64 random_;
};

/// Why we refuse what nginx forwards. Each of these can be read in two ways by some pair of
/// programs, or is limited here.
const std::map<http::defect, const char*>& strict_reasons() {
  using http::defect;
  static const std::map<defect, const char*> reasons{
      {defect::line_end, "nginx takes LF for CRLF (RFC 9112, 2.2: a recipient MAY)"},
      {defect::request_line, "nginx skips empty lines and takes several spaces"},
      {defect::method, "no endpoint has the method; nginx forwards every one in upper case"},
      {defect::target, "nginx forwards bytes that a target cannot have (RFC 9112, 3.2)"},
      {defect::field_name, "nginx forwards names that are not tokens, as configured here"},
      {defect::field_value, "nginx forwards control characters in values"},
      {defect::host, "nginx takes a Host that is not one, or that differs from the target"},
      {defect::look_alike_field, "some servers read Content_Length as Content-Length"},
      {defect::connection, "nginx ignores a Connection that is not a list of tokens"},
      {defect::expectation, "nginx ignores expectations that it does not know"},
      {defect::chunk_size, "nginx takes more digits"},
      {defect::chunk_extension, "nginx skips everything up to the end of the line"},
      {defect::chunk_end, "nginx takes LF for CRLF"},
      {defect::trailer, "nginx drops trailers that would change the framing"},
  };
  return reasons;
}

/// nginx goes on after `Connection: close` if another field says keep-alive; RFC 9112, 9.3, closes.
bool is_kept_by_nginx_alone(std::string_view text) {
  return text.find("Connection: close") != std::string_view::npos &&
         text.find("Connection: keep-alive") != std::string_view::npos;
}

std::uint64_t number_from(const char* name, std::uint64_t fallback) {
  const char* const text = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  return text == nullptr ? fallback : std::stoull(text);
}

TEST(HttpDifferential, GeneratedRequestsAreReadAsNginxReadsThem) {
  recording_upstream upstream;
  const nginx_proxy nginx(upstream.port());
  const auto seed = number_from("HOLDFAST_SEED", 20);
  request_generator generator(seed);
  std::map<http::defect, int> alone;
  int alike = 0;
  int both_refuse = 0;
  const auto count = number_from("HOLDFAST_DIFFERENTIAL_REQUESTS", 2'000);
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto text = generator.next();
    const auto ours = read_connection(text);
    test::raw_client client(nginx.address());
    client.send(text);
    client.finish_sending();
    (void)client.read_to_end();
    const auto forwarded = upstream.take();
    SCOPED_TRACE("seed " + std::to_string(seed) + ", request " + std::to_string(i) + ":\n" + text +
                 "\nours, " + std::string(describe(ours.problem)) + ":\n" +
                 described(ours.messages) + "nginx:\n" + described(forwarded));
    if (ours.messages == forwarded) {
      if (ours.problem == http::defect::none) ++alike;
      else ++both_refuse;
      continue;
    }
    // What we read before the defect must be what nginx has read.
    const bool is_prefix =
        ours.messages.size() < forwarded.size() &&
        std::equal(ours.messages.begin(), ours.messages.end(), forwarded.begin());
    EXPECT_TRUE(is_prefix) << "nginx reads other messages";
    if (ours.problem == http::defect::none && is_kept_by_nginx_alone(text)) continue;
    EXPECT_TRUE(strict_reasons().contains(ours.problem))
        << "refused by us alone, for a reason that is not listed";
    ++alone[ours.problem];
  }
  RecordProperty("alike", alike);
  RecordProperty("both_refuse", both_refuse);
  std::printf("alike %d, refused by both %d\n", alike, both_refuse);
  for (const auto& [problem, times] : alone)
    std::printf("refused by us alone %d times: %s\n", times,
                std::string(describe(problem)).c_str());
  // The generator makes enough of each.
  EXPECT_GT(alike, static_cast<int>(count / 10));
  EXPECT_GT(both_refuse, static_cast<int>(count / 10));
}

}  // namespace
