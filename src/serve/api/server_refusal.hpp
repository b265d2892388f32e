#pragma once

#include <holdfast/error.hpp>

#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::serve {

/// The server refuses a request for a reason of its own. The message has nothing of a database, so
/// every client may read it. The request can be repeated.
class server_refusal : public error {
 public:
  /// `reason` is a literal that programs compare: `busy_key`.
  server_refusal(errc code, std::string_view reason, std::string_view message)
      : error(code, std::string(message), {.transient = true}), reason_(reason) {}

  [[nodiscard]] std::string_view reason() const noexcept { return reason_; }

 private:
  std::string_view reason_;
};

}  // namespace HOLDFAST_NAMESPACE::detail::serve
