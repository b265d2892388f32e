#include <holdfast/key/writer.hpp>

#include "key/map_order.hpp"
#include "key/number_text.hpp"

#include <algorithm>
#include <memory>
#include <vector>

namespace HOLDFAST_NAMESPACE::key {

writer::~writer() = default;

std::string writer::path_to_value() const {
  if (depth_ == 0) return "value";
  std::string path;
  if (frames_[0].kind != frame_kind::arguments && frames_[0].kind != frame_kind::keywords) path = "value";
  for (std::size_t i = 0; i < depth_; ++i) {
    const frame& at = frames_[i];
    const auto index = "[" + std::to_string(at.index == 0 ? 0 : at.index - 1) + "]";
    switch (at.kind) {
      case frame_kind::arguments:
        path += "args" + index;
        break;
      case frame_kind::keywords:
        path += at.key != nullptr ? "kwargs[" + shown(*at.key) + "]" : "kwargs";
        break;
      case frame_kind::list:
      case frame_kind::set:
        path += index;
        break;
      case frame_kind::map:
        path += ".items[" + (at.key != nullptr ? shown(*at.key) : "") + "]";
        break;
      case frame_kind::optional:
        path += ".value";
        break;
    }
    // A path of hundreds of levels helps nobody.
    if (path.size() > 400 && i + 1 < depth_) return path + "...";
  }
  return path;
}

void writer::fail(errc code, const std::string& message) const { throw error(code, message, {.path = path_to_value()}); }

void writer::unsupported(std::string_view type_name) const {
  fail(errc::unsupported_type, "a value of type '" + std::string(type_name) + "' cannot be part of " + std::string(format_name()) +
                                   "; pass its text or its parts instead");
}

void writer::make_room() {
  if (many_)
    fail(errc::too_deep, "nested deeper than " + std::to_string(max_height) + " levels; flatten the value or hash the inner part first");
  many_ = std::make_unique<frame[]>(max_frames);
  std::copy_n(few_, depth_, many_.get());
  frames_ = many_.get();
  room_ = max_frames;
}

namespace {

/// A container that is being written. Values are walked with a stack of these instead of recursion.
struct open_container {
  const value* of = nullptr;
  std::size_t next = 0;
  std::vector<map_slot> slots{};         // maps: the entries in the order that the writer chose
  std::vector<std::string> key_texts{};  // what slots refer to when a key had to be turned into text
};

map_key key_of(const value& v, std::vector<std::string>& texts) {
  map_key k;
  k.type_name = v.type_name();
  const auto as_other = [&](std::string text) {
    texts.push_back(std::move(text));
    k.type = map_key::kind::other;
    k.text = texts.back();
  };
  if (v.is_null()) {
    k.type = map_key::kind::null;
  } else if (const auto* b = v.if_is<bool>()) {
    k.type = map_key::kind::boolean;
    k.truth = *b;
  } else if (const auto* i = v.if_is<std::int64_t>()) {
    k.type = map_key::kind::integer;
    k.integer = *i;
  } else if (const auto* u = v.if_is<std::uint64_t>()) {
    k.type = map_key::kind::unsigned_integer;
    k.unsigned_integer = *u;
  } else if (const auto* f = v.if_is<float>()) {
    k.type = map_key::kind::float32;
    k.single = *f;
  } else if (const auto* d = v.if_is<double>()) {
    k.type = map_key::kind::float64;
    k.number = *d;
  } else if (const auto* text = v.if_is<std::string>()) {
    k.type = map_key::kind::text;
    k.text = *text;
  } else if (const auto* bytes = v.if_is<byte_string>()) {
    k.type = map_key::kind::bytes;
    k.text = {reinterpret_cast<const char*>(bytes->data()), bytes->size()};
  } else if (const auto* digits = v.if_is<big_integer>()) {
    as_other(integer_text(digits->digits).value_or(digits->digits));
  } else if (const auto* id = v.if_is<uuid>()) {
    as_other(id->to_string());
  } else if (const auto* named = v.if_is<enumeration>(); named != nullptr && named->text) {
    as_other(*named->text);
  } else if (const auto* printed = v.if_is<object>()) {
    as_other(printed->text);
  } else {
    k.type = map_key::kind::other;
  }
  return k;
}

/// Writes a scalar, or opens a container by pushing it.
struct opener {
  writer& w;
  std::vector<open_container>& open;
  const value& self;

