#pragma once

/// \file
/// Where `outbox work --http` posts events.

#include <holdfast/outbox/outcome.hpp>

#include <chrono>
#include <map>
#include <memory>
#include <string>

namespace holdfast::cli {

/// Connections to one URL, kept between requests.
/// Thread-safety: may be called from any thread; each request has a connection to itself.
class http_target {
 public:
  /// Throws errc::invalid_argument for a URL that is not http:// or https://.
  http_target(const std::string& url, std::chrono::milliseconds timeout);
  ~http_target();
  http_target(const http_target&) = delete;
  http_target& operator=(const http_target&) = delete;

  /// POSTs the body and says what the answer means for the event; throws nothing because of the other side.
  [[nodiscard]] outcome post(const std::map<std::string, std::string>& headers, const std::string& body, const std::string& content_type);

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace holdfast::cli
