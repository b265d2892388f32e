#pragma once

/// \file
/// Gathers one response from the bytes of a connection. Shared by the client that waits and by the
/// one on an event loop.

#include "http/response_reader.hpp"
#include "serve/http_client.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::serve {

/// Takes the parts of a response while they arrive, instead of the whole.
class response_receiver {
 public:
  response_receiver() = default;
  response_receiver(const response_receiver&) = delete;
  response_receiver& operator=(const response_receiver&) = delete;

  /// The final head. It is valid during the call.
  virtual void on_head(const http::response_head& head) = 0;
  virtual void on_content(std::string_view piece) = 0;
  /// The last call. Fields and body of the response are empty.
  virtual void on_end(client_response end) = 0;

 protected:
  ~response_receiver() = default;
};

/// Thread-safety: none.
class response_collector {
 public:
  response_collector(const http::limits& limits, std::string_view method);

  /// Set it before the first byte. Null, also during its calls: the rest is dropped.
  void set_receiver(response_receiver* receiver) noexcept {
    receiver_ = receiver;
    has_receiver_ = true;
  }

  /// Takes bytes. Returns true when the exchange is over.
  [[nodiscard]] bool add(std::string_view bytes);
  /// The connection has ended. A body without a length is complete only if it ended in order.
  void end(std::string reason, bool in_order);
  /// Ends the exchange without a complete response.
  void fail(exchange_status result, std::string reason);
  void set_sent() noexcept { response_.sent = true; }
  [[nodiscard]] bool sent() const noexcept { return response_.sent; }
  /// The connection can be used for another request.
  [[nodiscard]] bool reusable() const noexcept { return reusable_; }
  [[nodiscard]] client_response take_response() noexcept { return std::move(response_); }

 private:
  /// Returns true if the exchange is over.
  [[nodiscard]] bool read_heads();
  [[nodiscard]] bool read_content();
  void keep_head();
  void fail_defect();

  http::response_reader reader_;
  std::size_t head_budget_;
  std::string input_{};
  response_receiver* receiver_ = nullptr;
  bool has_receiver_ = false;
  bool in_content_ = false;
  bool reusable_ = false;
  client_response response_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail::serve
