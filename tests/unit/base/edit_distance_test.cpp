#include "base/edit_distance.hpp"

#include <gtest/gtest.h>

namespace holdfast::test {
namespace {

using detail::edit_distance;

TEST(EditDistance, CountsChangedCharacters) {
  EXPECT_EQ(edit_distance("", ""), 0U);
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("domain", "domain"), 0U);
  EXPECT_EQ(edit_distance("domian", "domain"), 1U) << "two neighbours are swapped";
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
}

}  // namespace
}  // namespace holdfast::test
