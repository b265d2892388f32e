#include <gtest/gtest.h>

#include <clocale>
#include <cstdlib>
#include <ctime>
#include <sstream>

namespace {

// scripts/test runs the unit tests a second time with LC_ALL, TZ and HOLDFAST_EXPECT_LOCALE set.
// That run proves something only if the settings took effect, which these tests assert. In an
// ordinary run there is nothing to expect: it has the developer's own settings.
bool foreign_run() { return std::getenv("HOLDFAST_EXPECT_LOCALE") != nullptr; }

TEST(Locale, NumbersOfCHaveADecimalComma) {
  if (foreign_run()) {
    EXPECT_STREQ(std::localeconv()->decimal_point, ",");
  }
}

TEST(Locale, NumbersOfStreamsHaveADecimalComma) {
  if (foreign_run()) {
    std::ostringstream out;
    out << 1.5;
    EXPECT_EQ(out.str(), "1,5");
  }
}

TEST(Locale, LocalTimeIsNotUtc) {
  if (foreign_run()) {
    const std::time_t noon = 43'200;  // 1970-01-01T12:00:00Z
    std::tm local{};
    std::tm utc{};
    ASSERT_NE(::localtime_r(&noon, &local), nullptr);
    ASSERT_NE(::gmtime_r(&noon, &utc), nullptr);
    EXPECT_NE(local.tm_hour * 60 + local.tm_min, utc.tm_hour * 60 + utc.tm_min);
  }
}

}  // namespace
