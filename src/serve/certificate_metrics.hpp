#pragma once

/// \file
/// The metric `holdfast_tls_certificate_expiry_timestamp_seconds`.

#include <holdfast/metrics.hpp>
#include <holdfast/version.hpp>

#include "net/tls.hpp"

#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::serve {

/// Shows until when the certificate of a listener, `api` or `gateway`, is valid.
void show_certificate(metrics_sink& sink, std::string_view listener,
                      const net::tls_server_context& context);

}  // namespace HOLDFAST_NAMESPACE::detail::serve
