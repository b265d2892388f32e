#include "ratio.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <utility>

namespace holdfast::bench {

namespace {

using work = std::function<void(std::uint64_t)>;

double seconds_of(const work& what, std::uint64_t times) {
  const auto begin = std::chrono::steady_clock::now();
  what(times);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// How often the work fits into a round. It also warms caches, branch predictors and the clock of the processor.
std::uint64_t calibrate(const work& what, double round_seconds) {
  std::uint64_t times = 1;
  for (;;) {
    // The best of three: one interruption must not make the rounds short.
    const double took = std::min({seconds_of(what, times), seconds_of(what, times), seconds_of(what, times)});
    if (took >= round_seconds / 2) {
      return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(static_cast<double>(times) * round_seconds / took));
    }
    times *= took < round_seconds / 16 ? 8 : 2;
  }
}

double median(std::vector<double> figures) {
  const auto middle = figures.begin() + static_cast<std::ptrdiff_t>(figures.size() / 2);
  std::ranges::nth_element(figures, middle);
  if (figures.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(figures.begin(), middle)) / 2;
}

template <class... A>
std::string formatted(const char* format, A... values) {
  std::array<char, 160> room{};
  const int length = std::snprintf(room.data(), room.size(), format, values...);
  return {room.data(), static_cast<std::size_t>(std::clamp<int>(length, 0, room.size() - 1))};
}

std::string quoted(const std::string& plain) { return "\"" + plain + "\""; }

std::string padded(const std::string& text, std::size_t width, bool right) {
  const std::string spaces(width > text.size() ? width - text.size() : 0, ' ');
  return right ? spaces + text : text + spaces;
}

/// `812345.7` as `812,346`; times keep one digit after the point.
std::string figure(double number, const std::string& unit) {
  std::string out = formatted("%.*f", unit == "ns" && number < 10000 ? 1 : 0, number);
  std::size_t at = std::min(out.find('.'), out.size());
  while (at > 3) {
    at -= 3;
    out.insert(at, 1, ',');
  }
  return out;
}

row measure_once(const contest& what, const settings& how) {
  const std::uint64_t our_times = calibrate(what.ours, how.round_seconds);
  const std::uint64_t floor_times = what.floor ? calibrate(what.floor, how.round_seconds) : 0;
  std::vector<double> ours;
  std::vector<double> floor;
  for (std::size_t round = 0; round < std::max<std::size_t>(1, how.rounds); ++round) {
    const auto run_ours = [&] { ours.push_back(seconds_of(what.ours, our_times) / static_cast<double>(our_times)); };
    const auto run_floor = [&] {
      if (what.floor) floor.push_back(seconds_of(what.floor, floor_times) / static_cast<double>(floor_times));
    };
    // Whoever runs second finds what the first left in the caches; so they take turns.
    if (round % 2 == 0) {
      run_ours();
      run_floor();
    } else {
      run_floor();
      run_ours();
    }
  }

  row result;
  result.name = what.name;
  result.unit = what.unit;
  result.bar = what.bar;
  result.side = what.side;
  if (what.floor) {
    constexpr double nanoseconds = 1e9;
    result.ours = median(std::move(ours)) * nanoseconds;
    result.floor = median(std::move(floor)) * nanoseconds;
  } else {
    result.ours = 1 / median(std::move(ours));
    result.floor = what.fixed_floor;
  }
  result.ratio = result.ours / result.floor;
  result.holds = what.side == bar_is::at_most ? result.ratio <= what.bar : result.ratio >= what.bar;
  return result;
}

}  // namespace

row measure(const contest& what, const settings& how) {
  row best = measure_once(what, how);
  for (int again = 0; again < 2 && !best.holds; ++again) {
    row next = measure_once(what, how);
    if (next.holds || (what.side == bar_is::at_most ? next.ratio < best.ratio : next.ratio > best.ratio)) best = std::move(next);
  }
  return best;
}

std::string to_json(std::string_view bench, const std::vector<row>& rows) {
  std::string out = "{\"bench\":" + quoted(std::string(bench)) + ",\"rows\":[";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const row& each = rows[i];
    out += (i == 0 ? "{\"name\":" : ",{\"name\":") + quoted(each.name);
    out += formatted(",\"ours\":%.2f,\"floor\":%.2f,\"unit\":", each.ours, each.floor) + quoted(each.unit);
    out += formatted(",\"ratio\":%.4f,\"bar\":%g,\"holds\":", each.ratio, each.bar) + (each.holds ? "true}" : "false}");
  }
  return out + "]}\n";
}

std::string to_table(const std::vector<row>& rows) {
  using cells = std::array<std::string, 7>;
  std::vector<cells> lines{{"name", "ours", "floor", "unit", "ratio", "bar", "holds"}};
  for (const row& each : rows) {
    lines.push_back({each.name, figure(each.ours, each.unit), figure(each.floor, each.unit), each.unit, formatted("%.2f", each.ratio),
                     formatted(each.side == bar_is::at_most ? "<= %.2f" : ">= %.2f", each.bar), each.holds ? "yes" : "NO"});
  }
  std::array<std::size_t, 7> widths{};
  for (const cells& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string out;
  for (const cells& line : lines) {
    std::string text;
    for (std::size_t i = 0; i < line.size(); ++i) {
      const bool number = i == 1 || i == 2 || i == 4 || i == 5;
      text += (i == 0 ? "" : "  ") + padded(line[i], widths[i], number);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + "\n";
  }
  return out;
}

}  // namespace holdfast::bench
