#include "sql/placeholders.hpp"

#include <holdfast/error.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace holdfast::test {
namespace {

using namespace detail::sql;
using order = std::vector<std::uint16_t>;

TEST(Placeholders, QuestionMarksAreNumberedInOrder) {
  EXPECT_EQ(number_placeholders("UPDATE t SET a = ? WHERE b = ? OR c = ?"),
            "UPDATE t SET a = $1 WHERE b = $2 OR c = $3");
  EXPECT_EQ(number_placeholders("SELECT 1"), "SELECT 1");
}

TEST(Placeholders, OnlyPostgresqlUsesNumbers) {
  EXPECT_EQ(placeholder(dialect_id::postgresql, 12), "$12");
  EXPECT_EQ(placeholder(dialect_id::sqlite, 12), "?");
}

TEST(Placeholders, NumbersBecomeQuestionMarksWithTheirOrder) {
  const auto result = use_question_marks("SELECT $2, $1, '$3', \"$4\" FROM t WHERE a = $2");
  EXPECT_EQ(result.text, "SELECT ?, ?, '$3', \"$4\" FROM t WHERE a = ?");
  EXPECT_EQ(result.order, (order{1, 0, 1}));
}

TEST(Placeholders, TextWithQuestionMarksStaysUnchanged) {
  const auto result = use_question_marks("SELECT ?, '$1' FROM t WHERE a = ?");
  EXPECT_EQ(result.text, "SELECT ?, '$1' FROM t WHERE a = ?");
  EXPECT_EQ(result.order, order{});
}

TEST(Placeholders, ANumberAboveTheLimitIsRefused) {
  EXPECT_NO_THROW((void)use_question_marks("SELECT $65535"));
  EXPECT_THROW((void)use_question_marks("SELECT $65536"), error);
}

}  // namespace
}  // namespace holdfast::test
