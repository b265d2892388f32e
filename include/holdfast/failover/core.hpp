#pragma once

/// \file
/// The interface between the typed front end and the compiled core. The core handles keys, bytes
/// and exceptions and makes all decisions; the front end converts between types and bytes. Not for
/// user code.

#include <holdfast/clock.hpp>
#include <holdfast/failover/answer.hpp>
#include <holdfast/failover/call_context.hpp>
#include <holdfast/failover/hooks.hpp>
#include <holdfast/failover/options.hpp>
#include <holdfast/key/failover.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <typeindex>

namespace HOLDFAST_NAMESPACE::detail::failover {

class point_core;
class engine_core;
class gather_base;
struct call_notes;
struct handover;

/// A live value in the form in which it is stored.
struct encoded_value {
  result_kind kind = result_kind::store;
  std::string payload{};
  std::optional<timestamp> expire_on{};  ///< set by the expiry hook
};

/// One call, from its key to its answer. Subclasses own the typed value.
class HOLDFAST_API call_base {
 public:
  call_base() = default;
  call_base(const call_base&) = delete;
  call_base& operator=(const call_base&) = delete;
  virtual ~call_base();

  /// Calls the upstream. Throws what the upstream throws.
  virtual void invoke(const call_context& context) = 0;
  /// Encodes the value as it is stored. Throws what codec and hooks throw.
  [[nodiscard]] virtual encoded_value encode(timestamp now) = 0;
  /// Encodes the value for callers that share the call, even if it is not to be stored.
  [[nodiscard]] virtual std::string encode_for_followers() = 0;
  /// Decodes a stored payload into the value. Throws and leaves no value if it is invalid.
  virtual void decode(std::string_view payload) = 0;
  virtual void make_empty() noexcept = 0;
  [[nodiscard]] virtual bool has_value() const noexcept = 0;

  // These run the hooks of the point and throw what the hooks throw.
  virtual void enrich() = 0;
  virtual void call_recovered_hook() = 0;
  virtual void set_default_value() = 0;
  /// Returns false if there is no `unserved` hook.
  virtual bool call_unserved_hook() = 0;

  /// Moves value and provenance of a finished call of the same type into this call.
  virtual void move_result(call_base& finished) noexcept = 0;
  /// A copy of this call that owns its arguments; null if they cannot be copied.
  [[nodiscard]] virtual std::shared_ptr<call_base> copy_with_arguments() = 0;
  /// This call if it is a scattered call, else null.
  [[nodiscard]] virtual gather_base* gather() noexcept { return nullptr; }

  std::string key{};    ///< row key; empty if the call is not protected
  std::string realm{};  ///< realm of the caller's tenant
  holdfast::provenance provenance{};

  /// Set by the caller: this call may not take longer. Zero: the deadline of the point counts.
  std::chrono::microseconds time_limit{};