  void operator()(std::monostate) const { w.null(); }
  void operator()(bool v) const { w.boolean(v); }
  void operator()(std::int64_t v) const { w.integer(v); }
  void operator()(std::uint64_t v) const { w.unsigned_integer(v); }
  void operator()(const big_integer& v) const { w.big_integer(v.digits); }
  void operator()(float v) const { w.float32(v); }
  void operator()(double v) const { w.float64(v); }
  void operator()(const character& v) const { w.character(v.code_point); }
  void operator()(const std::string& v) const { w.text(v); }
  void operator()(const byte_string& v) const { w.bytes(v); }
  void operator()(const uuid& v) const { w.uuid(v); }
  void operator()(const decimal& v) const { w.decimal(v.text); }
  void operator()(const instant& v) const { w.instant(v); }
  void operator()(const date& v) const { w.date(v); }
  void operator()(const time_of_day& v) const { w.time_of_day(v); }
  void operator()(const path& v) const { w.path(v.text, v.style); }
  void operator()(const array_value& v) const { w.array(v.type, v.bytes); }
  void operator()(const object& v) const { w.object(v); }
  void operator()(const object_identity& v) const { w.object_identity(v); }
  void operator()(const extension&) const { w.unsupported("MessagePack extension"); }

  void operator()(const list& v) const {
    w.begin_list(v.items.size());
    open.push_back({.of = &self});
  }
  void operator()(const set& v) const {
    w.begin_set(v.items.size());
    open.push_back({.of = &self});
  }
  void operator()(const map& v) const {
    open_container frame{.of = &self};
    frame.slots.reserve(v.items.size());
    frame.key_texts.reserve(v.items.size());  // slots refer to its elements: it must not move
    for (const auto& item : v.items) frame.slots.push_back({key_of(item.first, frame.key_texts), &item.second});
    w.begin_map(frame.slots);
    open.push_back(std::move(frame));
  }
  void operator()(const boxed_optional& v) const {
    w.begin_optional(v.item != nullptr);
    open.push_back({.of = &self});
  }
  void operator()(const enumeration& v) const {
    if (w.enumerator_by_text(v) && v.text) return w.text(*v.text);
    std::visit(opener{w, open, *v.underlying}, v.underlying->get());
  }
};

/// The next value inside an open container; null when it is complete.
struct stepper {
  writer& w;
  std::vector<open_container>& open;

  const value* operator()(const list& v) const { return item_of(v.items); }
  const value* operator()(const set& v) const { return item_of(v.items); }
  const value* operator()(const map& v) const {
    auto& frame = open.back();
    if (frame.next == v.items.size()) return nullptr;
    const map_slot& slot = frame.slots[frame.next++];
    w.entry(slot);
    return static_cast<const value*>(slot.item);
  }
  const value* operator()(const boxed_optional& v) const { return open.back().next++ == 0 ? v.item.get() : nullptr; }
  template <class Scalar>
  const value* operator()(const Scalar&) const {
    return nullptr;
  }

 private:
  const value* item_of(const std::vector<value>& items) const {
    auto& frame = open.back();
    return frame.next < items.size() ? &items[frame.next++] : nullptr;
  }
};

}  // namespace

void write(writer& w, const value& v) {
  std::vector<open_container> open;
  std::visit(opener{w, open, v}, v.get());
  while (!open.empty()) {
    const auto& container = open.back().of->get();
    if (const value* item = std::visit(stepper{w, open}, container)) {
      std::visit(opener{w, open, *item}, item->get());
      continue;
    }
    if (std::holds_alternative<list>(container)) w.end_list();
    else if (std::holds_alternative<set>(container)) w.end_set();
    else if (std::holds_alternative<map>(container)) w.end_map();
    else w.end_optional();
    open.pop_back();
  }
}

namespace detail {

void write_call(writer& w, std::span<const value> args, std::span<const std::pair<std::string, value>> keywords) {
  w.begin_arguments(args.size());
  for (const value& each : args) write(w, each);
  if (!keywords.empty()) {
    std::vector<map_slot> slots;
    slots.reserve(keywords.size());
    for (const auto& each : keywords) {
      map_slot slot{.item = &each.second};
      slot.key.type = map_key::kind::text;
      slot.key.text = each.first;
      slots.push_back(slot);
    }
    w.begin_keywords(slots);
    for (const map_slot& slot : slots) {
      w.entry(slot);
      write(w, *static_cast<const value*>(slot.item));
    }
  }
  w.end_arguments();
}

}  // namespace detail

}  // namespace HOLDFAST_NAMESPACE::key
