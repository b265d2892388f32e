#pragma once

/// \file
/// The interface between values and formats. C++ arguments and run-time values are both written
/// through a `writer`; each scheme implements one. User code does not need it: see keyable.hpp and
/// the headers of the schemes.

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

/// The key of a map entry. Does not own its text. The kind `other` is a type that only some schemes
/// can print: `text` is the printed form, or has no data if there is none.
struct map_key {
  enum class kind : std::uint8_t {
    null,
    boolean,
    integer,
    unsigned_integer,
    float32,
    float64,
    text,
    bytes,
    other
  };

  kind type = kind::null;
  union {
    bool truth;
    std::int64_t integer;
    std::uint64_t unsigned_integer;
    float single;
    double number = 0;
  };
  std::string_view text{};
  /// The type of the key for messages. Set for run-time values only.
  std::string_view type_name{};
};

/// One entry of a map. A writer may reorder the entries by their keys.
struct map_slot {
  map_key key{};
  /// The caller's pointer to the entry's value. Writers do not use it.
  const void* item = nullptr;
};

/// Receives the arguments of one call. Every function throws holdfast::error, with the path to the
/// value, if the format does not support the value.
/// Thread-safety: none; a writer is used for one key.
class HOLDFAST_API writer {
 public:
  writer(const writer&) = delete;
  writer& operator=(const writer&) = delete;

  /// Begins the call. `count` positional arguments follow.
  virtual void begin_arguments(std::size_t count) = 0;
  /// Called after the positional arguments if the call has keyword arguments. Sorts the slots in
  /// place. For each slot, `entry` and a value follow.
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
  /// Reorders the slots as the format requires. For each slot in the new order, `entry` and a value
  /// follow.
  virtual void begin_map(std::span<map_slot> slots) = 0;
  virtual void entry(const map_slot& slot) = 0;
  virtual void end_map() = 0;

  // Only run-time values have these types; C++ arguments do not.

  virtual void object(const key::object& v) = 0;
  virtual void object_identity(const key::object_identity& v) = 0;
  virtual void begin_optional(bool has_item) = 0;
  virtual void end_optional() = 0;
  /// Returns whether the enumerator is written as its text (true) or as its value (false). Throws
  /// if the format does not support it.
  [[nodiscard]] virtual bool enumerator_by_text(const key::enumeration& v) = 0;

  /// Throws with the path to the value that is being written.
  [[noreturn]] void fail(errc code, const std::string& message) const;
  /// Throws errc::unsupported_type with the path to the value that is being written.
  [[noreturn]] void unsupported(std::string_view type_name) const;

 protected:
  writer() = default;
  virtual ~writer();

  /// The name of the format for messages, with its article: `an interop key`.
  [[nodiscard]] virtual std::string_view format_name() const noexcept = 0;

  enum class frame_kind : std::uint8_t { arguments, keywords, list, set, map, optional };

  // The writer keeps a stack of frames, one for each open container, to report the path to a value.

  /// Opens a container. Throws errc::too_deep beyond max_height.
  void push(frame_kind kind) {
    if (depth_ == capacity_) grow();
    frames_[depth_++] = frame{nullptr, 0, kind};
  }
  void pop() noexcept { --depth_; }
  /// Counts a value in the innermost open container. Called before the value is checked, so that an
  /// error reports its position.
  void count_value() noexcept {
    if (depth_ != 0) ++frames_[depth_ - 1].index;
  }
  void set_entry_key(const map_key& k) noexcept { frames_[depth_ - 1].key = &k; }
  /// The kind of the innermost open container.
  [[nodiscard]] frame_kind current_frame() const noexcept { return frames_[depth_ - 1].kind; }
  /// The number of values counted in the innermost open container.
  [[nodiscard]] std::size_t value_count() const noexcept { return frames_[depth_ - 1].index; }
  [[nodiscard]] std::size_t depth() const noexcept { return depth_; }
  [[nodiscard]] std::string path_to_value() const;

 private:
  struct frame {
    const map_key* key;
    std::uint32_t index;  // of the current value, counted from 1; 0 before the first
    frame_kind kind;
  };
  /// Moves the frames to the heap. Throws errc::too_deep if they are there already.
  void grow();

  // One frame for the call itself, and max_height for the highest argument. Most calls need few
  // frames; a small array keeps the writer small and in the cache.
  static constexpr std::size_t max_frames = max_height + 1;
  std::size_t depth_ = 0;
  std::size_t capacity_ = std::size(inline_frames_);
  frame* frames_ = inline_frames_;
  std::unique_ptr<frame[]> heap_frames_{};
  frame inline_frames_[24];  // NOLINT(*-avoid-c-arrays): not initialised, it is on the hot path
};

/// Writes a run-time value, without recursion.
HOLDFAST_API void write(writer& w, const value& v);

namespace detail {

/// A reference to a callable that writes arguments. Passes it to compiled code without a copy or an
/// allocation.
class argument_writer {
 public:
  template <class F>
  argument_writer(const F& f) noexcept
      : object_(&f),
        call_([](const void* object, writer& w) { (*static_cast<const F*>(object))(w); }) {}
  void operator()(writer& w) const { call_(object_, w); }

 private:
  const void* object_;
  void (*call_)(const void*, writer&);
};

/// Writes a call with run-time values as arguments.
HOLDFAST_API void write_call(writer& w, std::span<const value> args,
                             std::span<const std::pair<std::string, value>> keywords = {});

}  // namespace detail

}  // namespace HOLDFAST_NAMESPACE::key
