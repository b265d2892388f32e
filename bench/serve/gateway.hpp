#pragma once

/// \file
/// `holdfast_bench gateway`: the gateway compared with Debian's nginx as a caching proxy, in front
/// of the same upstream, in processor time for each request.

#include "bench/ratio.hpp"
#include "bench/serve/serve.hpp"

#include <string>
#include <vector>

namespace holdfast::bench {

[[nodiscard]] std::vector<std::string> gateway_row_names();

/// As measure_serve.
[[nodiscard]] std::vector<row> measure_gateway(const serve_bench_options& options);

}  // namespace holdfast::bench
