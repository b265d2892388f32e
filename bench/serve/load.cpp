#include "bench/serve/load.hpp"

#include <holdfast/error.hpp>

#include <chrono>
#include <thread>
#include <vector>

namespace holdfast::bench {

namespace {

double number_after(const std::string& text, const std::string& label, std::string& unit) {
  const auto position = text.find(label);
  if (position == std::string::npos) return 0;
  std::size_t used = 0;
  const auto rest = text.substr(position + label.size());
  const double number = std::stod(rest, &used);
  unit = rest.substr(used, rest.find_first_of(" \n", used) - used);
  return number;
}

}  // namespace

int client_processor() { return std::thread::hardware_concurrency() > 1 ? 1 : -1; }
int server_processor() { return std::thread::hardware_concurrency() > 1 ? 0 : -1; }

load_result run_load(const load& options) {
  std::vector<std::string> arguments{"wrk", "-t1", "-c" + std::to_string(options.connections),
                                     "-d" + std::to_string(options.seconds) + "s"};
  if (options.latency) arguments.emplace_back("--latency");
  if (!options.script.empty()) arguments.insert(arguments.end(), {"-s", options.script});
  arguments.push_back(options.url);
  const auto output = run_program(arguments, client_processor());
  if (output.find("Non-2xx") != std::string::npos)
    throw error(errc::unavailable, "a server refused requests of " + options.url);
  load_result result;
  const auto end = output.find(" requests in ");
  if (end != std::string::npos) {
    const auto begin = output.find_last_not_of("0123456789", end - 1) + 1;
    result.requests = std::stod(output.substr(begin, end - begin));
  }
  if (result.requests < 1) throw error(errc::unavailable, "wrk made no request: " + output);
  std::string unit;
  result.p99_us = number_after(output, "\n     99%", unit);
  if (unit == "ms") result.p99_us *= 1e3;
  if (unit == "s") result.p99_us *= 1e6;
  return result;
}

double cost_of(const program& server, const load& options) {
  const auto before = server.processor_time();
  const auto result = run_load(options);
  return static_cast<double>((server.processor_time() - before).count()) / result.requests;
}

std::string url_of(std::uint16_t port, const std::string& path, bool tls) {
  return (tls ? "https://127.0.0.1:" : "http://127.0.0.1:") + std::to_string(port) + path;
}

std::string quoted(const std::string& text) { return "\"" + text + "\""; }

}  // namespace holdfast::bench
