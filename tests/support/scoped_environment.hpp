#pragma once

#include <cstdlib>
#include <optional>
#include <string>

namespace holdfast::test {

/// Sets a variable of the environment, or removes it, until the end of a scope. For tests without
/// other threads.
class scoped_environment {
 public:
  scoped_environment(std::string name, const std::optional<std::string>& value)
      : name_(std::move(name)) {
    if (const char* const before = std::getenv(name_.c_str()); before != nullptr) before_ = before;
    set(value);
  }
  scoped_environment(const scoped_environment&) = delete;
  scoped_environment& operator=(const scoped_environment&) = delete;
  ~scoped_environment() { set(before_); }

 private:
  void set(const std::optional<std::string>& value) const {
    if (value) ::setenv(name_.c_str(), value->c_str(), 1);
    else ::unsetenv(name_.c_str());
  }

  std::string name_;
  std::optional<std::string> before_{};
};

}  // namespace holdfast::test
