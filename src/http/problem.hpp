#pragma once

#include <holdfast/version.hpp>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::http {

/// Problem details (RFC 9457): the content of an answer that says why a request failed.
struct problem {
  static constexpr std::string_view media_type = "application/problem+json";
  /// A URI for the kind of problem. Empty stands for `about:blank`.
  std::string type{};
  /// Short; the same for each occurrence. Empty: the words of the status.
  std::string title{};
  int status = 500;
  /// What is wrong with this request, and what to do.
  std::string detail{};
  /// A URI for this occurrence.
  std::string instance{};
  /// More members. The second is JSON already: `true`, `"text"`.
  std::vector<std::pair<std::string, std::string>> members{};
};

/// One line of JSON. Ill-formed UTF-8 in a text is replaced by U+FFFD.
[[nodiscard]] std::string to_json(const problem& details);

}  // namespace HOLDFAST_NAMESPACE::detail::http
