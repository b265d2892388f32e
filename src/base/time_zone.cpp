#include "base/time_zone.hpp"

#include <holdfast/error.hpp>

#include <algorithm>
#include <fstream>
#include <system_error>

namespace HOLDFAST_NAMESPACE::detail {
namespace {

using std::chrono::seconds;
using std::chrono::sys_seconds;

constexpr const char* zone_directory = "/usr/share/zoneinfo";
constexpr std::size_t longest_zone_name = 64;
constexpr std::size_t largest_zone_file = std::size_t{256} << 10U;
/// No zone is further from UTC. RFC 9636 allows as much in a rule.
constexpr int longest_rule_hours = 167;
constexpr std::int64_t longest_offset = std::int64_t{26} * 3600;

[[noreturn]] void refuse_zone(const std::string& problem) {
  throw error(errc::malformed, "the file of the time zone is damaged: " + problem +
                                   "; install the package tzdata again");
}

/// Letters, digits, `_`, `+`, `-`, in parts between slashes. A name becomes a path, so it must not
/// have dots.
bool is_zone_name(std::string_view name) {
  if (name.empty() || name.size() > longest_zone_name) return false;
  if (name.front() == '/' || name.back() == '/') return false;
  if (name.find("//") != std::string_view::npos) return false;
  return std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '+' || c == '-' || c == '/';
  });
}

/// Reads numbers of a TZif file, most significant byte first.
class tzif_reader {
 public:
  explicit tzif_reader(std::string_view bytes) : bytes_(bytes) {}

  std::string_view read_bytes(std::size_t size) {
    if (size > bytes_.size()) refuse_zone("it is too short");
    const auto part = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return part;
  }
  std::int64_t number(std::size_t size) {
    std::uint64_t value = 0;
    const auto part = read_bytes(size);
    // Negative numbers of 4 bytes keep their sign.
    if (size == 4 && (static_cast<unsigned char>(part.front()) & 0x80U) != 0) value = ~value;
    for (const char c : part) value = (value << 8U) | static_cast<unsigned char>(c);
    return static_cast<std::int64_t>(value);
  }
  [[nodiscard]] std::string_view rest() const { return bytes_; }

 private:
  std::string_view bytes_;
};

struct tzif_header {
  char version = 0;
  std::size_t is_ut_count = 0, is_standard_count = 0, leap_count = 0, time_count = 0,
              type_count = 0, name_size = 0;

  [[nodiscard]] std::size_t body_size(std::size_t time_size) const {
    return time_count * (time_size + 1) + type_count * 6 + name_size +
           leap_count * (time_size + 4) + is_standard_count + is_ut_count;
  }
};

tzif_header read_tzif_header(tzif_reader& reader) {
  if (reader.read_bytes(4) != "TZif") refuse_zone("it is not a TZif file");
  tzif_header header{.version = reader.read_bytes(1).front()};
  (void)reader.read_bytes(15);
  const auto count = [&] {
    const auto value = reader.number(4);
    if (value < 0 || value > static_cast<std::int64_t>(largest_zone_file))
      refuse_zone("a count is out of its range");
    return static_cast<std::size_t>(value);
  };
  header.is_ut_count = count();
  header.is_standard_count = count();
  header.leap_count = count();
  header.time_count = count();
  header.type_count = count();
  header.name_size = count();
  if (header.type_count == 0) refuse_zone("it has no local time");
  return header;
}

}  // namespace

/// Parses rules such as `CET-1CEST,M3.5.0,M10.5.0/3` (POSIX, with the extensions of RFC 9636).
class time_zone::rule_parser {
 public:
  explicit rule_parser(std::string_view text) : text_(text) {}

  [[nodiscard]] rules parse() {
    rules result;
    skip_name();
    result.standard = -time();
    if (text_.empty()) return result;
    skip_name();
    result.has_summer = true;
    const bool has_offset = !text_.empty() && text_.front() != ',';
    result.summer = has_offset ? -time() : result.standard + std::chrono::hours(1);
    result.begin = day();
    result.end = day();
    if (!text_.empty()) refuse_zone("its rule has text after its end");
    return result;
  }

