#include "base/time_zone.hpp"

#include <holdfast/error.hpp>

#include "support/temporary_directory.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <random>
#include <string>
#include <string_view>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
using detail::time_zone;
using std::chrono::sys_days;
using std::chrono::sys_seconds;
using std::chrono::year;

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Sets the time zone of the C library, which is the oracle.
class system_zone {
 public:
  explicit system_zone(const std::string& name) {
    if (const char* value = std::getenv("TZ")) before_ = value;
    ::setenv("TZ", (":" + name).c_str(), 1);
    ::tzset();
  }
  ~system_zone() {
    if (before_.empty()) ::unsetenv("TZ");
    else ::setenv("TZ", before_.c_str(), 1);
    ::tzset();
  }
  system_zone(const system_zone&) = delete;
  system_zone& operator=(const system_zone&) = delete;

  [[nodiscard]] static std::chrono::seconds offset_at(sys_seconds time) {
    const std::time_t seconds = time.time_since_epoch().count();
    std::tm local{};
    ::localtime_r(&seconds, &local);
    return std::chrono::seconds(local.tm_gmtoff);
  }

 private:
  std::string before_{};
};

TEST(TimeZone, AgreesWithTheSystem) {
  std::mt19937_64 random(17);
  const auto first = sys_seconds(sys_days(year(1960) / 1 / 1)).time_since_epoch().count();
  const auto last = sys_seconds(sys_days(year(2090) / 1 / 1)).time_since_epoch().count();
  for (const char* name :
       {"Europe/Paris", "Europe/Dublin", "America/New_York", "America/St_Johns", "Asia/Kolkata",
        "Asia/Tokyo", "Australia/Lord_Howe", "Pacific/Apia", "Africa/Casablanca", "Asia/Gaza",
        "America/Santiago", "Pacific/Chatham", "Antarctica/Troll", "Etc/GMT+12", "Etc/UTC"}) {
    const auto zone = time_zone::load(name);
    const system_zone oracle(name);
    std::uniform_int_distribution<std::int64_t> any(first, last);
    for (int i = 0; i < 2000; ++i) {
      const sys_seconds time{std::chrono::seconds(any(random))};
      ASSERT_EQ(zone.offset_at(time), oracle.offset_at(time))
          << name << ' ' << time.time_since_epoch().count();
      const auto change = zone.next_transition(time);
      if (!change) continue;
      ASSERT_GT(change->begin, time);
      ASSERT_EQ(change->offset, oracle.offset_at(change->begin)) << name;
      ASSERT_EQ(zone.offset_at(change->begin - 1s), oracle.offset_at(change->begin - 1s)) << name;
      // Nothing changes before it.
      ASSERT_EQ(zone.offset_at(change->begin - 1s), zone.offset_at(time)) << name;
    }
  }
}

TEST(TimeZone, UtcNeedsNoFile) {
  for (const char* name : {"", "UTC"}) {
    const auto zone = time_zone::load(name, "/nonexistent");
    EXPECT_EQ(zone.offset_at(sys_days(year(2026) / 7 / 1)), 0s);
    EXPECT_FALSE(zone.next_transition(sys_days(year(2026) / 7 / 1)));
  }
}

TEST(TimeZone, RefusesNamesThatAreNoZones) {
  const temporary_directory directory("zones");
  std::ofstream(directory.path() / "secret") << "TZif2";
  const std::string long_name(200, 'a');
  for (const std::string_view name : std::initializer_list<std::string_view>{
           "../../etc/passwd", "/etc/passwd", "Europe/../Europe/Paris", "Europe", "Europe/",
           "Mars/Base", "Europe//Paris", "Paris\n", " UTC", "a.b", long_name}) {
    EXPECT_THROW((void)time_zone::load(name), error) << name;
  }
  EXPECT_THROW((void)time_zone::load("secret", directory.path()), error);
}

TEST(TimeZone, RefusesDamagedFiles) {
  const auto bytes = read_file("/usr/share/zoneinfo/Europe/Paris");
  ASSERT_FALSE(bytes.empty());
  (void)time_zone::parse(bytes);
  for (std::size_t size = 0; size + 1 < bytes.size(); size += 7) {
    try {
      (void)time_zone::parse(std::string_view(bytes).substr(0, size));
    } catch (const error& problem) {
      EXPECT_EQ(problem.code(), errc::malformed);
    }
  }
  std::mt19937 random(5);
  for (int i = 0; i < 20'000; ++i) {
    auto damaged = bytes;
    for (int changes = 0; changes < 3; ++changes)
      damaged[random() % damaged.size()] = static_cast<char>(random());
    try {
      const auto zone = time_zone::parse(damaged);
      (void)zone.offset_at(sys_days(year(2026) / 7 / 1));
      (void)zone.next_transition(sys_days(year(2100) / 7 / 1));
    } catch (const error& problem) {
      EXPECT_EQ(problem.code(), errc::malformed);
    }
  }
}

TEST(TimeZone, ReadsTheFileEachTime) {
  const temporary_directory directory("zones");
  const auto copy = [&](const char* name) {
    std::filesystem::copy_file(std::filesystem::path("/usr/share/zoneinfo") / name,
                               directory.path() / "Home",
                               std::filesystem::copy_options::overwrite_existing);
  };
  const sys_seconds summer = sys_days(year(2026) / 7 / 1);
  copy("Europe/Paris");
  EXPECT_EQ(time_zone::load("Home", directory.path()).offset_at(summer), 2h);
  copy("Asia/Tokyo");
  EXPECT_EQ(time_zone::load("Home", directory.path()).offset_at(summer), 9h);
}

}  // namespace
}  // namespace holdfast::test
