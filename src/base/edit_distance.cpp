#include "base/edit_distance.hpp"

#include <algorithm>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // distances[i][j] is the distance of the first i characters of `a` and the first j of `b`.
  std::vector<std::vector<std::size_t>> distances(a.size() + 1,
                                                  std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        distances[i][j] = i + j;
        continue;
      }
      const std::size_t replaced = distances[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      distances[i][j] = std::min({distances[i - 1][j] + 1, distances[i][j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        distances[i][j] = std::min(distances[i][j], distances[i - 2][j - 2] + 1);
    }
  }
  return distances[a.size()][b.size()];
}

}  // namespace HOLDFAST_NAMESPACE::detail
