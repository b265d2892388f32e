#pragma once

/// \file
/// Where the typed skin meets the compiled core. The core knows keys, bytes and exceptions, and decides; the skin knows types, and converts.
/// User code does not call this.

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

namespace HOLDFAST_NAMESPACE::detail {

class point_core;
class engine_core;
class gather_base;
struct rendezvous;

/// A live value as it is stored.
struct encoded {
  result_kind kind = result_kind::store;
  std::string payload{};
  std::optional<timestamp> expire_on{};  ///< when a hook said so
};

/// One call, from its key to its answer. The value is the skin's; the core gets at it through these functions.
class HOLDFAST_API call_base {
 public:
  call_base() = default;
  call_base(const call_base&) = delete;
  call_base& operator=(const call_base&) = delete;
  virtual ~call_base();

  /// Calls the upstream; what it throws passes.
  virtual void invoke(const call_context& context) = 0;
  /// What is to be stored of the value. Throws what the codec throws.
  [[nodiscard]] virtual encoded encode(timestamp now) = 0;
  /// Makes the value of stored bytes; throws and leaves no value when they are not one.
  virtual void decode(std::string_view payload) = 0;
  virtual void make_empty() noexcept = 0;
  [[nodiscard]] virtual bool has_value() const noexcept = 0;
  /// Hooks; what they throw passes.
  virtual void enrich() = 0;
  virtual void recovered() = 0;
  virtual void default_value() = 0;
  /// False when there is no such hook.
  virtual bool unserved() = 0;
  /// Moves the value and provenance of a finished call of the same type here.
  virtual void take(call_base& finished) noexcept = 0;
  /// The same call, owning its arguments; null where they cannot be copied.
  [[nodiscard]] virtual std::shared_ptr<call_base> own() = 0;
  /// Itself, when it consists of others.
  [[nodiscard]] virtual gather_base* gather() noexcept { return nullptr; }

  std::string key{};    ///< of the row; empty: the call is not protected
  std::string realm{};  ///< of the caller's tenant
  provenance from{};

  // The core's own.
  timestamp now{};                                        ///< the wall clock when it started
  std::chrono::steady_clock::time_point started{};        ///< the same, for durations
  std::shared_ptr<rendezvous> meeting{};                  ///< of a call that runs on another thread
  std::shared_ptr<const std::string> bytes{};             ///< what was stored, for those who share the flight
  std::chrono::steady_clock::time_point attempt_began{};  ///< of the upstream
  unsigned attempt = 0;
  std::uint32_t breaker_period = 0;  ///< of the breaker's permission
  bool asked = false;                ///< the breaker waits to be told how it ended
  bool admitted = false;             ///< holds a place of the concurrency limit
  bool keeps_bytes = false;          ///< `bytes` is wanted
};

/// What the skin knows about a point's type when it is registered.
struct point_type {
  std::type_index type;
  std::string registered_name{};    ///< of the payload registry; empty when it is not there
  payload_allowlist allowed{};      ///< what may be decoded
  std::string_view printed_name{};  ///< as the compiler prints it
  bool has_arguments = true;
  bool ownable = true;        ///< arguments can be copied
  bool may_be_empty = false;  ///< returns an optional, or has a result hook: a tombstone is an answer
  bool has_default = false;
  bool has_unserved = false;
  bool has_recovered = false;
  bool takes_context = false;
  bool scattered = false;  ///< its answers are stored in slices
  bool listed = false;     ///< and a manifest says which belong to one
};

/// Registers a point; throws holdfast::error with all its problems.
[[nodiscard]] HOLDFAST_API std::shared_ptr<point_core> make_point(const std::shared_ptr<engine_core>& engine, std::string_view name,
                                                                  const point_options& options, point_type type);
/// The same for ad hoc calls: the point of that name when it is there already and has the same type.
[[nodiscard]] HOLDFAST_API std::shared_ptr<point_core> find_or_make_point(const std::shared_ptr<engine_core>& engine, std::string_view name,
                                                                          const point_options& options, point_type type);
[[nodiscard]] HOLDFAST_API const payload_registry& payloads_of(const engine_core& engine) noexcept;

/// How a point's calls are run.
enum class way : std::uint8_t {
  bypass,  ///< disabled: straight to the upstream
  plain,   ///< on the caller's thread
  owned    ///< on the executor, with a deadline
};
[[nodiscard]] HOLDFAST_API way way_of(const point_core& point) noexcept;
/// Arguments must survive an attempt.
[[nodiscard]] HOLDFAST_API bool repeats(const point_core& point) noexcept;
[[nodiscard]] HOLDFAST_API const key::failover_keys& keys_of(const point_core& point) noexcept;
/// The key of a point that varies, from the text of its arguments. Throws when a dimension has no value.
[[nodiscard]] HOLDFAST_API bool varies(const point_core& point) noexcept;
[[nodiscard]] HOLDFAST_API std::string varied_key(const point_core& point, std::string raw);
/// The exception being handled kept a call from getting a key.
HOLDFAST_API void unkeyed(const point_core& point, call_base& call) noexcept;

/// Starts a call: clocks, counters, the realm. Throws errc::unavailable when the engine is closed.
HOLDFAST_API void start(const point_core& point, call_base& call);

/// The whole of a started call, on this thread. Afterwards value and provenance are there, or the exception that must leave was thrown.
HOLDFAST_API void run(const std::shared_ptr<point_core>& point, call_base& call);
/// The same on the executor, with a deadline. `mine` is what the caller gets; `call` may outlive it.
HOLDFAST_API void run_owned(const std::shared_ptr<point_core>& point, const std::shared_ptr<call_base>& call, call_base& mine);
/// A call that is not protected.
HOLDFAST_API void run_bypassed(const point_core& point, call_base& call);

/// The split phases of a started call. `ask` gives why the upstream must not be called, or null.
[[nodiscard]] HOLDFAST_API std::exception_ptr ask(const std::shared_ptr<point_core>& point, call_base& call);
/// The upstream answered: the value is in the call.
HOLDFAST_API void finish_live(const std::shared_ptr<point_core>& point, call_base& call);
/// It did not. Throws what must leave.
HOLDFAST_API void finish_failed(const std::shared_ptr<point_core>& point, call_base& call, std::exception_ptr error, cause_code code);
/// Nobody knows.
HOLDFAST_API void abandon(const std::shared_ptr<point_core>& point, call_base& call) noexcept;

}  // namespace HOLDFAST_NAMESPACE::detail
