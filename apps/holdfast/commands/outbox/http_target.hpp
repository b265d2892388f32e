#pragma once

/// \file
/// The target of `holdfast outbox work --http`.

#include <holdfast/outbox/outcome.hpp>

#include <chrono>
#include <map>
#include <memory>
#include <string>

namespace holdfast::cli {

/// Posts to one URL. Keeps connections open between requests.
/// Thread-safety: may be called from any thread; each request has a connection to itself.
class http_target {
 public:
  /// Throws errc::invalid_argument if the URL is not http:// or https://.
  http_target(const std::string& url, std::chrono::milliseconds timeout);
  ~http_target();
  http_target(const http_target&) = delete;
  http_target& operator=(const http_target&) = delete;

  /// Posts the body. Returns the outcome that the answer means; does not throw if the server fails.
  [[nodiscard]] outcome post(const std::map<std::string, std::string>& headers,
                             const std::string& body, const std::string& content_type);

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace holdfast::cli
