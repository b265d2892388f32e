// The reports of instances on Redis: a hash with an expiry for each, an index of them by their last
// report, and a hash of commands. One hash tag keeps them on one node of a Cluster.

#include "database/instances/backend.hpp"

#include <holdfast/error.hpp>
#include <holdfast/redis.hpp>

#include "database/instances/redis/report_lua.hpp"
#include "database/instances/redis/send_lua.hpp"
#include "sql/table_prefix.hpp"

#include <charconv>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::instances {

namespace {

using std::chrono::microseconds;

std::int64_t number_of(const redis::reply& reply) {
  if (!reply.is_text()) return 0;
  const auto& text = reply.text();
  std::int64_t number = 0;
  (void)std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// Removes and returns the text before the next line break.
std::string_view take_line(std::string_view& text) {
  const auto line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(text.size(), line.size() + 1));
  return line;
}

class redis_instances final : public instance_backend {
 public:
  redis_instances(std::shared_ptr<const redis::client> client, std::string_view prefix)
      : client_(std::move(client)) {
    sql::check_table_prefix(prefix);
    tag_ = "{" + std::string(prefix) + "holdfast}:";
  }

  void create_schema() override {}  // Redis needs no tables

  std::vector<instance_command> report(const report_row& row, bool with_commands) override {
    const auto reply = client_->call(redis::command(report_)
                                         .key(instance_key(row.instance))
                                         .key(index_key())
                                         .key(commands_key())
                                         .arg(row.instance)
                                         .arg(row.kind)
                                         .arg(row.every.count())
                                         .arg(row.state)
                                         .arg(std::chrono::seconds(report_lifetime).count())
                                         .idempotent());
    if (!with_commands) return {};
    std::vector<instance_command> commands;
    const auto& parts = reply.elements();
    for (std::size_t i = 0; i + 1 < parts.size() && commands.size() < max_commands; i += 2) {
      std::string_view text = parts[i + 1].text();
      (void)take_line(text);  // the time
      const auto instance = take_line(text);
      if (instance != "*" && instance != row.instance) continue;
      const auto kind = take_line(text);
      commands.push_back({.id = parts[i].text(),
                          .instance = std::string(instance),
                          .kind = std::string(kind),
                          .body = std::string(text)});
    }
    return commands;
  }

  void remove(std::string_view instance) override {
    const redis::command commands[]{
        redis::command("DEL").key(instance_key(instance)).idempotent(),
        redis::command("ZREM").key(index_key()).arg(instance).idempotent()};
    for (const auto& reply : client_->pipeline(commands)) (void)reply.checked();
  }

  void remove_old() override {}  // the report does so, and keys expire

  std::vector<instance_report> read(std::size_t limit) override {
    const auto time = client_->call(redis::command("TIME").idempotent());
    const auto now =
        number_of(time.elements().at(0)) * 1'000'000 + number_of(time.elements().at(1));
    const auto index = client_->call(
        redis::command("ZREVRANGE").key(index_key()).arg(0).arg(limit - 1).idempotent());
    std::vector<redis::command> questions;
    for (const auto& name : index.elements()) {
      auto& question = questions.emplace_back("HMGET");
      question.key(instance_key(name.text())).arg("kind").arg("started").arg("seen");
      question.arg("every").arg("state").idempotent();
    }
    const auto replies = client_->pipeline(questions);
    std::vector<instance_report> reports;
    for (std::size_t i = 0; i < replies.size(); ++i) {
      const auto& fields = replies[i].checked().elements();
      if (!fields.at(0).is_text() || !fields.at(4).is_text()) continue;  // expired meanwhile
      const auto seen = microseconds(number_of(fields.at(2)));
      reports.push_back({.instance = index.elements()[i].text(),
                         .kind = fields.at(0).text(),
                         .started = timestamp(microseconds(number_of(fields.at(1)))),
                         .seen = timestamp(seen),
                         .age = microseconds(now) - seen,
                         .every = std::chrono::milliseconds(number_of(fields.at(3))),
                         .state = fields.at(4).text()});
    }
    return reports;
  }

  void send(const instance_command& command, std::chrono::milliseconds valid_for) override {
    const auto reply =
        client_->call(redis::command(send_)
                          .key(commands_key())
                          .arg(command.id)
                          .arg(command.instance + "\n" + command.kind + "\n" + command.body)
                          .arg(microseconds(valid_for).count())
                          .arg(std::chrono::ceil<std::chrono::seconds>(valid_for).count() + 1)
                          .idempotent());
    if (reply.integer() == 0)
      throw error(errc::too_large, "there are 100 commands for instances; wait until some expire",
                  {.transient = true});
  }

 private:
  [[nodiscard]] std::string instance_key(std::string_view instance) const {
    return tag_ + "instance:" + std::string(instance);
  }
  [[nodiscard]] std::string index_key() const { return tag_ + "instances"; }
  [[nodiscard]] std::string commands_key() const { return tag_ + "commands"; }

  std::shared_ptr<const redis::client> client_;
  std::string tag_{};
  redis::script report_{std::string(report_lua)};
  redis::script send_{std::string(send_lua)};
};

}  // namespace

std::unique_ptr<instance_backend> make_redis_instances(std::shared_ptr<const redis::client> client,
                                                       std::string_view prefix) {
  return std::make_unique<redis_instances>(std::move(client), prefix);
}

}  // namespace HOLDFAST_NAMESPACE::detail::instances
