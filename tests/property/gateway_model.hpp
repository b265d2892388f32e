#pragma once

/// \file
/// An independent judge of the gateway: what RFC 9110, 9111 and 5861 and the rules of
/// docs/gateway.md allow a client to get. It was written from these texts, and shares no code with
/// the gateway. It knows every request, every exchange with the upstream, and the time, and keeps
/// what the gateway should have kept.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::test {

/// Names are in lower case.
using message_fields = std::vector<std::pair<std::string, std::string>>;

struct client_message {
  std::string method = "GET";
  /// As sent. `normal_target` is the form of RFC 3986, section 6.2.2.
  std::string target{};
  std::string normal_target{};
  message_fields fields{};
};

/// What happened between the gateway and the upstream.
struct upstream_message {
  std::string method{};
  std::string target{};
  message_fields request{};
  enum class ending : std::uint8_t { complete, cut, malformed } end = ending::complete;
  int status = 200;
  message_fields response{};
  /// As much as was sent.
  std::string body{};
  /// The Content-Length that was announced.
  std::optional<std::size_t> length{};
};

/// What the client got.
struct client_answer {
  bool complete = true;
  int status = 0;
  message_fields fields{};
  std::string body{};
};

struct model_options {
  std::chrono::seconds expiry = std::chrono::hours(2);
  std::chrono::seconds max_expiry = std::chrono::hours(12);
  std::size_t hold = 1024;
  std::size_t max_payload = 8192;
  /// Beside Accept-Encoding.
  std::set<std::string> vary{"accept-language"};
};

class gateway_model {
 public:
  using seconds = std::chrono::seconds;

  explicit gateway_model(model_options options) : options_(std::move(options)) {}

  /// Judges one request that no other one overlapped. `now` is the time of all of it. Returns what
  /// is wrong, or empty text.
  std::string judge(const client_message& request, const std::vector<upstream_message>& exchanges,
                    const client_answer& answer, std::chrono::sys_seconds now);

  /// How often a rule decided, so that a run which tests nothing is noticed.
  struct numbers {
    std::uint64_t live = 0;
    std::uint64_t stale = 0;
    std::uint64_t refused_stale = 0;
    std::uint64_t unserved = 0;
    std::uint64_t confirmed = 0;
    std::uint64_t cut = 0;
    std::uint64_t invalidated = 0;
  };
  [[nodiscard]] const numbers& counts() const noexcept { return counts_; }

 private:
  struct kept_answer {
    std::chrono::sys_seconds as_of{};
    std::uint64_t order = 0;
    std::chrono::sys_seconds expires{};
    int status = 0;
    message_fields fields{};
    std::string body{};
    bool invalid = false;
  };

  [[nodiscard]] std::string key_of(const client_message& request) const;
  [[nodiscard]] const kept_answer* servable(const client_message& request,
                                            std::chrono::sys_seconds now) const;
  [[nodiscard]] std::string check_forwarded(const client_message& request,
                                            const upstream_message& exchange) const;
  std::string judge_kept(const client_message& request, const kept_answer& kept,
                         const client_answer& answer, std::chrono::sys_seconds now);
  std::string judge_live(const client_message& request, const upstream_message& exchange,
                         const client_answer& answer, std::chrono::sys_seconds now);
  std::string judge_failure(const client_message& request, const upstream_message& exchange,
                            const client_answer& answer, std::chrono::sys_seconds now);
  std::string judge_unserved(const upstream_message& exchange, const client_answer& answer,
                             bool with_body);
  /// Returns whether it is kept.
  bool keep(const client_message& request, const upstream_message& exchange,
            std::chrono::sys_seconds now);
  void invalidate(const client_message& request, const upstream_message& exchange);

  model_options options_;
  numbers counts_{};
  std::uint64_t order_ = 0;
  std::map<std::string, kept_answer> kept_{};
  std::map<std::string, std::uint64_t> invalidated_{};  // by target: since when
};

}  // namespace holdfast::test
