#pragma once

/// \file
/// Keys in bulk: one JSON case in, one JSON line out. It is what `holdfast key batch` runs, and how another implementation of the
/// formats can be checked against this one.

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
  key::dialect dialect = key::dialect::current;  ///< cachekit_auto only
  key::style style = key::style::escaped;        ///< failover only
  /// As in failover_options.
  std::function<void(std::string_view point_name, std::string_view type)> on_unstable{};
};

/// Thread-safety: none; one batch per thread.
class HOLDFAST_API batch {
 public:
  explicit batch(batch_options options);
  batch(batch&&) noexcept;
  batch& operator=(batch&&) noexcept;
  ~batch();

  /// Appends exactly one line, with its newline, to `out`: the key, or `{"id":..,"error":{"code","path","message"}}`.
  /// A bad case is an answer, never an exception.
  void run(std::string_view line, std::string& out);

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace HOLDFAST_NAMESPACE::key
