#pragma once

/// \file
/// The open sequences of the server, by name. Opening one asks the database, and an open one draws
/// ids from memory, so they are kept; of more than `most`, the least recently used is closed.

#include <holdfast/sequence.hpp>
#include <holdfast/version.hpp>

#include "serve/api/services.hpp"

#include <atomic>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

namespace HOLDFAST_NAMESPACE::detail::serve {

struct open_sequence {
  holdfast::sequence ids;
  sequence_options options;
  /// Removed from the cache. Open the sequence again.
  std::atomic<bool> closed{false};
};

/// Thread-safety: may be called from any thread.
class sequence_cache {
 public:
  /// `shared` must outlive the cache.
  explicit sequence_cache(services& shared, std::size_t most = 10'000)
      : shared_(shared), most_(most) {}
  sequence_cache(const sequence_cache&) = delete;
  sequence_cache& operator=(const sequence_cache&) = delete;
  ~sequence_cache();

  /// Returns the sequence if it is open, otherwise null. Never waits.
  [[nodiscard]] std::shared_ptr<open_sequence> find(std::string_view name);
  /// Returns the sequence, and opens it with the definition of its counter. Waits for the database.
  /// Throws errc::not_found without a database for sequences, errc::invalid_argument for an invalid
  /// name, and the errors of the database.
  [[nodiscard]] std::shared_ptr<open_sequence> open(std::string_view name);
  /// Closes a sequence, for example because its definition was changed. Waits at most a second.
  void close(std::string_view name);
  [[nodiscard]] std::size_t size();

  /// The options for a name: those of the services, with the definition of the counter. Waits.
  [[nodiscard]] sequence_options options_of(std::string_view name);

 private:
  struct slot {
    std::shared_ptr<open_sequence> sequence{};
    std::list<std::string>::iterator use{};
  };
  struct name_hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept {
      return std::hash<std::string_view>{}(text);
    }
  };
  /// Call with the lock. Returns null if the name is not open.
  [[nodiscard]] std::shared_ptr<open_sequence> remove_slot(std::string_view name);
  static void close(open_sequence& sequence) noexcept;

  services& shared_;
  const std::size_t most_;
  std::mutex mutex_{};
  std::list<std::string> uses_{};  // the last used first
  std::unordered_map<std::string, slot, name_hash, std::equal_to<>> slots_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail::serve
