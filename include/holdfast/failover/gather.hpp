#pragma once

/// \file
/// Scattered calls: each slice is a call of its own, with its own key, row and provenance. Not for
/// user code.

#include <holdfast/failover/call.hpp>
#include <holdfast/failover/core.hpp>
#include <holdfast/version.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::failover {

enum class slice_state : std::uint8_t {
  open,        ///< not returned by the upstream, and not yet recovered
  live,        ///< returned by the upstream, as a value or as absent
  stored,      ///< recovered from the store
  substitute,  ///< made by a hook
  missing      ///< not found in the store
};
[[nodiscard]] constexpr bool is_missing(slice_state state) noexcept {
  return state == slice_state::missing || state == slice_state::open;
}

/// A call that consists of slices. The core stores and recovers each slice like a single call.
class HOLDFAST_API gather_base : public call_base {
 public:
  struct slice {
    call_base* call;
    slice_state state = slice_state::open;
    /// Why the upstream did not return this slice; null if the whole call failed.
    std::exception_ptr error{};
  };
  ~gather_base() override;

  /// Makes the slices of a live answer. Throws what the splitter throws.
  virtual void split_live() = 0;
  /// Makes the slices of an answer to the arguments of this call. Not called if `listed`.
  virtual void split_for_recovery() = 0;
  /// The keys of those slices, to check that both functions of a splitter agree. Empty if they
  /// cannot differ.
  [[nodiscard]] virtual std::vector<std::string> keys_for_recovery() { return {}; }
  /// Combines recovered slices. Returns false if the result cannot be served.
  [[nodiscard]] virtual bool merge() { return true; }
  /// Adds a slice with this key.
  virtual slice& add(std::string key) = 0;
  virtual void clear() noexcept = 0;
  [[nodiscard]] gather_base* gather() noexcept override { return this; }

  std::vector<slice> slices{};
  std::string scope_text{};        ///< dimensions of this caller, as part of raw keys
  bool listed = false;             ///< a manifest names the slices
  bool whole_is_separate = false;  ///< the live answer does not depend on its slices
  std::exception_ptr refusal{};    ///< why a live but partial answer must not be served
  /// Slices of a list whose keys are unknown because a chunk of the manifest is missing.
  std::size_t unnamed_missing = 0;
};

/// Call in a catch clause: the exception prevented the key of a slice.
HOLDFAST_API void record_missing_slice_key(const point_core& point) noexcept;

/// The key of a slice, which is that of a single call with these arguments. If it cannot be made,
/// returns an empty string and counts it.
template <class... K>
[[nodiscard]] std::string slice_key(const point_core& point, const gather_base& call,
                                    const K&... args) {
  if (call.key.empty()) return {};
  try {
    const auto& keys = keys_of(point);
    if (!varies(point)) return keys(args...);
    return keys.of_raw(keys.raw(args...) + call.scope_text);
  } catch (...) {
    record_missing_slice_key(point);
    return {};
  }
}

/// Starts a scattered call: dimensions, key, then as `start`. `slices` is their number, or 0 if it
/// is unknown. `make_key` makes the key of the manifest of a listed call. Throws as `start`.
HOLDFAST_API void start_gather(const point_core& point, gather_base& call, std::size_t slices,
                               const std::function<std::string()>& make_key);
/// True if the partial policy of the point is `drop`.
[[nodiscard]] HOLDFAST_API bool drops_missing(const point_core& point) noexcept;
/// Throws if the partial policy refused the result of a finished call.
inline void rethrow_refusal(const gather_base& call) {
  if (call.refusal) std::rethrow_exception(call.refusal);
}

/// The typed part of all scattered calls.
template <class T>
class gather_call : public gather_base {
 public:
  explicit gather_call(std::shared_ptr<const typed_values<T>> values)
      : values_(std::move(values)) {}

  slice& add(std::string slice_key) override {
    auto& call = calls_.emplace_back(*values_);
    call.key = std::move(slice_key);
    return slices.emplace_back(slice{.call = &call});
  }
  void clear() noexcept override {
    slices.clear();
    calls_.clear();
  }
  /// The value of a slice.
  [[nodiscard]] std::optional<T>& value(std::size_t i) { return calls_[i].value; }

