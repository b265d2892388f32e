#include "bench/ratio.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <utility>

namespace holdfast::bench {

namespace {

/// Returns how many iterations fill a round. Also warms up caches, branch predictors and the clock
/// frequency of the processor.
std::uint64_t calibrate(const workload& work, double round_seconds) {
  std::uint64_t iterations = 1;
  for (;;) {
    // The best of three: one interruption must not make the rounds short.
    const double seconds = std::min(
        {seconds_of(work, iterations), seconds_of(work, iterations), seconds_of(work, iterations)});
    if (seconds >= round_seconds / 2) {
      return std::max<std::uint64_t>(
          1, static_cast<std::uint64_t>(static_cast<double>(iterations) * round_seconds / seconds));
    }
    iterations *= seconds < round_seconds / 16 ? 8 : 2;
  }
}

template <class... A>
std::string formatted(const char* format, A... values) {
  std::array<char, 160> buffer{};
  const int length = std::snprintf(buffer.data(), buffer.size(), format, values...);
  return {buffer.data(), static_cast<std::size_t>(std::clamp<int>(length, 0, buffer.size() - 1))};
}

std::string quoted(std::string_view text) { return "\"" + std::string(text) + "\""; }

std::string padded(const std::string& text, std::size_t width, bool align_right) {
  const std::string spaces(width > text.size() ? width - text.size() : 0, ' ');
  return align_right ? spaces + text : text + spaces;
}

/// `812345.7` as `812,346`; nanoseconds below 10,000 keep one digit after the point.
std::string figure(double number, const std::string& unit) {
  std::string text = formatted("%.*f", unit == "ns" && number < 10000 ? 1 : 0, number);
  std::size_t position = std::min(text.find('.'), text.size());
  while (position > 3) {
    position -= 3;
    text.insert(position, 1, ',');
  }
  return text;
}

row measure_once(const comparison& compared, const measure_options& options) {
  const std::uint64_t our_iterations = calibrate(compared.ours, options.round_seconds);
  const std::uint64_t floor_iterations =
      compared.floor ? calibrate(compared.floor, options.round_seconds) : 0;
  std::vector<double> our_seconds;
  std::vector<double> floor_seconds;
  const auto run_ours = [&] {
    our_seconds.push_back(seconds_of(compared.ours, our_iterations) /
                          static_cast<double>(our_iterations));
  };
  const auto run_floor = [&] {
    if (compared.floor)
      floor_seconds.push_back(seconds_of(compared.floor, floor_iterations) /
                              static_cast<double>(floor_iterations));
  };
  for (std::size_t round = 0; round < std::max<std::size_t>(1, options.rounds); ++round) {
    // The second side runs with the caches that the first one filled, so the order alternates.
    if (round % 2 == 0) {
      run_ours();
      run_floor();
    } else {
      run_floor();
      run_ours();
    }
  }
  const double ours = median(std::move(our_seconds));
  if (!compared.floor)
    return make_row(compared.name, 1 / ours, compared.fixed_rate, compared.unit, compared.bar,
                    compared.bar_bound);
  constexpr double nanoseconds = 1e9;
  return make_row(compared.name, ours * nanoseconds, median(std::move(floor_seconds)) * nanoseconds,
                  compared.unit, compared.bar, compared.bar_bound);
}

}  // namespace

row make_row(std::string name, double ours, double floor, std::string unit, double bar,
             bound bar_bound) {
  const double ratio = floor > 0 ? ours / floor : 0;
  return {.name = std::move(name),
          .ours = ours,
          .floor = floor,
          .unit = std::move(unit),
          .ratio = ratio,
          .bar = bar,
          .bar_bound = bar_bound,
          .holds = bar_bound == bound::at_most ? ratio <= bar : ratio >= bar};
}

row best_of_three(const std::function<row()>& measurement) {
  row best = measurement();
  for (int repeated = 0; repeated < 2 && !best.holds; ++repeated) {
    row next = measurement();
    const bool better =
        best.bar_bound == bound::at_most ? next.ratio < best.ratio : next.ratio > best.ratio;
    if (better) best = std::move(next);
  }
  return best;
}

row measure(const comparison& compared, const measure_options& options) {
  return best_of_three([&] { return measure_once(compared, options); });
}

double seconds_of(const workload& work, std::uint64_t iterations) {
  const auto start = std::chrono::steady_clock::now();
  work(iterations);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double quantile(std::vector<double> figures, double part) {
  const auto index = std::min(figures.size() - 1,
                              static_cast<std::size_t>(static_cast<double>(figures.size()) * part));
  const auto position = figures.begin() + static_cast<std::ptrdiff_t>(index);
  std::ranges::nth_element(figures, position);
  return *position;
}

double median(std::vector<double> figures) {
  const auto middle = figures.begin() + static_cast<std::ptrdiff_t>(figures.size() / 2);
  std::ranges::nth_element(figures, middle);
  if (figures.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(figures.begin(), middle)) / 2;
}

std::string to_json(std::string_view bench, const std::vector<row>& rows) {
  std::string text = "{\"bench\":" + quoted(bench) + ",\"rows\":[";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const row& result = rows[i];
    text += (i == 0 ? "{\"name\":" : ",{\"name\":") + quoted(result.name);
    text += formatted(",\"ours\":%.2f,\"floor\":%.2f,\"unit\":", result.ours, result.floor) +
            quoted(result.unit);
    text += formatted(",\"ratio\":%.4f,\"bar\":%g,\"holds\":", result.ratio, result.bar) +
            (result.holds ? "true}" : "false}");
  }
  return text + "]}\n";
}

std::string to_table(const std::vector<row>& rows) {
  constexpr std::size_t columns = 7;
  using cells = std::array<std::string, columns>;
  std::vector<cells> lines{{"name", "ours", "floor", "unit", "ratio", "bar", "holds"}};
  for (const row& result : rows) {
    lines.push_back(
        {result.name, figure(result.ours, result.unit), figure(result.floor, result.unit),
         result.unit, formatted("%.2f", result.ratio),
         formatted(result.bar_bound == bound::at_most ? "<= %.2f" : ">= %.2f", result.bar),
         result.holds ? "yes" : "NO"});
  }
  std::array<std::size_t, columns> widths{};
  for (const cells& line : lines) {
    for (std::size_t i = 0; i < columns; ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string text;
  for (const cells& line : lines) {
    std::string padded_line;
    for (std::size_t i = 0; i < columns; ++i) {
      const bool is_number = i == 1 || i == 2 || i == 4 || i == 5;
      padded_line += (i == 0 ? "" : "  ") + padded(line[i], widths[i], is_number);
    }
    padded_line.erase(padded_line.find_last_not_of(' ') + 1);
    text += padded_line + "\n";
  }
  return text;
}

}  // namespace holdfast::bench
