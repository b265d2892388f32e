#pragma once

/// \file
/// The seam between values and formats. Whatever is keyed, C++ arguments or
/// run-time values, is told to a `writer` piece by piece; each scheme is one
/// writer. User code does not call this: see keyable.hpp and the schemes.

#include <holdfast/error.hpp>
#include <holdfast/key/value.hpp>
#include <holdfast/version.hpp>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::key {

/// A map's key, held without owning it. `other` is a type that only some schemes print: `text` is what they print, `type_name` what it is.
struct map_key {
  enum class kind : std::uint8_t { null, boolean, integer, unsigned_integer, float32, float64, text, bytes, other };

  kind type = kind::null;
  union {
    bool truth;
    std::int64_t integer;
    std::uint64_t unsigned_integer;
    float single;
    double number = 0;
  };
  std::string_view text{};
  std::string_view type_name{};
};

/// One entry of a map on its way to a writer, which may reorder entries by their keys; `item` is the caller's own pointer to the value.
struct map_slot {
  map_key key{};
  const void* item = nullptr;
};

/// Receives the arguments of one call. Every function throws holdfast::error, with the path to the value, when its format cannot carry it.
/// Thread-safety: none; one writer lives for one key.
class HOLDFAST_API writer {
 public:
  writer(const writer&) = delete;
  writer& operator=(const writer&) = delete;

  /// The call: how many positional arguments follow.
  virtual void begin_arguments(std::size_t count) = 0;
  /// Its keyword arguments, if it has any, sorted in place; then `entry` and a value for each. Called after the positional ones.
  virtual void begin_keywords(std::span<map_slot> slots) = 0;
  virtual void end_arguments() = 0;

  virtual void null() = 0;
  virtual void boolean(bool v) = 0;
  virtual void integer(std::int64_t v) = 0;
  virtual void unsigned_integer(std::uint64_t v) = 0;
  virtual void float32(float v) = 0;
  virtual void float64(double v) = 0;
  virtual void character(char32_t v) = 0;
  virtual void text(std::string_view v) = 0;
  virtual void bytes(std::span<const std::byte> v) = 0;
  virtual void uuid(const key::uuid& v) = 0;
  virtual void decimal(std::string_view v) = 0;
  virtual void big_integer(std::string_view digits) = 0;
  virtual void instant(const key::instant& v) = 0;
  virtual void date(const key::date& v) = 0;
  virtual void time_of_day(const key::time_of_day& v) = 0;
  virtual void path(std::string_view v, key::path::flavour style) = 0;
  virtual void array(array_value::element type, std::span<const std::byte> little_endian) = 0;

  virtual void begin_list(std::size_t count) = 0;
  virtual void end_list() = 0;
  virtual void begin_set(std::size_t count) = 0;
  virtual void end_set() = 0;
  /// Reorders the slots as the format wants them; then `entry` and a value for each, in that order.
  virtual void begin_map(std::span<map_slot> slots) = 0;
  virtual void entry(const map_slot& slot) = 0;
  virtual void end_map() = 0;

  /// Run-time values only: what C++ arguments cannot be.
  virtual void object(const key::object& v) = 0;
  virtual void object_identity(const key::object_identity& v) = 0;
  virtual void begin_optional(bool has_item) = 0;
  virtual void end_optional() = 0;
  /// Whether this enumerator is told next by its text (true) or by its value; throws if it may not be told at all.
  [[nodiscard]] virtual bool enumerator_by_text(const key::enumeration& v) = 0;

  /// Throws with the path to the value that is being written.
  [[noreturn]] void fail(errc code, const std::string& message) const;
  /// Throws errc::unsupported_type for a type that this format does not have.
  [[noreturn]] void unsupported(std::string_view type_name) const;

 protected:
  writer() = default;
  virtual ~writer();

  /// What the format is called in messages.
  [[nodiscard]] virtual std::string_view format_name() const noexcept = 0;

  enum class frame_kind : std::uint8_t { arguments, keywords, list, set, map, optional };

  /// Goes one level down or up. Going down too far throws errc::too_deep.
  void push(frame_kind kind) {
    if (depth_ == room_) make_room();
    frames_[depth_++] = frame{nullptr, 0, kind};
  }
  void pop() noexcept { --depth_; }
  /// Called as each value begins, so that the path to it is known if it is refused.
  void next() noexcept {
    if (depth_ != 0) ++frames_[depth_ - 1].index;
  }
  void at_key(const map_key& k) noexcept { frames_[depth_ - 1].key = &k; }
  [[nodiscard]] frame_kind inside() const noexcept { return frames_[depth_ - 1].kind; }
  /// How many values have begun on this level, the current one included.
  [[nodiscard]] std::size_t position() const noexcept { return frames_[depth_ - 1].index; }
  [[nodiscard]] std::size_t depth() const noexcept { return depth_; }
  [[nodiscard]] std::string path_to_value() const;

 private:
  struct frame {
    const map_key* key;
    std::uint32_t index;  // counts from 1: it is raised before the value is looked at
    frame_kind kind;
  };
  void make_room();

  // The call itself is one level, an argument of max_height opens max_height more. Few calls are deep: most stay in the small array,
  // and the stack stays small enough to be in the cache.
  static constexpr std::size_t max_frames = max_height + 1;
  std::size_t depth_ = 0;
  std::size_t room_ = std::size(few_);
  frame* frames_ = few_;
  std::unique_ptr<frame[]> many_{};
  frame few_[24];  // NOLINT(*-avoid-c-arrays): deliberately not initialised, it is on the hot path
};

/// Writes a run-time value, without recursion.
HOLDFAST_API void write(writer& w, const value& v);

namespace detail {

/// A callable that is handed to compiled code without owning or copying it.
class argument_writer {
 public:
  template <class F>
  argument_writer(const F& f) noexcept : object_(&f), call_([](const void* object, writer& w) { (*static_cast<const F*>(object))(w); }) {}
  void operator()(writer& w) const { call_(object_, w); }

 private:
  const void* object_;
  void (*call_)(const void*, writer&);
};

/// Writes a call whose arguments are run-time values.
HOLDFAST_API void write_call(writer& w, std::span<const value> args, std::span<const std::pair<std::string, value>> keywords = {});

}  // namespace detail

}  // namespace HOLDFAST_NAMESPACE::key
