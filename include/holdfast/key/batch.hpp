#pragma once

/// \file
/// Makes many keys: one case as a line of JSON in, one line of JSON out. `holdfast key batch` uses
/// it. Other implementations of the formats can be compared with this one through it.

#include <holdfast/key/cachekit.hpp>
#include <holdfast/key/failover.hpp>
#include <holdfast/key/typed_json.hpp>
#include <holdfast/version.hpp>

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::key {

struct batch_options {
  key::scheme scheme = key::scheme::interop;
  /// Used by scheme::cachekit_auto only.
  key::dialect dialect = key::dialect::current;
  /// Used by scheme::failover only.
  key::style style = key::style::escaped;
  /// See failover_options::on_unstable.
  std::function<void(std::string_view point_name, std::string_view type)> on_unstable{};
};

/// Answers cases one by one. It keeps its buffers between cases.
/// Thread-safety: none; use one batch per thread.
class HOLDFAST_API batch {
 public:
  explicit batch(batch_options options);
  batch(batch&&) noexcept;
  batch& operator=(batch&&) noexcept;
  ~batch();

  /// Appends exactly one line to `out`, with its newline: the key, or
  /// `{"id":..,"error":{"code","path","message"}}`. Does not throw for a bad case; the line
  /// describes the error.
  void run(std::string_view line, std::string& out);

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace HOLDFAST_NAMESPACE::key
