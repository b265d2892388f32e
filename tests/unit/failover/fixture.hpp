#pragma once

#include <holdfast/failover.hpp>
#include <holdfast/store/memory.hpp>

#include "support/faulty_store.hpp"
#include "support/manual_executor.hpp"
#include "support/virtual_clock.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace holdfast::test {

using namespace std::chrono_literals;

struct country {
  std::string code;
  std::string name;
  bool operator==(const country&) const = default;
};
inline std::string holdfast_encode(const country& c) {
  if (c.name == "unencodable") throw std::runtime_error("cannot be encoded");
  return c.code + "|" + c.name;
}
inline country holdfast_decode(std::string_view bytes, std::type_identity<country>) {
  const auto bar = bytes.find('|');
  if (bar == std::string_view::npos) throw std::runtime_error("no bar");
  return {std::string(bytes.substr(0, bar)), std::string(bytes.substr(bar + 1))};
}

/// What upstreams throw here.
struct outage : std::runtime_error {
  using std::runtime_error::runtime_error;
};
struct gone : std::runtime_error {
  gone() : std::runtime_error("gone") {}
};

/// An engine on a memory store that can be made to fail, with a clock that stands still, and an upstream that does as it is told.
class failover_test : public ::testing::Test {
 protected:
  /// A store in this process, unless it waits.
  engine& make(engine_options options = {}, bool waits = false) {
    made_.reset();
    options.clock = clock;
    // The clock stands still, but a wait is believed no longer than the machine's: a slow machine must not make reads late.
    if (options.read_deadline == engine_options{}.read_deadline) options.read_deadline = 20s;
    if (!options.log) {
      options.log = [this](const log_record& record) {
        const std::scoped_lock lock(log_mutex);
        log.emplace_back(record.message);
        for (const auto& each : record.fields) log.back().append(" ").append(each.name).append("=").append(each.value);
      };
    }
    shaky->waiting = waits;
    shaky->before = [this](faulty_store::operation what, std::span<const entry>) {
      if (what == faulty_store::operation::put) ++puts;
      if (what == faulty_store::operation::find) ++finds;
      if (store_down) throw error(errc::unavailable, "the store is down", {.transient = true});
    };
    made_ = std::make_unique<holdfast::engine>(shaky, std::move(options));
    return *made_;
  }
  engine& with() { return made_ ? *made_ : make(); }
  /// Before what its store and upstream use is gone.
  void finish() { made_.reset(); }

  /// A point on the scripted upstream.
  auto protect(std::string_view name = "country-by-code", point_options options = {}, point_hooks<country> hooks = {}) {
    return with().protect(name, options, [this](const std::string& code) { return upstream(code); }, std::move(hooks));
  }
  country upstream(const std::string& code) {
    ++calls;
    if (script) return script(code);
    if (down) throw outage("connection refused by 10.0.0.7");
    return {code, answer_text};
  }
  point_status status(std::string_view name = "country-by-code") {
    for (const auto& each : with().points()) {
      if (each.name == name) return each;
    }
    throw std::runtime_error("no such point");
  }
  point_numbers numbers(std::string_view name = "country-by-code") { return status(name).numbers; }
  /// The row as it is in the store.
  std::optional<entry> row(const std::string& code, const std::string& effective = "country-by-code") {
    return memory->find(effective, key::failover({.name = effective}, code));
  }
  bool logged(std::string_view text) {
    const std::scoped_lock lock(log_mutex);
    for (const auto& each : log) {
      if (each.find(text) != std::string::npos) return true;
    }
    return false;
  }

  std::shared_ptr<virtual_clock> clock = std::make_shared<virtual_clock>();
  std::shared_ptr<store> memory = make_memory_store({.clock = clock});
  std::shared_ptr<faulty_store> shaky = std::make_shared<faulty_store>(memory);
  std::atomic<bool> store_down{false};
  std::atomic<int> puts{0};
  std::atomic<int> finds{0};
  std::atomic<int> calls{0};
  std::atomic<bool> down{false};
  std::string answer_text = "France";
  std::function<country(const std::string&)> script{};
  std::mutex log_mutex{};
  std::vector<std::string> log{};

 private:
  std::unique_ptr<holdfast::engine> made_{};
};

}  // namespace holdfast::test
