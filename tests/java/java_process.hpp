#pragma once

#include "support/child_process.hpp"
#include "support/temporary_directory.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace holdfast::test {

/// A Java service on a failover table, in the time zone of its own: tests/java/peer/Main.java. It
/// starts in half a second, so one serves a whole test. Thread-safety: none.
class java_process {
 public:
  java_process(std::uint16_t port, const std::string& database, const std::string& zone);
  ~java_process();
  java_process(const java_process&) = delete;
  java_process& operator=(const java_process&) = delete;

  /// Asks one question. Throws std::runtime_error with what Java threw, or when there is no answer
  /// for a minute.
  nlohmann::json ask(const nlohmann::json& question);

 private:
  temporary_directory directory_{};
  int questions_ = -1;  // a named pipe
  int answers_ = -1;
  std::string received_{};
  std::optional<child_process> java_{};
};

}  // namespace holdfast::test