 private:
  [[nodiscard]] bool accept(char c) {
    if (text_.empty() || text_.front() != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!accept(c)) refuse_zone("its rule cannot be read");
  }
  int number(int lowest, int highest) {
    int value = 0;
    std::size_t digits = 0;
    for (; digits < text_.size() && digits < 3; ++digits) {
      const char c = text_[digits];
      if (c < '0' || c > '9') break;
      value = value * 10 + (c - '0');
    }
    if (digits == 0 || value < lowest || value > highest)
      refuse_zone("a number of its rule is out of its range");
    text_.remove_prefix(digits);
    return value;
  }
  void skip_name() {
    if (accept('<')) {
      const auto end = text_.find('>');
      if (end == std::string_view::npos) refuse_zone("its rule cannot be read");
      text_.remove_prefix(end + 1);
      return;
    }
    std::size_t size = 0;
    while (size < text_.size() && ((text_[size] >= 'A' && text_[size] <= 'Z') ||
                                   (text_[size] >= 'a' && text_[size] <= 'z')))
      ++size;
    if (size == 0) refuse_zone("its rule has no name");
    text_.remove_prefix(size);
  }
  /// `[+-]hh[:mm[:ss]]`
  seconds time() {
    const bool negative = accept('-');
    if (!negative) (void)accept('+');
    int value = number(0, longest_rule_hours) * 3600;
    if (accept(':')) {
      value += number(0, 59) * 60;
      if (accept(':')) value += number(0, 59);
    }
    return seconds(negative ? -value : value);
  }
  rule_day day() {
    expect(',');
    rule_day result;
    if (accept('M')) {
      result.month = number(1, 12);
      expect('.');
      result.week = number(1, 5);
      expect('.');
      result.day = number(0, 6);
    } else if (accept('J')) {
      result.type = rule_day::kind::julian;
      result.day = number(1, 365);
    } else {
      result.type = rule_day::kind::day_of_year;
      result.day = number(0, 365);
    }
    if (accept('/')) result.time = time();
    return result;
  }

  std::string_view text_;
};

time_zone time_zone::load(std::string_view name) { return load(name, zone_directory); }

