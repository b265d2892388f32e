#pragma once

/// \file
/// Finds the endpoint of a request. The paths of the table are a tree of segments; a segment with a
/// fixed text is preferred to a parameter:
///
///     v1 -- stores -- {} -- doctor            GET
///                      `--- {} -- {}          GET, PUT, DELETE
///
/// Parameters are percent-decoded once, after the path was split.

#include "serve/api/endpoint_table.hpp"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve {

struct route {
  /// Null: no endpoint has this path and method.
  const endpoint* row = nullptr;
  /// Name and decoded value.
  std::vector<std::pair<std::string, std::string>> parameters{};
  /// Methods of the path, for Allow. Empty: no endpoint has this path.
  std::string allowed{};
};

/// Thread-safety: immutable.
class router {
 public:
  /// The table must outlive the router.
  explicit router(const endpoint_table& table);

  /// `path` is normalised, as `http::target::path` returns it. Throws errc::ill_formed_text if a
  /// parameter is not UTF-8.
  [[nodiscard]] route find(std::string_view method, std::string_view path) const;

 private:
  struct node {
    std::map<std::string, std::unique_ptr<node>, std::less<>> children{};
    std::unique_ptr<node> parameter{};
    std::vector<const endpoint*> rows{};
  };
  struct search;
  static void visit(const node& place, std::size_t depth, search& state);

  node root_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail::serve
