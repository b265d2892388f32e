// Every enumerator has a name of its own; a value that is not in its enumeration is "unknown".
// tests/house/check_enums asks for a to_string for each public enumeration.

#include <holdfast/holdfast.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <set>
#include <string>

namespace holdfast::test {
namespace {

template <class Enum>
void expect_names(std::size_t count) {
  std::set<std::string> names;
  for (std::size_t i = 0; i < count; ++i) names.emplace(to_string(static_cast<Enum>(i)));
  EXPECT_EQ(names.size(), count);
  EXPECT_EQ(to_string(static_cast<Enum>(count)), "unknown");
}

TEST(ToString, NamesEveryEnumerator) {
  expect_names<origin>(3);
  expect_names<on_failure>(3);
  expect_names<result_kind>(3);
  expect_names<exception_policy>(3);
  expect_names<scope>(2);
  expect_names<late_call>(2);
  expect_names<partial::rule>(4);
  expect_names<unlisted>(2);
  expect_names<sql::type>(4);
  expect_names<key::scheme>(4);
  expect_names<key::dialect>(3);
  expect_names<key::frame_payload>(2);
  expect_names<key::style>(2);
  expect_names<key::row_hash>(2);
  expect_names<key::path::flavour>(2);
  expect_names<key::array_value::element>(4);
  expect_names<commit_condition::kind>(4);
  expect_names<commit_write::kind>(6);
  expect_names<claim_status>(4);
  expect_names<settlement::kind>(4);
  expect_names<scan_what>(3);
  expect_names<recurrence_query::kind>(3);
  expect_names<update_status>(3);
  expect_names<upgrade_mode>(2);
  expect_names<peer>(2);
  expect_names<store_query>(12);
  expect_names<payload_column>(2);
  expect_names<start_probe>(3);
  expect_names<start_mode>(2);
  expect_names<tenant_strategy>(2);
  expect_names<when_full>(3);
}

TEST(ToString, GivesTheNameOfTheEnumerator) {
  EXPECT_EQ(to_string(origin::stored), "stored");
  EXPECT_EQ(to_string(completeness::unknown), "unknown");
  EXPECT_EQ(to_string(sql::transport_kind::verified), "verified");
  EXPECT_EQ(to_string(when_full::drop_oldest), "drop_oldest");
}

}  // namespace
}  // namespace holdfast::test
