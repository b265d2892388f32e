#include "serve/certificate_metrics.hpp"

namespace HOLDFAST_NAMESPACE::detail::serve {

void show_certificate(metrics_sink& sink, std::string_view listener,
                      const net::tls_server_context& context) {
  const auto expiry = context.not_after();
  if (!expiry) return;
  sink.gauge("holdfast_tls_certificate_expiry_timestamp_seconds",
             {{.name = "listener", .value = listener}},
             "When the certificate of this listener is not valid any more")
      ->set(static_cast<double>(expiry->time_since_epoch().count()));
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
