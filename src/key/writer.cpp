#include <holdfast/key/writer.hpp>

#include "key/map_order.hpp"
#include "key/messages.hpp"
#include "key/number_text.hpp"

#include <algorithm>
#include <memory>
#include <vector>

namespace HOLDFAST_NAMESPACE::key {

using namespace holdfast::detail::key;

writer::~writer() = default;

std::string writer::path_to_value() const {
  constexpr std::size_t max_path_size = 400;
  if (depth_ == 0) return "value";
  std::string path;
  if (frames_[0].kind != frame_kind::arguments && frames_[0].kind != frame_kind::keywords)
    path = "value";
  for (std::size_t i = 0; i < depth_; ++i) {
    const frame& f = frames_[i];
    const auto index = "[" + std::to_string(f.index == 0 ? 0 : f.index - 1) + "]";
    switch (f.kind) {
      case frame_kind::arguments:
        path += "args" + index;
        break;
      case frame_kind::keywords:
        path += f.key != nullptr ? "kwargs[" + describe(*f.key) + "]" : "kwargs";
        break;
      case frame_kind::list:
      case frame_kind::set:
        path += index;
        break;
      case frame_kind::map:
        path += ".items[" + (f.key != nullptr ? describe(*f.key) : "") + "]";
        break;
      case frame_kind::optional:
        path += ".value";
        break;
    }
    if (path.size() > max_path_size && i + 1 < depth_) return path + "...";
  }
  return path;
}

void writer::fail(errc code, const std::string& message) const {
  throw error(code, message, {.path = path_to_value()});
}

void writer::unsupported(std::string_view type_name) const {
  fail(errc::unsupported_type, "a value of type '" + std::string(type_name) +
                                   "' cannot be part of " + std::string(format_name()) +
                                   "; pass its text or its parts instead");
}

void writer::grow() {
  if (heap_frames_) fail(errc::too_deep, too_deep_message(max_height));
  heap_frames_ = std::make_unique<frame[]>(max_frames);
  std::copy_n(inline_frames_, depth_, heap_frames_.get());
  frames_ = heap_frames_.get();
  capacity_ = max_frames;
}

namespace {

/// A container that is being written. A stack of these replaces recursion.
struct walked_container {
  const value* container = nullptr;
  std::size_t next = 0;                  // index of the next item
  std::vector<map_slot> slots{};         // of a map, in the order of the writer
  std::vector<std::string> key_texts{};  // owns the texts of keys that were converted to text
};

map_key map_key_of(const value& v, std::vector<std::string>& texts) {
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

/// Writes a scalar, or begins a container and pushes it on the stack.
struct value_writer {
  writer& w;
  std::vector<walked_container>& stack;
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
    stack.push_back({.container = &self});
  }
  void operator()(const set& v) const {
    w.begin_set(v.items.size());
    stack.push_back({.container = &self});
  }
  void operator()(const map& v) const {
    walked_container entry{.container = &self};
    entry.slots.reserve(v.items.size());
    entry.key_texts.reserve(v.items.size());  // the slots refer to its elements
    for (const auto& item : v.items)
      entry.slots.push_back({map_key_of(item.first, entry.key_texts), &item.second});
    w.begin_map(entry.slots);
    stack.push_back(std::move(entry));
  }
  void operator()(const boxed_optional& v) const {
    w.begin_optional(v.item != nullptr);
    stack.push_back({.container = &self});
  }
  void operator()(const enumeration& v) const {
    if (w.enumerator_by_text(v) && v.text) return w.text(*v.text);
    std::visit(value_writer{w, stack, *v.underlying}, v.underlying->get());
  }
};

/// Returns the next value of the container on top of the stack, or null if there is none.
struct next_value {
  writer& w;
  walked_container& top;

  const value* operator()(const list& v) const { return next_of(v.items); }
  const value* operator()(const set& v) const { return next_of(v.items); }
  const value* operator()(const map&) const {
    if (top.next == top.slots.size()) return nullptr;
    const map_slot& slot = top.slots[top.next++];
    w.entry(slot);
    return static_cast<const value*>(slot.item);
  }
  const value* operator()(const boxed_optional& v) const {
    return top.next++ == 0 ? v.item.get() : nullptr;
  }
  template <class Scalar>
  const value* operator()(const Scalar&) const {
    return nullptr;
  }

 private:
  const value* next_of(const std::vector<value>& items) const {
    return top.next < items.size() ? &items[top.next++] : nullptr;
  }
};

}  // namespace

void write(writer& w, const value& v) {
  std::vector<walked_container> stack;
  std::visit(value_writer{w, stack, v}, v.get());
  while (!stack.empty()) {
    const auto& container = stack.back().container->get();
    if (const value* item = std::visit(next_value{w, stack.back()}, container)) {
      std::visit(value_writer{w, stack, *item}, item->get());
      continue;
    }
    if (std::holds_alternative<list>(container)) w.end_list();
    else if (std::holds_alternative<set>(container)) w.end_set();
    else if (std::holds_alternative<map>(container)) w.end_map();
    else w.end_optional();
    stack.pop_back();
  }
}

namespace detail {

void write_call(writer& w, std::span<const value> args,
                std::span<const std::pair<std::string, value>> keywords) {
  w.begin_arguments(args.size());
  for (const value& arg : args) write(w, arg);
  if (!keywords.empty()) {
    std::vector<map_slot> slots;
    slots.reserve(keywords.size());
    for (const auto& [name, item] : keywords) {
      map_slot slot{.item = &item};
      slot.key.type = map_key::kind::text;
      slot.key.text = name;
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
