#pragma once

/// \file
/// A scattered call: each of its slices is a call of its own, with its own key, row and provenance. User code does not call this.

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

namespace HOLDFAST_NAMESPACE::detail {

/// How far a slice has come.
enum class slice_state : std::uint8_t {
  open,        ///< the upstream did not give it
  live,        ///< the upstream gave it, or said that it is absent
  stored,      ///< recovered
  substitute,  ///< made by a hook
  missing      ///< looked for and not found
};

/// A call that consists of others. The core stores and recovers each slice as if it had been called alone.
class HOLDFAST_API gather_base : public call_base {
 public:
  struct slice {
    call_base* call;
    slice_state at = slice_state::open;
    std::exception_ptr error{};  ///< of an open one: why the upstream did not give it; null: the whole call failed
  };
  ~gather_base() override;

  /// After a live answer: makes a slice of each of its parts. Throws what the user's splitter throws.
  virtual void split_live() = 0;
  /// After a failure: makes the slices of which an answer to these arguments consists. Not asked when `listed`.
  virtual void split_for_recovery() = 0;
  /// The keys of the same, for the check that both ways of splitting agree; nothing where they cannot differ.
  [[nodiscard]] virtual std::vector<std::string> keys_for_recovery() { return {}; }
  /// Makes one whole of what was recovered. False: it cannot be served.
  [[nodiscard]] virtual bool merge() { return true; }
  /// A slice for a key that a manifest names.
  virtual slice& add(std::string key) = 0;
  /// Forgets all slices.
  virtual void clear() noexcept = 0;
  [[nodiscard]] gather_base* gather() noexcept override { return this; }

  std::vector<slice> slices{};
  std::string scope_text{};         ///< what the point varies by, of this caller
  bool listed = false;              ///< what belongs to the answer is in a manifest
  bool whole_apart = false;         ///< a live answer is there without its slices
  std::exception_ptr refused{};     ///< of a live call: why it must not be served after all
  std::size_t missing_unnamed = 0;  ///< slices of a list that are known to be missing, and nothing more
};

/// The exception being handled kept a slice from getting a key.
HOLDFAST_API void unkeyed_slice(const point_core& point) noexcept;

/// The key of a slice: what a call with these arguments alone has. Empty, and counted, when they have none.
template <class... K>
[[nodiscard]] std::string slice_key(const point_core& point, const gather_base& call, const K&... args) {
  if (call.key.empty()) return {};
  try {
    const auto& keys = keys_of(point);
    if (!varies(point)) return keys(args...);
    return keys.of_raw(keys.raw(args...) + call.scope_text);
  } catch (...) {
    unkeyed_slice(point);
    return {};
  }
}

/// Begins a scattered call with so many slices, if that is known: its scope, its key (of a list: `make_key` gives that of its manifest), its
/// start. Throws as `start`.
HOLDFAST_API void start_gather(const point_core& point, gather_base& call, std::size_t slices,
                               const std::function<std::string()>& make_key);
/// The point's partial policy leaves out what is missing.
[[nodiscard]] HOLDFAST_API bool drops_missing(const point_core& point) noexcept;
/// Throws what a finished call must throw because its partial policy said so.
inline void settle(const gather_base& call) {
  if (call.refused) std::rethrow_exception(call.refused);
}

/// The values of a point whose callable is kept elsewhere.
template <class T, class Codec>
class coded_values final : public typed_values<T> {
 public:
  coded_values(Codec how, point_hooks<T> told) : typed_values<T>(std::move(told)), codec_(std::move(how)) {}
  [[nodiscard]] std::string encode(const T& value) const override { return encode_payload(value, codec_); }
  [[nodiscard]] T decode(std::string_view bytes) const override { return decode_payload<T>(bytes, codec_); }

 private:
  [[no_unique_address]] const Codec codec_;
};

/// The typed part that all scattered calls have in common.
template <class T>
class gather_call : public gather_base {
 public:
  explicit gather_call(std::shared_ptr<const typed_values<T>> values) : values_(std::move(values)) {}

  slice& add(std::string its_key) override {
    auto& made = calls_.emplace_back(*values_);
    made.key = std::move(its_key);
    return slices.emplace_back(slice{.call = &made});
  }
  void clear() noexcept override {
    slices.clear();
    calls_.clear();
  }
  /// The value of a slice.
  [[nodiscard]] std::optional<T>& value(std::size_t i) { return calls_[i].value; }

  [[nodiscard]] encoded encode(timestamp) override { return {.kind = result_kind::ignore}; }
  void decode(std::string_view) override {}
  void make_empty() noexcept override {
    for (auto& each : calls_) each.value.reset();
    for (auto& each : slices) each.at = slice_state::open;
  }
  [[nodiscard]] bool has_value() const noexcept override { return !slices.empty(); }
  void enrich() override {
    for_each([](const slice& each) {
      if (each.at == slice_state::live) each.call->enrich();
    });
  }
  void recovered() override {}
  void default_value() override {
    if (!values_->hooks.default_value) return;
    for_each([](slice& each) {
      if (each.at != slice_state::missing && each.at != slice_state::open) return;
      each.call->from.from = origin::substitute;
      each.call->default_value();
      each.at = slice_state::substitute;
    });
  }
  bool unserved() override {
    if (!values_->hooks.unserved) return false;
    for (auto& each : slices) {
      if (each.at != slice_state::missing && each.at != slice_state::open) continue;
      each.call->from.from = origin::substitute;
      (void)each.call->unserved();
      each.at = slice_state::substitute;
    }
    return true;
  }
  void take(call_base& finished) noexcept override {
    auto& other = static_cast<gather_call&>(finished);
    calls_.swap(other.calls_);
    slices.swap(other.slices);
    refused = std::move(other.refused);
    missing_unnamed = other.missing_unnamed;
    from = other.from;
  }
  [[nodiscard]] std::shared_ptr<call_base> own() override { return nullptr; }

 protected:
  [[nodiscard]] const point_core& point() const noexcept { return *values_->core; }

 private:
  /// Every slice gets its turn; what the last one threw leaves.
  template <class Work>
  void for_each(Work work) {
    std::exception_ptr thrown;
    for (auto& each : slices) {
      try {
        work(each);
      } catch (...) {
        thrown = std::current_exception();
      }
    }
    if (thrown) std::rethrow_exception(thrown);
  }

  const std::shared_ptr<const typed_values<T>> values_;
  std::deque<value_call<T>> calls_{};  // slices point to them, so they stay where they are
};

/// Runs a scattered call on this thread, or on the executor when the point has a deadline. `make` makes the call, `start` starts it. Gives
/// the call with what its caller gets; throws what must leave.
template <class Make, class Start>
[[nodiscard]] auto run_gather(const std::shared_ptr<point_core>& point, Make make, Start start) {
  auto call = make();
  if (way_of(*point) == way::bypass) {
    run_bypassed(*point, *call);
    call->split_live();
    for (auto& each : call->slices) each.call->from = call->from;
    return call;
  }
  start(*call);
  if (way_of(*point) == way::plain) {
    run(point, *call);
    settle(*call);
    return call;
  }
  auto mine = make();
  mine->scope_text = call->scope_text;
  mine->listed = call->listed;
  run_owned(point, call, *mine);
  settle(*mine);
  return mine;
}

}  // namespace HOLDFAST_NAMESPACE::detail
