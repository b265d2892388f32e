// SQL statements with named parameters, and the rows that they return.

#include "outbox/sql/statement.hpp"

#include "support/failure_of.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace holdfast::test {
namespace {

using namespace detail::outbox;
using sql::type;

statement_builder builder_for(sql::dialect_id dialect) { return {dialect, table_names_of("{t}")}; }

TEST(OutboxStatement, AParameterHasTheTypeThatItsTextDeclares) {
  const auto statement = builder_for(sql::dialect_id::postgresql)
                             .statement("SELECT :number, :title/text, :number, '1'::text");
  EXPECT_EQ(statement.positional().text, "SELECT $1, $2, $3, '1'::text");
  EXPECT_EQ(statement.positional().parameters,
            (std::vector<type>{type::integer, type::text, type::integer}));
}

TEST(OutboxStatement, AListOfRowsIsAText) {
  const auto builder = builder_for(sql::dialect_id::sqlite);
  const auto statement =
      builder.statement("SELECT 1 FROM " + builder.rows({"things", {{"thing"}}}));
  EXPECT_EQ(statement.positional().parameters, std::vector<type>{type::text});
}

TEST(OutboxStatement, AListWithOneColumnIsAListOfValues) {
  json_rows values;
  values.add(1);
  values.add(std::optional<std::int64_t>());
  values.add("a\"b");
  EXPECT_EQ(values.text(), R"([1,null,"a\"b"])");
  json_rows rows;
  rows.add(1, "a");
  rows.add(2, "b");
  EXPECT_EQ(rows.text(), R"([[1,"a"],[2,"b"]])");
  EXPECT_EQ(json_rows().text(), "[]");
}

TEST(OutboxStatement, RefusesAParameterWithoutANameOrOfAnUnknownType) {
  const auto builder = builder_for(sql::dialect_id::sqlite);
  for (const char* text : {"SELECT :", "SELECT : + 1", "SELECT :/text", "SELECT :id/blob"})
    EXPECT_EQ(failure_of([&] { (void)builder.statement(text); }).code(), errc::internal) << text;
}

sql::rows one_row(std::initializer_list<sql::value> values) {
  sql::rows rows(values.size());
  for (const auto& value : values) rows.add(value);
  return rows;
}

TEST(OutboxRowReader, ReadsNullAsNothing) {
  const auto rows = one_row({sql::value(), sql::value(), sql::value(), sql::value()});
  row_reader reader(rows);
  EXPECT_EQ(reader.optional_integer(), std::nullopt);
  EXPECT_EQ(reader.optional_text(), std::nullopt);
  EXPECT_EQ(reader.integer(), 0);
  EXPECT_EQ(reader.text(), "");
}

TEST(OutboxRowReader, RefusesAColumnOfAnotherType) {
  const auto rows = one_row({sql::value(std::int64_t{1}), sql::value(std::string("2")),
                             sql::value(timestamp(std::chrono::seconds(3)))});
  const auto failure_in_column = [&](std::size_t column, auto read) {
    row_reader reader(rows);
    for (std::size_t i = 0; i < column; ++i) {
      if (i == 0) EXPECT_EQ(reader.integer(), 1);
      else EXPECT_EQ(reader.text(), "2");
    }
    const auto failure = failure_of([&] { read(reader); });
    EXPECT_EQ(failure.code(), errc::internal);
    EXPECT_NE(failure.message().find("column " + std::to_string(column + 1)), std::string::npos)
        << failure.what();
  };
  failure_in_column(0, [](row_reader& reader) { (void)reader.text(); });
  failure_in_column(1, [](row_reader& reader) { (void)reader.integer(); });
  failure_in_column(2, [](row_reader& reader) { (void)reader.optional_integer(); });
}

}  // namespace
}  // namespace holdfast::test
