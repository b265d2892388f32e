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

/// Exceptions of the scripted upstream.
struct outage : std::runtime_error {
  using std::runtime_error::runtime_error;
};
struct gone : std::runtime_error {
  gone() : std::runtime_error("gone") {}
};

/// An engine with a memory store that can fail, a virtual clock, and a scripted upstream.
class failover_test : public ::testing::Test {
 protected:
  /// Makes a new engine. `waits`: its store reports that it may block.
  engine& make(engine_options options = {}, bool waits = false) {
    engine_.reset();
    options.clock = clock;
    // The virtual clock stands still, so waits are limited on the system clock: a slow machine must
    // not make reads late.
    if (options.storage.read_deadline == engine_storage{}.read_deadline)
      options.storage.read_deadline = 20s;
    if (!options.log) {
      options.log = [this](const log_record& record) {
        const std::scoped_lock lock(log_mutex);
        log.emplace_back(record.message);
        for (const auto& each : record.fields)
          log.back().append(" ").append(each.name).append("=").append(each.value);
      };
    }
    shaky->waiting = waits;
    shaky->before = [this](faulty_store::operation operation, std::span<const entry>) {
      if (operation == faulty_store::operation::put) ++puts;
      if (operation == faulty_store::operation::find) ++finds;
      if (store_down) throw error(errc::unavailable, "the store is down", {.transient = true});
    };
    engine_ = std::make_unique<holdfast::engine>(shaky, std::move(options));
    return *engine_;
  }
  engine& current_engine() { return engine_ ? *engine_ : make(); }
  /// Destroys the engine, before the members that its store and upstream use.
  void finish() { engine_.reset(); }

  /// A point on the scripted upstream.
  auto protect(std::string_view name = "country-by-code", point_options options = {},
               point_hooks<country> hooks = {}) {
    return current_engine().protect(
        name, options, [this](const std::string& code) { return upstream(code); },
        std::move(hooks));
  }
  country upstream(const std::string& code) {
    ++calls;
    if (script) return script(code);
    if (down) throw outage("connection refused by 10.0.0.7");
    return {code, answer_text};
  }
  point_status status(std::string_view name = "country-by-code") {
    for (const auto& each : current_engine().points()) {
      if (each.name == name) return each;
    }
    throw std::runtime_error("no such point");
  }
  point_numbers numbers(std::string_view name = "country-by-code") { return status(name).numbers; }
  /// The row in the memory store.
  std::optional<entry> row(const std::string& code,
                           const std::string& effective = "country-by-code") {
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
  std::unique_ptr<holdfast::engine> engine_{};
};

}  // namespace holdfast::test