time_zone time_zone::load(std::string_view name, const std::filesystem::path& directory) {
  if (name.empty() || name == "UTC") return {};
  if (!is_zone_name(name)) {
    throw error(errc::invalid_argument,
                "the name of the time zone is not one: use a name such as Europe/Paris");
  }
  const auto path = directory / std::string(name);
  std::error_code problem;
  if (!std::filesystem::is_regular_file(path, problem)) {
    throw error(errc::invalid_argument,
                "there is no time zone '" + std::string(name) +
                    "' on this machine: use a name such as Europe/Paris, or install the package "
                    "tzdata");
  }
  if (std::filesystem::file_size(path, problem) > largest_zone_file || problem)
    refuse_zone("it is too large");
  std::ifstream file(path, std::ios::binary);
  std::string bytes(largest_zone_file, '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return parse(bytes);
}

time_zone time_zone::parse(std::string_view bytes) {
  tzif_reader reader(bytes);
  const auto header = read_tzif_header(reader);
  time_zone zone;
  if (header.version < '2') {
    zone.read_table(bytes, 4);
    return zone;
  }
  (void)reader.read_bytes(header.body_size(4));
  zone.read_table(reader.rest(), 8);
  return zone;
}

void time_zone::read_table(std::string_view bytes, std::size_t time_size) {
  tzif_reader reader(bytes);
  const auto header = read_tzif_header(reader);
  std::vector<std::int64_t> times;
  std::vector<std::size_t> types;
  times.reserve(header.time_count);
  types.reserve(header.time_count);
  for (std::size_t i = 0; i < header.time_count; ++i) times.push_back(reader.number(time_size));
  for (std::size_t i = 0; i < header.time_count; ++i)
    types.push_back(static_cast<unsigned char>(reader.read_bytes(1).front()));
  std::vector<seconds> offsets;
  offsets.reserve(header.type_count);
  for (std::size_t i = 0; i < header.type_count; ++i) {
    const auto offset = reader.number(4);
    if (offset < -longest_offset || offset > longest_offset)
      refuse_zone("an offset is out of its range");
    offsets.emplace_back(offset);
    (void)reader.read_bytes(2);
  }
  first_offset_ = offsets.front();
  for (std::size_t i = 0; i < times.size(); ++i) {
    if (types[i] >= offsets.size()) refuse_zone("a transition has no local time");
    if (i > 0 && times[i] <= times[i - 1]) refuse_zone("its transitions are not in order");
    transitions_.push_back({sys_seconds(seconds(times[i])), offsets[types[i]]});
  }
  (void)reader.read_bytes(header.name_size + header.leap_count * (time_size + 4) +
                          header.is_standard_count + header.is_ut_count);
  if (time_size == 4) return;
  auto footer = reader.rest();
  if (footer.empty() || footer.front() != '\n') refuse_zone("it has no rule");
  footer.remove_prefix(1);
  footer = footer.substr(0, footer.find('\n'));
  if (!footer.empty()) rules_ = rule_parser(footer).parse();
}

/// `offset` is the one before the change.
sys_seconds time_zone::moment_of(const rule_day& day, int year, seconds offset) {
  namespace chr = std::chrono;
  const chr::year y(year);
  chr::sys_days date;
  switch (day.type) {
    case rule_day::kind::julian: {
      // 29 February is never counted.
      const int leap_day = y.is_leap() && day.day >= 60 ? 1 : 0;
      date = chr::sys_days(y / 1 / 1) + chr::days(day.day - 1 + leap_day);
      break;
    }
    case rule_day::kind::day_of_year:
      date = chr::sys_days(y / 1 / 1) + chr::days(day.day);
      break;
    case rule_day::kind::month_week_day: {
      const chr::month month(static_cast<unsigned>(day.month));
      const chr::weekday weekday(static_cast<unsigned>(day.day));
      date = day.week == 5
                 ? chr::sys_days(chr::year_month_weekday_last(y, month, weekday[chr::last]))
                 : chr::sys_days(
                       chr::year_month_weekday(y, month, weekday[static_cast<unsigned>(day.week)]));
      break;
    }
  }
  return sys_seconds(date) + day.time - offset;
}

std::vector<time_zone::transition> time_zone::rule_transitions(sys_seconds time) const {
  std::vector<transition> result;
  if (!rules_ || !rules_->has_summer) return result;
  const std::chrono::year_month_day date(std::chrono::floor<std::chrono::days>(time));
  const int year = static_cast<int>(date.year());
  for (int y = year - 1; y <= year + 2; ++y) {
    result.push_back({moment_of(rules_->begin, y, rules_->standard), rules_->summer});
    result.push_back({moment_of(rules_->end, y, rules_->summer), rules_->standard});
  }
  std::ranges::sort(result, {}, &transition::begin);
  // A zone with summer time all year ends it and begins it at the same moment.
  for (std::size_t i = 1; i < result.size(); ++i) {
    if (result[i].begin == result[i - 1].begin) result[i].offset = rules_->summer;
  }
  return result;
}

seconds time_zone::offset_at(sys_seconds time) const {
  const auto after = std::ranges::upper_bound(transitions_, time, {}, &transition::begin);
  if (after != transitions_.end() || !rules_) {
    return after == transitions_.begin() ? first_offset_ : std::prev(after)->offset;
  }
  seconds offset = rules_->standard;
  for (const auto& change : rule_transitions(time)) {
    if (change.begin > time) break;
    offset = change.offset;
  }
  return offset;
}

std::optional<time_zone::transition> time_zone::next_transition(sys_seconds time) const {
  const auto after = std::ranges::upper_bound(transitions_, time, {}, &transition::begin);
  if (after != transitions_.end()) return *after;
  for (const auto& change : rule_transitions(time)) {
    if (change.begin > time) return change;
  }
  return std::nullopt;
}

}  // namespace HOLDFAST_NAMESPACE::detail