  [[nodiscard]] encoded_value encode(timestamp) override { return {.kind = result_kind::ignore}; }
  [[nodiscard]] std::string encode_for_followers() override { return {}; }
  void decode(std::string_view) override {}
  void make_empty() noexcept override {
    for (auto& call : calls_) call.value.reset();
    for (auto& part : slices) part.state = slice_state::open;
  }
  [[nodiscard]] bool has_value() const noexcept override { return !slices.empty(); }
  void enrich() override {
    for_each_slice([](const slice& live) {
      if (live.state == slice_state::live) live.call->enrich();
    });
  }
  void call_recovered_hook() override {}
  void set_default_value() override {
    if (!values_->hooks.default_value) return;
    for_each_slice([](slice& missing) {
      if (!is_missing(missing.state)) return;
      missing.call->provenance.origin = origin::substitute;
      missing.call->set_default_value();
      missing.state = slice_state::substitute;
    });
  }
  bool call_unserved_hook() override {
    if (!values_->hooks.unserved) return false;
    for (auto& missing : slices) {
      if (!is_missing(missing.state)) continue;
      missing.call->provenance.origin = origin::substitute;
      (void)missing.call->call_unserved_hook();
      missing.state = slice_state::substitute;
    }
    return true;
  }
  void move_result(call_base& finished) noexcept override {
    auto& other = static_cast<gather_call&>(finished);
    calls_.swap(other.calls_);
    slices.swap(other.slices);
    refusal = std::move(other.refusal);
    unnamed_missing = other.unnamed_missing;
    provenance = other.provenance;
  }
  [[nodiscard]] std::shared_ptr<call_base> copy_with_arguments() override { return nullptr; }

 protected:
  [[nodiscard]] const point_core& point() const noexcept { return *values_->core; }

 private:
  /// Runs `work` for every slice, then rethrows the last exception.
  template <class Work>
  void for_each_slice(Work work) {
    std::exception_ptr thrown;
    for (auto& part : slices) {
      try {
        work(part);
      } catch (...) {
        thrown = std::current_exception();
      }
    }
    if (thrown) std::rethrow_exception(thrown);
  }

  const std::shared_ptr<const typed_values<T>> values_;
  std::deque<value_call<T>> calls_{};  // a deque, because slices point to its elements
};

/// Runs a scattered call on this thread, or on the threads of the engine if it has a deadline.
/// `make` creates the call, `start` starts it. Returns the call with its result, or throws.
template <class Make, class Start>
[[nodiscard]] auto run_gather(const std::shared_ptr<point_core>& point,
                              std::chrono::microseconds time_limit, Make make, Start start) {
  auto call = make();
  call->time_limit = time_limit;
  if (mode_of(*point) == call_mode::bypass) {
    run_bypassed(*point, *call);
    call->split_live();
    for (auto& slice : call->slices) slice.call->provenance = call->provenance;
    return call;
  }
  start(*call);
  if (mode_of(*point) == call_mode::on_caller && time_limit.count() == 0) {
    run(point, *call);
    rethrow_refusal(*call);
    return call;
  }
  auto result = make();
  result->scope_text = call->scope_text;
  result->listed = call->listed;
  run_owned(point, call, *result);
  rethrow_refusal(*result);
  return result;
}

/// As run_gather, for a call whose number of slices is unknown. `args` make the key of its
/// manifest.
template <class Make, class... A>
[[nodiscard]] auto run_unsized_gather(const std::shared_ptr<point_core>& point,
                                      std::chrono::microseconds time_limit, Make make,
                                      const A&... args) {
  return run_gather(point, time_limit, make, [&](gather_base& call) {
    start_gather(*point, call, 0, [&] {
      const auto& keys = keys_of(*point);
      return keys.of_raw(keys.raw(args...) + call.scope_text);
    });
  });
}

}  // namespace HOLDFAST_NAMESPACE::detail::failover
