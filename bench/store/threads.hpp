#pragma once

/// \file
/// Many threads put single entries at the same time, compared with the client library on as many
/// connections as the store writes with.

#include <holdfast/store.hpp>

#include "bench/ratio.hpp"
#include "bench/store/raw_client.hpp"

#include <memory>
#include <string>

namespace holdfast::bench {

struct thread_puts {
  std::shared_ptr<store> ours;
  raw_client_settings settings;
  std::string raw_table;
  timestamp start{};
};

/// The row `store.threads_put`: puts per second of 200 threads.
[[nodiscard]] row measure_thread_puts(const thread_puts& compared, const measure_options& options);

}  // namespace holdfast::bench
