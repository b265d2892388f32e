#pragma once

#include <amqp.h>

#include <memory>
#include <string>

namespace holdfast::test {

struct close_amqp_connection {
  void operator()(amqp_connection_state_t_* connection) const {
    amqp_destroy_connection(connection);
  }
};
using amqp_connection = std::unique_ptr<amqp_connection_state_t_, close_amqp_connection>;

/// Logs in as guest and opens channel 1. Throws std::runtime_error.
[[nodiscard]] amqp_connection open_amqp(const std::string& address);
/// Declares a durable queue and binds it to the topic exchange `events`, which is declared, too.
void declare_queue(const amqp_connection& connection, const std::string& queue,
                   const std::string& binding, amqp_table_t arguments = {});
[[nodiscard]] amqp_bytes_t amqp_text(const std::string& text);

}  // namespace holdfast::test
