#pragma once

/// \file
/// A connection that calls a function before one of its statements: what happens between two
/// statements of a transaction becomes the same in every run.

#include <holdfast/sql.hpp>

#include "sql/connect.hpp"

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace holdfast::test {

/// Calls `action` once, before the first statement that contains `text`, after it was armed.
/// Thread-safety: every function may be called from any thread.
class statement_hook {
 public:
  void arm(std::string text, std::function<void()> action) {
    const std::scoped_lock lock(mutex_);
    text_ = std::move(text);
    action_ = std::move(action);
  }
  void before(std::string_view statement) {
    std::function<void()> action;
    {
      const std::scoped_lock lock(mutex_);
      if (!action_ || statement.find(text_) == std::string_view::npos) return;
      action = std::exchange(action_, nullptr);
    }
    action();
  }
  [[nodiscard]] bool is_armed() {
    const std::scoped_lock lock(mutex_);
    return action_ != nullptr;
  }

 private:
  std::mutex mutex_{};
  std::string text_{};
  std::function<void()> action_{};
};

class hooked_connection final : public sql::connection {
 public:
  hooked_connection(std::unique_ptr<sql::connection> target, std::shared_ptr<statement_hook> hook)
      : target_(std::move(target)), hook_(std::move(hook)) {}

  [[nodiscard]] sql::dialect_id dialect() const noexcept override { return target_->dialect(); }
  [[nodiscard]] sql::transport_kind transport() const noexcept override {
    return target_->transport();
  }
  sql::outcome execute(const sql::statement& s,
                       std::span<const sql::parameter> parameters) override {
    hook_->before(s.text);
    return target_->execute(s, parameters);
  }
  sql::outcome batch(const sql::batch_statement& s,
                     std::span<const std::vector<sql::parameter>> columns,
                     std::span<const sql::parameter> common) override {
    hook_->before(s.text);
    return target_->batch(s, columns, common);
  }
  void run(const std::string& text) override { target_->run(text); }
  void begin() override { target_->begin(); }
  void commit() override { target_->commit(); }
  void rollback() noexcept override { target_->rollback(); }
  void limit(std::chrono::milliseconds longest) override { target_->limit(longest); }
  void listen(const std::string& channel) override { target_->listen(channel); }
  [[nodiscard]] std::optional<std::string> notice(std::chrono::milliseconds longest) override {
    return target_->notice(longest);
  }
  [[nodiscard]] bool broken() const noexcept override { return target_->broken(); }
  [[nodiscard]] bool responds(std::chrono::milliseconds longest) noexcept override {
    return target_->responds(longest);
  }
  [[nodiscard]] bool read_only() const noexcept override { return target_->read_only(); }

 private:
  std::unique_ptr<sql::connection> target_;
  std::shared_ptr<statement_hook> hook_;
};

/// Opens hooked connections to the database of a URL.
[[nodiscard]] inline sql::connection_factory hooked_factory(const std::string& url,
                                                            std::shared_ptr<statement_hook> hook) {
  return [connect = detail::sql::connector(url, {}), hook = std::move(hook)] {
    return std::make_unique<hooked_connection>(connect(), hook);
  };
}

}  // namespace holdfast::test
