// The public class.

#include <holdfast/outbox/relay/rabbitmq.hpp>

#include "outbox/relay/broker_relay.hpp"
#include "outbox/relay/rabbitmq/broker.hpp"

#include <utility>

namespace HOLDFAST_NAMESPACE::relay {

rabbitmq::rabbitmq(const std::string& url, const broker_options& options) {
  auto target = std::make_unique<detail::outbox::rabbitmq::rabbitmq_broker>(url, options);
  const auto destination = target->destination();
  relay_ = std::make_shared<detail::outbox::broker_relay>(std::move(target), destination, options);
}

outcome rabbitmq::operator()(const delivery& delivery) const { return relay_->publish(delivery); }

std::vector<outcome> rabbitmq::operator()(std::span<const delivery* const> deliveries) const {
  return relay_->publish(deliveries);
}

}  // namespace HOLDFAST_NAMESPACE::relay