  // Used by the core only.
  timestamp now{};                                  ///< start of the call, wall time
  std::chrono::steady_clock::time_point started{};  ///< start of the call, steady time
  std::chrono::steady_clock::time_point attempt_started{};
  /// When the caller must have an answer, and until when the upstream may be waited for. The time
  /// between them is for the recovery.
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  std::chrono::steady_clock::time_point upstream_deadline =
      std::chrono::steady_clock::time_point::max();
  std::shared_ptr<failover::handover> handover{};     ///< set if the call runs on the executor
  std::shared_ptr<const std::string> shared_bytes{};  ///< payload for callers that share this call
  std::shared_ptr<call_notes> notes{};  ///< what the engine notes for decisions; null: nothing
  unsigned attempt = 0;
  std::uint32_t breaker_period = 0;  ///< from the permission of the breaker
  bool breaker_waits = false;        ///< the breaker still expects the result of this call
  bool in_limit = false;             ///< counted by the concurrency limit
  bool shares_bytes = false;         ///< other callers wait for `shared_bytes`
};

/// What the front end knows about the types of a point.
struct point_type {
  std::type_index type;
  std::string registered_name{};    ///< name in the payload registry; empty if not registered
  payload_allowlist allowed{};      ///< payload classes that may be decoded
  std::string_view printed_name{};  ///< as the compiler prints the type
  bool has_arguments = true;
  bool ownable = true;        ///< the arguments can be copied
  bool may_be_empty = false;  ///< returns an optional or has a result hook: serves tombstones
  bool has_unserved = false;
  bool has_recovered = false;
  bool takes_context = false;
  bool scattered = false;  ///< answers are stored in slices
  bool listed = false;     ///< a manifest names the slices of an answer
};

/// Registers a point. Throws holdfast::error with all problems of its options.
[[nodiscard]] HOLDFAST_API std::shared_ptr<point_core> make_point(
    const std::shared_ptr<engine_core>& engine, std::string_view name, const point_options& options,
    point_type type);
/// Returns the point with this name, or registers it. Throws if its type differs.
[[nodiscard]] HOLDFAST_API std::shared_ptr<point_core> find_or_make_point(
    const std::shared_ptr<engine_core>& engine, std::string_view name, const point_options& options,
    point_type type);
[[nodiscard]] HOLDFAST_API const payload_registry& payloads_of(const engine_core& engine) noexcept;

enum class call_mode : std::uint8_t {
  bypass,      ///< the point is disabled: call the upstream only
  on_caller,   ///< run on the thread of the caller
  on_executor  ///< run on the executor, with a deadline
};
[[nodiscard]] HOLDFAST_API call_mode mode_of(const point_core& point) noexcept;
/// True if calls are retried: the arguments must survive an attempt.
[[nodiscard]] HOLDFAST_API bool has_retries(const point_core& point) noexcept;
[[nodiscard]] HOLDFAST_API const holdfast::key::failover_keys& keys_of(
    const point_core& point) noexcept;
/// True if keys depend on dimensions of the caller.
[[nodiscard]] HOLDFAST_API bool varies(const point_core& point) noexcept;
/// Appends the dimensions to the text of the arguments and makes the key. Throws if a dimension has
/// no value.
[[nodiscard]] HOLDFAST_API std::string varied_key(const point_core& point, std::string raw);
/// Call in a catch clause: the exception prevented a key, so the call is not protected.
HOLDFAST_API void record_missing_key(const point_core& point, call_base& call) noexcept;

/// Starts a call: realm, clocks, counters. Throws errc::unavailable if the engine is closed.
HOLDFAST_API void start(const point_core& point, call_base& call);
/// Runs a started call on this thread. Returns with value and provenance set, or throws.
HOLDFAST_API void run(const std::shared_ptr<point_core>& point, call_base& call);
/// Runs a started call on the executor, with a deadline. The result goes to `caller_call`; `call`
/// may outlive it.
HOLDFAST_API void run_owned(const std::shared_ptr<point_core>& point,
                            const std::shared_ptr<call_base>& call, call_base& caller_call);
/// Calls the upstream without protection.
HOLDFAST_API void run_bypassed(const point_core& point, call_base& call);

// The split phases of a started call.

/// Asks concurrency limit and breaker. Returns the reason for a refusal, or null.
[[nodiscard]] HOLDFAST_API std::exception_ptr admit(const std::shared_ptr<point_core>& point,
                                                    call_base& call);
/// Finishes a call whose value was set by the upstream.
HOLDFAST_API void finish_live(const std::shared_ptr<point_core>& point, call_base& call);
/// Answers a failed call from the store, or throws.
HOLDFAST_API void finish_failed(const std::shared_ptr<point_core>& point, call_base& call,
                                std::exception_ptr error, cause_code code);
/// If a drill selects this call and an answer is kept for it: serves that, as the outcome of the
/// call. Otherwise returns false and leaves the call as it was.
[[nodiscard]] HOLDFAST_API bool finish_in_drill(const std::shared_ptr<point_core>& point,
                                                call_base& call);
/// Finishes a call without an outcome.
HOLDFAST_API void abandon(const std::shared_ptr<point_core>& point, call_base& call) noexcept;

// Stored answers, for a call that has its key. They throw errc::invalid_argument if it has none.

/// Reads what would be served if the upstream failed now. Returns false if there is nothing.
[[nodiscard]] HOLDFAST_API bool peek_stored(const std::shared_ptr<point_core>& point,
                                            call_base& call);
/// Stores the value of the call. Throws if it is not stored.
HOLDFAST_API void prime_stored(const std::shared_ptr<point_core>& point, call_base& call);
/// Stores that there is no answer. Throws what the store throws.
HOLDFAST_API void invalidate_stored(const std::shared_ptr<point_core>& point, call_base& call);
/// Removes the answer from every layer of the store. Throws what the store throws.
HOLDFAST_API void erase_stored(const std::shared_ptr<point_core>& point, call_base& call,
                               std::chrono::steady_clock::time_point deadline);

}  // namespace HOLDFAST_NAMESPACE::detail::failover
