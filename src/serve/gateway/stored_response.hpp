#pragma once

/// \file
/// A kept response as a payload of the class `http.response/1`: one line of JSON, then the content.
///
///     {"status":200,"fields":["ETag: \"v1\"","Cache-Control: max-age=60"],"target":"/countries/FR"}
///     {"invalid":"no-store","target":"/countries/FR"}
///
/// The second form says that nothing older may be served. In a column of text the content is in
/// Base64, and the line has `"encoding":"base64"`.

#include <holdfast/version.hpp>

#include "serve/gateway/response_fields.hpp"

#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::serve::gateway {

inline constexpr std::string_view stored_response_class = "http.response/1";

struct stored_response {
  int status = 200;
  response_fields fields{};
  /// For people, with the values of its query masked.
  std::string target{};
  /// Why nothing is to be served; empty for a response.
  std::string invalid{};
  std::string content{};
  bool operator==(const stored_response&) const = default;
};

enum class payload_form : bool { bytes, text };

[[nodiscard]] std::string encode(const stored_response& response, payload_form form);
/// Throws errc::malformed if the payload is not of this class.
[[nodiscard]] stored_response decode(std::string_view payload);

/// The target with `***` for each value of its query.
[[nodiscard]] std::string masked_target(std::string_view target);

}  // namespace HOLDFAST_NAMESPACE::detail::serve::gateway
