#include "sql/statement_cache.hpp"

#include <gtest/gtest.h>

#include <optional>

namespace holdfast::test {
namespace {

using cache = detail::sql::statement_cache<int>;

TEST(StatementCache, FindsStatementsByTheirText) {
  cache statements;
  statements.add("a", 1);
  statements.add("b", 2);
  EXPECT_EQ(*statements.find("a"), 1);
  EXPECT_EQ(*statements.peek("b"), 2);
  EXPECT_EQ(statements.find("c"), nullptr);
  EXPECT_EQ(statements.size(), 2U);
}

TEST(StatementCache, RemovesTheLeastRecentlyUsedFirst) {
  cache statements;
  statements.add("a", 1);
  statements.add("b", 2);
  statements.add("c", 3);
  (void)statements.find("a");
  (void)statements.peek("b");  // is not a use
  EXPECT_EQ(statements.oldest(), 2);
  EXPECT_EQ(statements.remove_oldest(), 2);
  EXPECT_EQ(statements.remove_oldest(), 3);
  EXPECT_EQ(statements.remove_oldest(), 1);
  EXPECT_TRUE(statements.empty());
}

TEST(StatementCache, RemovesByTextAndByValue) {
  cache statements;
  statements.add("a", 1);
  statements.add("b", 2);
  EXPECT_EQ(statements.remove("a"), 1);
  EXPECT_EQ(statements.remove("a"), std::nullopt);
  statements.remove_first([](int value) { return value == 2; });
  EXPECT_EQ(statements.find("b"), nullptr);
  statements.add("a", 3);
  EXPECT_EQ(*statements.find("a"), 3);
}

}  // namespace
}  // namespace holdfast::test
