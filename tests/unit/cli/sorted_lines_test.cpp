// Lines of an export, sorted in memory and in files.

#include "commands/outbox/sorted_lines.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace holdfast::cli {
namespace {

std::vector<std::string> sorted(std::size_t memory, std::size_t expected_files) {
  std::mt19937_64 random(7);  // NOLINT(cert-msc32-c, cert-msc51-cpp): the same each time
  std::vector<std::int64_t> numbers(3000);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::int64_t>(i) - 1500;
  std::shuffle(numbers.begin(), numbers.end(), random);
  sorted_lines lines(memory);
  for (const auto number : numbers)
    lines.add({number % 3 == 0 ? 0 : 1, static_cast<std::uint64_t>(number & 1), number},
              "line " + std::to_string(number) + std::string(100, '\n'));
  EXPECT_EQ(lines.files() > 0, expected_files > 0);
  std::vector<std::string> result;
  lines.write_all([&](const std::string& text) { result.push_back(text); });
  EXPECT_GE(lines.files(), expected_files);
  return result;
}

TEST(SortedLines, AreTheSameInMemoryAndInFiles) {
  const auto in_memory = sorted(std::size_t{1} << 30U, 0);
  ASSERT_EQ(in_memory.size(), 3000U);
  EXPECT_EQ(in_memory.front(), "line -1500" + std::string(100, '\n')) << "group 0, lane 0";
  EXPECT_EQ(in_memory.back(), "line 1499" + std::string(100, '\n')) << "group 1, lane 1";
  EXPECT_EQ(sorted(20'000, 20), in_memory);
}

TEST(SortedLines, NothingIsNothing) {
  sorted_lines lines(1);
  lines.write_all([](const std::string&) { FAIL(); });
}

}  // namespace
}  // namespace holdfast::cli
